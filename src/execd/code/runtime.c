/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - a second port, where clients look for a runtime of code */

#include "src/execd/code/runtime.h"

#include <stdbool.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/code/language.h"
#include "src/execd/execd.h"
#include "src/execd/process/shell.h"

/* Does the image have a program of any language? */
static bool has_interpreter(void)
{
	const struct language *l;
	size_t i, p;

	for (i = 0; (l = language_at(i)); i++)
		for (p = 0; l->programs[p]; p++)
			if (program_find(l->programs[p]))
				return true;
	return false;
}

void runtime_listen(struct execd *e)
{
	/* never another address: who is outside has the daemon's own port */
	const struct addr at = {
		.ip = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
		.port = e->config->runtime_port,
	};
	int r;

	if (!at.port || e->config->jupyter_host || !has_interpreter())
		return;
	r = httpd_listen_tcp(e->httpd, &at, NULL);
	if (r) {
		log_info("does not listen on 127.0.0.1:%u, where clients look "
			 "for a runtime of code: %s",
			 (unsigned)at.port, err_text(r));
		return;
	}
	e->runtime_port = at.port;
	log_info("listens on 127.0.0.1:%u too, where clients look for a "
		 "runtime of code",
		 (unsigned)at.port);
}
