/* SPDX-License-Identifier: Apache-2.0 */
/* run_secrets.c - credentials given to `sallyport run`: read and hidden
 *
 * The values are in locked memory between reading and sending. The sandbox
 * shares the machine's files, so the file a value came from is masked there,
 * and a variable of the caller that holds a value stays outside.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/cli/proc.h"
#include "src/cli/run.h"

/* Shorter values are looked for as a whole only: "a" is in every variable. */
enum { PART_MIN = 8 };

static int credential_read(struct run_credential *c, const char *word)
{
	struct span from = span_str(word);
	const char *source;

	c->name = span_cut(&from, '=');
	source = word + c->name.len + 1;
	if (!c->name.len || !from.len) {
		fprintf(stderr, "sallyport: a credential is NAME=@FILE, or "
				"NAME=- for stdin\n");
		return -EINVAL;
	}
	if (source[0] == '@' && !realpath(source + 1, c->path)) {
		fprintf(stderr, "sallyport: %s: %s\n", source + 1,
			err_text(errno));
		return -errno;
	}
	return value_read(source, &c->value);
}

int run_secrets_read(struct run_secrets *s, const struct opt_list *words)
{
	unsigned i;
	int r = 0;

	if (words->count > RUN_CREDENTIALS_MAX)
		return -E2BIG;
	s->items = must_alloc((words->count + 1) * sizeof(*s->items));
	s->count = words->count;
	for (i = 0; i < words->count && !r; i++)
		r = credential_read(&s->items[i], words->items[i]);
	return r;
}

void run_secrets_wipe(struct run_secrets *s)
{
	unsigned i;

	for (i = 0; i < s->count; i++)
		s->items[i].value = secret_free(s->items[i].value);
	free(s->items);
	*s = (struct run_secrets){ 0 };
}

static bool holds(struct span text, struct span value)
{
	if (value.len < PART_MIN)
		return span_eq(text, value);
	return memmem(text.ptr, text.len, value.ptr, value.len) != NULL;
}

static bool is_secret(const struct run_secrets *s, const char *variable)
{
	struct span text = span_str(variable), name = span_cut(&text, '=');
	unsigned i;

	for (i = 0; i < s->count; i++) {
		if (!holds(text, secret_open(s->items[i].value)))
			continue;
		fprintf(stderr,
			"sallyport: %.*s holds credential %.*s and "
			"stays outside\n",
			SPAN_FMT(name), SPAN_FMT(s->items[i].name));
		return true;
	}
	return false;
}

char **run_secrets_environment(const struct run_secrets *s, char **from)
{
	size_t count = 0, kept = 0, i;
	char **all;

	while (from[count])
		count++;
	all = must_alloc((count + 1) * sizeof(*all));
	for (i = 0; i < count; i++)
		if (!is_secret(s, from[i]))
			all[kept++] = from[i];
	return all;
}
