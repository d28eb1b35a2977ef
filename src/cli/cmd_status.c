/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_status.c - sallyport status: how the daemon is */

#include <stdio.h>

#include "src/cli/api.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"
#include "src/cli/routes.h"
#include "src/cli/table.h"
#include "src/text/json.h"

enum { CELL_SIZE = 4096 };

/* Members one a line, objects indented below their name. */
static void object_print(const struct json *object, int indent)
{
	const struct json *member;
	void *cursor = NULL;
	char name[128], cell[CELL_SIZE];
	struct span key;

	while ((member = json_next(object, &cursor, &key))) {
		if (!span_copy(key, name, sizeof(name)))
			continue;
		if (json_kind(member) == JSON_KIND_OBJECT && indent < 16) {
			printf("%*s%s\n", indent, "", name);
			object_print(member, indent + 2);
			continue;
		}
		printf("%*s%-*s %s\n", indent, "", 20 - indent, name,
		       table_cell(object, name, cell, sizeof(cell)));
	}
}

int cmd_status(int argc, char **argv)
{
	struct api_reply reply CLEANUP_REPLY = { 0 };
	struct opt_daemon where = { 0 };
	const struct opt opts[] = {
		OPTS_DAEMON(&where),
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
	if (api.json)
		api_print(&reply);
	else
		object_print(reply.json, 0);
	return CLI_OK;
}
