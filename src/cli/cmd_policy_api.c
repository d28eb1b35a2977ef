/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_policy_api.c - sallyport policy: the policies that the daemon has */

#include <stdio.h>

#include "policy/load.h"
#include "policy/model.h"
#include "src/base/diag.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/cli/simple.h"

enum { BODY_MAX = 16 * 1024 * 1024 };

int cmd_policy_list(int argc, char **argv)
{
	static const struct column columns[] = {
		{ "NAME", "name" },
		{ "SOURCE", "source" },
		{ "RULES", "rules" },
		{ "GENERATION", "generation" },
		{ "FILE", "file" },
		{ "LINE", "line" },
		{ 0 },
	};
	const struct simple s = {
		.line = "policy list",
		.path = ROUTE_POLICIES,
		.member = "policies",
		.columns = columns,
	};

	return simple_list(&s, argc, argv);
}

int cmd_policy_rm(int argc, char **argv)
{
	const struct simple s = {
		.line = "policy rm NAME",
		.path = ROUTE_POLICIES,
	};

	return simple_rm(&s, argc, argv);
}

int cmd_policy_reload(int argc, char **argv)
{
	const struct simple s = {
		.line = "policy reload",
		.path = ROUTE_RELOAD,
	};

	return simple_post(&s, "reloaded", argc, argv);
}

static int policy_put(const struct api *api, const struct policy_model *m)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	struct api_path path;

	if (policy_emit(m, &body)) {
		fprintf(stderr, "sallyport: policy %.*s is too large\n",
			SPAN_FMT(m->name));
		return CLI_FAILED;
	}
	api_path_set(&path, ROUTE_POLICIES, m->name);
	return api_do(api, "PUT", path.text, buf_peek(&body));
}

int cmd_policy_put(int argc, char **argv)
{
	const struct simple s = { .line = "policy put FILE" };
	struct policy_set *set CLEANUP_POLICY_SET = NULL;
	const struct policy_model *m;
	struct simple_words w = { 0 };
	struct diag d = { 0 };
	char line[1024];
	struct api api;
	int r;

	r = simple_parse(&s, 1, 1, argc, argv, &w);
	if (r)
		return opts_exit(r);
	if (policy_load_file(w.rest.items[0], &set, &d)) {
		fprintf(stderr, "sallyport: %s\n",
			diag_text(&d, line, sizeof(line)));
		return CLI_FAILED;
	}
	if (set->deny_count || set->allow_count) {
		fputs("sallyport: overlays belong into the policy folder, they "
		      "cannot be put\n",
		      stderr);
		return CLI_FAILED;
	}
	if (api_init(&api, &w.daemon))
		return CLI_FAILED;
	for (m = set->policies; m && !r; m = m->next)
		r = policy_put(&api, m);
	return r;
}
