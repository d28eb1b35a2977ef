/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c - sallyport token: who may use the admin API over TCP */

#include <stdio.h>

#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/cli/simple.h"
#include "src/text/json.h"

enum { BODY_MAX = 4096 };

int cmd_token_list(int argc, char **argv)
{
	static const struct column columns[] = {
		{ "NAME", "name" },
		{ "CREATED", "created" },
		{ 0 },
	};
	const struct simple s = {
		.line = "token list",
		.path = ROUTE_TOKENS,
		.member = "tokens",
		.columns = columns,
	};

	return simple_list(&s, argc, argv);
}

int cmd_token_rm(int argc, char **argv)
{
	const struct simple s = {
		.line = "token rm NAME",
		.path = ROUTE_TOKENS,
	};

	return simple_rm(&s, argc, argv);
}

/* The token's text is in the reply and never again anywhere. */
int cmd_token_create(int argc, char **argv)
{
	const struct simple s = { .line = "token create NAME" };
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct simple_words w = { 0 };
	struct json_out out;
	struct span token;
	struct api api;
	int r;

	r = simple_parse(&s, 1, 1, argc, argv, &w);
	if (r)
		return opts_exit(r);
	json_start(&out, &body);
	json_open_object(&out, NULL);
	json_put_str(&out, "name", w.rest.items[0]);
	json_close(&out);
	if (json_done(&out) || api_init(&api, &w.daemon))
		return CLI_FAILED;
	r = api_call(&api, "POST", ROUTE_TOKENS, buf_peek(&body), &reply);
	if (r)
		return r;
	token = json_text(json_find(reply.json, "token"));
	if (api.json)
		api_print(&reply);
	else
		printf("%.*s\n", SPAN_FMT(token));
	return CLI_OK;
}
