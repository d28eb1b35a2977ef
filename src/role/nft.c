/* SPDX-License-Identifier: Apache-2.0 */
/* nft.c - where nft is, and what it complains about on one line of the log */

#include "src/role/nft.h"

#include <errno.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/role/tool.h"

enum {
	OUTPUT_BYTES_MAX = 1024 * 1024,
	SAID_BYTES_MAX = 400,
	NFT_TIMEOUT_MS = 20 * 1000,
};

const char *nft_path(void)
{
	static const char *const paths[] = { "/usr/sbin/nft", "/sbin/nft",
					     "/usr/bin/nft" };
	unsigned i;

	for (i = 0; i < ARRAY_LEN(paths); i++)
		if (access(paths[i], X_OK) == 0)
			return paths[i];
	return paths[0];
}

int nft_script(struct span script, bool quiet)
{
	const char *const argv[] = { nft_path(), "-f", "-", NULL };
	struct buf said = BUF_INIT(OUTPUT_BYTES_MAX);
	char line[SAID_BYTES_MAX];
	int r = tool_run(argv, script, &said, NFT_TIMEOUT_MS);

	if (r < 0)
		log_error("could not run %s: %s", argv[0], err_text(r));
	else if (r > 0 && !quiet)
		log_error("nft refused the rules: %s",
			  log_escape(buf_peek(&said), line, sizeof(line)));
	buf_fini(&said);
	return r > 0 ? -EINVAL : r;
}

bool nft_would(struct span script)
{
	const char *const argv[] = { nft_path(), "-c", "-f", "-", NULL };
	struct buf said = BUF_INIT(OUTPUT_BYTES_MAX);
	int r = tool_run(argv, script, &said, NFT_TIMEOUT_MS);

	buf_fini(&said);
	return r == 0;
}
