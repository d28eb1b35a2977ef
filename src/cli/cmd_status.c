/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_status.c - sallyport status: how the daemon is */

#include <stdio.h>

#include "src/cli/api.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"
#include "src/cli/routes.h"
#include "src/cli/table.h"
#include "src/text/json.h"

enum { CELL_SIZE = 4096, INDENT_MAX = 16, NAME_WIDTH = 24 };

static void object_print(const struct json *object, int indent);

/* Objects of a list, each on its own line. */
static void list_print(const struct json *array, int indent)
{
	char cell[CELL_SIZE];

	json_for_each(item, array) printf("%*s%s\n", indent, "",
					  table_text(item, cell, sizeof(cell)));
}

/* Members one a line, what has parts indented below its name. */
static void member_print(const struct json *object, const char *name,
			 const struct json *member, int indent)
{
	const bool parts = json_kind(member) == JSON_KIND_OBJECT ||
			   json_kind(json_item(member, 0)) == JSON_KIND_OBJECT;
	char cell[CELL_SIZE];

	if (!parts || indent >= INDENT_MAX) {
		printf("%*s%-*s %s\n", indent, "", NAME_WIDTH - indent, name,
		       table_cell(object, name, cell, sizeof(cell)));
		return;
	}
	printf("%*s%s\n", indent, "", name);
	if (json_kind(member) == JSON_KIND_OBJECT)
		object_print(member, indent + 2);
	else
		list_print(member, indent + 2);
}

static void object_print(const struct json *object, int indent)
{
	const struct json *member;
	void *cursor = NULL;
	struct span key;
	char name[128];

	while ((member = json_next(object, &cursor, &key)))
		if (span_copy(key, name, sizeof(name)))
			member_print(object, name, member, indent);
}

int cmd_status(int argc, char **argv)
{
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct opt_daemon where = { 0 };
	bool only_ready = false;
	const struct opt opts[] = {
		OPTS_DAEMON(&where),
		{ "ready", OPT_FLAG, &only_ready, NULL,
		  "print nothing; exit 0 if all roles serve", 'r' },
		{ 0 },
	};
	const struct opt_usage usage = { .line = "status", .opts = opts };
	struct opt_words words;
	struct api api;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	if (api_init(&api, &where))
		return CLI_FAILED;
	r = api_call(&api, "GET", ROUTE_STATUS, SPAN_NONE, &reply);
	if (r)
		return r;
	if (only_ready)
		return json_bool(json_find(reply.json, "ready")) ? CLI_OK
								 : CLI_FAILED;
	if (api.json)
		api_print(&reply);
	else
		object_print(reply.json, 0);
	return CLI_OK;
}
