/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - pieces of JSON that more than one subcommand reads or sends */

#include "src/cli/body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/cli/proc.h"
#include "src/text/json.h"

enum { FILE_MAX = 16 * 1024 * 1024 };

int body_read(const char *file, struct json **ret)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(FILE_MAX);
	struct diag d = { 0 };
	char line[1024];
	int r;

	r = file_read(file, &text);
	if (r) {
		fprintf(stderr, "sallyport: %s: %s\n", file, err_text(r));
		return -EINVAL;
	}
	(void)span_copy(span_str(file), d.file, sizeof(d.file));
	r = json_parse(buf_peek(&text), ret, &d);
	if (r)
		fprintf(stderr, "sallyport: %s\n",
			diag_text(&d, line, sizeof(line)));
	return r;
}

int body_each_binding(const struct json *root, body_binding_fn *fn, void *ctx)
{
	const struct json *array = json_find(root, "bindings");
	int r;

	if (!array)
		array = root;
	if (json_kind(array) == JSON_KIND_OBJECT)
		return fn(ctx, array);
	json_for_each(binding, array)
	{
		r = fn(ctx, binding);
		if (r)
			return r;
	}
	return 0;
}

bool body_put_labels(struct json_out *out, const struct opt_list *labels)
{
	struct span value, key;
	unsigned i;

	json_open_object(out, "labels");
	for (i = 0; i < labels->count; i++) {
		value = span_str(labels->items[i]);
		key = span_cut(&value, '=');
		if (!key.len || key.len == strlen(labels->items[i])) {
			fprintf(stderr,
				"sallyport: a label is KEY=VALUE, not "
				"%s\n",
				labels->items[i]);
			return false;
		}
		json_put_name(out, key);
		json_put_text(out, NULL, value);
	}
	json_close(out);
	return true;
}

bool body_value_is_sound(struct span name, const struct secret *value)
{
	struct span bytes = secret_open(value);
	size_t i;

	for (i = 0; i < bytes.len; i++) {
		if (bytes.ptr[i] >= 0x20 && bytes.ptr[i] <= 0x7e)
			continue;
		if (bytes.ptr[i] == '\t')
			continue;
		fprintf(stderr,
			"sallyport: the value of %.*s holds a byte "
			"that is not printable ASCII (at %zu); a "
			"header cannot carry it\n",
			SPAN_FMT(name), i);
		return false;
	}
	return true;
}

void body_put_credential(struct json_out *out, struct span name,
			 const struct secret *value)
{
	json_open_object(out, NULL);
	json_put_text(out, "name", name);
	json_open_object(out, "source");
	json_put_text(out, "value", secret_open(value));
	json_close(out);
	json_close(out);
}
