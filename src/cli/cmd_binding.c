/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_binding.c - sallyport binding: which credential goes where */

#include <stdio.h>

#include "src/cli/body.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/cli/simple.h"
#include "src/text/json.h"

enum { BODY_MAX = 1024 * 1024 };

static const struct column columns[] = {
	{ "NAME", "name" },
	{ "AUTH", "auth.type" },
	{ "SCHEMES", "match.schemes" },
	{ "HOSTS", "match.hosts" },
	{ "PORTS", "match.ports" },
	{ "METHODS", "match.methods" },
	{ "PATHS", "match.paths" },
	{ 0 },
};

static const struct simple list = {
	.line = "binding list",
	.path = ROUTE_BINDINGS,
	.member = "bindings",
	.columns = columns,
};

static const struct simple rm = {
	.line = "binding rm NAME",
	.path = ROUTE_BINDINGS,
};

static const struct simple put = {
	.line = "binding put FILE|-",
	.path = ROUTE_BINDINGS,
};

int cmd_binding_list(int argc, char **argv)
{
	return simple_list(&list, argc, argv);
}

int cmd_binding_rm(int argc, char **argv)
{
	return simple_rm(&rm, argc, argv);
}

static int binding_put(void *ctx, const struct json *binding)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	struct span name = json_text(json_find(binding, "name"));
	struct api_path path;

	if (!name.len) {
		fputs("sallyport: a binding without a name\n", stderr);
		return CLI_FAILED;
	}
	if (json_emit(&body, binding))
		return CLI_FAILED;
	api_path_set(&path, ROUTE_BINDINGS, name);
	return api_do(ctx, "PUT", path.text, buf_peek(&body));
}

int cmd_binding_put(int argc, char **argv)
{
	struct json *root CLEANUP_JSON = NULL;
	struct simple_words w = { 0 };
	struct api api;
	int r;

	r = simple_parse(&put, 1, 1, argc, argv, &w);
	if (r)
		return opts_exit(r);
	if (body_read(w.rest.items[0], &root) || api_init(&api, &w.daemon))
		return CLI_FAILED;
	return body_each_binding(root, binding_put, &api);
}
