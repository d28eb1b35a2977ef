/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ca.c - sallyport ca export: the certificate that sandboxes must trust */

#include <stdio.h>

#include "src/base/err.h"
#include "src/cli/api.h"
#include "src/cli/command.h"
#include "src/cli/inside.h"
#include "src/cli/routes.h"

enum { BUNDLE_MAX = 16 * 1024 * 1024 };

int cmd_ca_export(int argc, char **argv)
{
	struct buf bundle CLEANUP(buf_fini) = BUF_INIT(BUNDLE_MAX);
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct opt_daemon where = { 0 };
	bool whole = false;
	const struct opt opts[] = {
		{ "bundle", OPT_FLAG, &whole, NULL,
		  "the system's roots too, for clients that read one file",
		  'b' },
		OPTS_DAEMON(&where),
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "ca export [--bundle]",
		.opts = opts,
	};
	struct opt_words words;
	struct span text;
	struct api api;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	if (api_init(&api, &where))
		return CLI_FAILED;
	r = api_call(&api, "GET", ROUTE_CA, SPAN_NONE, &reply);
	if (r)
		return r;
	if (whole && trust_system(&bundle))
		return CLI_FAILED;
	r = buf_put(&bundle, buf_peek(&reply.body));
	text = buf_peek(&bundle);
	if (r || fwrite(text.ptr, 1, text.len, stdout) != text.len)
		return CLI_FAILED;
	return CLI_OK;
}
