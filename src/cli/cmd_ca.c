/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ca.c - sallyport ca export: the certificate that sandboxes must trust */

#include "src/cli/api.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"

int cmd_ca_export(int argc, char **argv)
{
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
	struct api api;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	if (api_init(&api, &where))
		return CLI_FAILED;
	r = api_call(&api, "GET", whole ? ROUTE_CA_BUNDLE : ROUTE_CA, SPAN_NONE,
		     &reply);
	if (!r)
		api_print(&reply);
	return r;
}
