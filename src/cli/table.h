/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - an array of JSON objects as aligned columns for people */
#pragma once

struct json;

struct column {
	const char *title;  /* NULL ends the list */
	const char *member; /* "a" or "a.b"; arrays are joined by commas */
};

/* Prints a title line and one line per item; what is missing is "-". Bytes
 * that are not printable are escaped. */
void table_print_json(const struct json *array, const struct column *columns);

/* One value as table_print_json() shows it. Returns dst. */
const char *table_cell(const struct json *object, const char *member, char *dst,
		       unsigned size);
/* A whole value so. */
const char *table_text(const struct json *value, char *dst, unsigned size);
