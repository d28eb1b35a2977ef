/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - an array of JSON objects as aligned columns for people */

#include "src/cli/table.h"

#include <stdio.h>
#include <string.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/log.h"
#include "src/base/span.h"
#include "src/text/json.h"

enum { COLUMNS_MAX = 12, CELL_SIZE = 256 };

static const struct json *member_find(const struct json *object,
				      const char *member)
{
	struct span rest = span_str(member), part;
	char name[64];

	while (rest.len && object) {
		part = span_cut(&rest, '.');
		if (!span_copy(part, name, sizeof(name)))
			return NULL;
		object = json_find(object, name);
	}
	return object;
}

static int value_put(struct buf *b, const struct json *j);

static int array_put(struct buf *b, const struct json *array)
{
	int r = 0;

	json_for_each(item, array)
	{
		if (item_at)
			r = buf_put_str(b, ",");
		if (!r)
			r = value_put(b, item);
		if (r)
			return r;
	}
	return 0;
}

static int object_put(struct buf *b, const struct json *object)
{
	const struct json *member;
	void *cursor = NULL;
	const char *sep = "";
	struct span name;
	int r;

	while ((member = json_next(object, &cursor, &name))) {
		r = buf_putf(b, "%s%.*s=", sep, SPAN_FMT(name));
		if (!r)
			r = value_put(b, member);
		if (r)
			return r;
		sep = ",";
	}
	return 0;
}

/* Appends one value; objects are shown as "name=value". */
static int value_put(struct buf *b, const struct json *j)
{
	switch (json_kind(j)) {
	case JSON_KIND_STRING:
		return buf_put(b, json_text(j));
	case JSON_KIND_ARRAY:
		return array_put(b, j);
	case JSON_KIND_OBJECT:
		return object_put(b, j);
	case JSON_KIND_NONE:
	case JSON_KIND_NULL:
		return 0;
	case JSON_KIND_BOOL:
	case JSON_KIND_NUMBER:
	case JSON_KIND_NUM:
		break;
	}
	return json_emit(b, j);
}

const char *table_text(const struct json *value, char *dst, unsigned size)
{
	struct buf b CLEANUP(buf_fini) = BUF_INIT(64 * 1024);

	if (value_put(&b, value))
		(void)snprintf(dst, size, "(long)");
	else if (!buf_len(&b))
		(void)snprintf(dst, size, "-");
	else
		log_escape(buf_peek(&b), dst, size);
	return dst;
}

const char *table_cell(const struct json *object, const char *member, char *dst,
		       unsigned size)
{
	return table_text(member_find(object, member), dst, size);
}

void table_print_json(const struct json *array, const struct column *columns)
{
	size_t width[COLUMNS_MAX] = { 0 }, count = 0, i;
	char cell[CELL_SIZE];

	for (; count < COLUMNS_MAX && columns[count].title; count++)
		width[count] = strlen(columns[count].title);
	json_for_each(row, array) for (i = 0; i < count; i++) width[i] = MAX(
		width[i],
		strlen(table_cell(row, columns[i].member, cell, sizeof(cell))));
	for (i = 0; i < count; i++)
		printf("%-*s%s", i + 1 < count ? (int)width[i] : 0,
		       columns[i].title, i + 1 < count ? "  " : "\n");
	json_for_each(row, array) for (i = 0; i < count; i++)
		printf("%-*s%s", i + 1 < count ? (int)width[i] : 0,
		       table_cell(row, columns[i].member, cell, sizeof(cell)),
		       i + 1 < count ? "  " : "\n");
}
