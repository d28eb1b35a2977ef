/* SPDX-License-Identifier: Apache-2.0 */
/* simple.c - the shapes that most subcommands of the admin API have */

#include "src/cli/simple.h"

#include <stdio.h>

#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/text/json.h"

enum { CELL_SIZE = 4096 };

int simple_parse(const struct simple *s, unsigned min, unsigned max, int argc,
		 char **argv, struct simple_words *ret)
{
	const struct opt opts[] = {
		OPTS_DAEMON(&ret->daemon),
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = s->line,
		.min = min,
		.max = max,
		.opts = opts,
	};

	return opts_parse(&usage, argc, argv, &ret->rest);
}

enum { SAID = -1 }; /* all is printed; the exit code is CLI_OK */

/* Parses, finds the daemon, makes the call. An exit code or SAID. */
static int simple_call(const struct simple *s, const char *method,
		       unsigned count, int argc, char **argv, struct api *api,
		       struct api_reply *reply)
{
	struct simple_words w = { 0 };
	struct api_path path;
	int r;

	r = simple_parse(s, count, count, argc, argv, &w);
	if (r)
		return opts_exit(r) == CLI_OK ? SAID : CLI_USAGE;
	if (api_init(api, &w.daemon))
		return CLI_FAILED;
	if (s->otherwise && !api_answers(api))
		return s->otherwise(&w);
	if (count)
		api_path_set(&path, s->path, span_str(w.rest.items[0]));
	else
		(void)span_copy(span_str(s->path), path.text,
				sizeof(path.text));
	r = api_call(api, method, path.text, SPAN_NONE, reply);
	if (r || !api->json)
		return r;
	api_print(reply);
	return SAID;
}

int simple_list(const struct simple *s, int argc, char **argv)
{
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct api api;
	int r;

	r = simple_call(s, "GET", 0, argc, argv, &api, &reply);
	if (!r)
		table_print_json(json_find(reply.json, s->member), s->columns);
	return r == SAID ? CLI_OK : r;
}

int simple_show(const struct simple *s, int argc, char **argv)
{
	struct api_reply reply CLEANUP_REPLY = { 0 };
	const struct column *c;
	char cell[CELL_SIZE];
	struct api api;
	int r;

	r = simple_call(s, "GET", 1, argc, argv, &api, &reply);
	for (c = s->columns; !r && c->title; c++)
		printf("%-12s %s\n", c->title,
		       table_cell(reply.json, c->member, cell, sizeof(cell)));
	return r == SAID ? CLI_OK : r;
}

int simple_rm(const struct simple *s, int argc, char **argv)
{
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct api api;
	int r;

	r = simple_call(s, "DELETE", 1, argc, argv, &api, &reply);
	return r == SAID ? CLI_OK : r;
}

int simple_post(const struct simple *s, const char *done, int argc, char **argv)
{
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct span said;
	struct api api;
	int r;

	r = simple_call(s, "POST", 0, argc, argv, &api, &reply);
	said = json_text(json_find(reply.json, "message"));
	if (!r && said.len)
		printf("%.*s\n", SPAN_FMT(said));
	else if (!r)
		puts(done);
	return r == SAID ? CLI_OK : r;
}
