/* SPDX-License-Identifier: Apache-2.0 */
/* signed_keys.c - lines of an id and a key in base64 */

#include "certs/signed_keys.h"

#include "src/base/base64.h"
#include "src/base/diag.h"
#include "src/base/secret.h"

static bool id_is_valid(struct span id)
{
	return id.len == 1 && ((id.ptr[0] >= '0' && id.ptr[0] <= '9') ||
			       (id.ptr[0] >= 'a' && id.ptr[0] <= 'z'));
}

static bool is_taken(const struct signed_keys *keys, unsigned count, char id)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (keys->keys[i].id == id)
			return true;
	return false;
}

/* False: no base64, or too short, or too long. */
static bool secret_read(struct span text, struct arena *a, struct span *ret)
{
	uint8_t bytes[SIGNED_SECRET_MAX];
	size_t len = 0;
	bool good;

	good = base64_decode(text, bytes, sizeof(bytes), &len) &&
	       len >= SIGNED_SECRET_MIN;
	if (good)
		*ret = arena_dup(a, span_of(bytes, len));
	secret_wipe(bytes, sizeof(bytes));
	return good && ret->ptr;
}

static int line_read(struct span line, unsigned number, unsigned count,
		     struct arena *a, struct signed_keys *ret, struct diag *d)
{
	struct span id = span_trim(span_cut(&line, '='));
	struct span secret;

	if (!id_is_valid(id))
		return diag_set(d, number, 1,
				"expected id=base64, the id being one of 0 to "
				"9 and a to z");
	if (is_taken(ret, count, id.ptr[0]))
		return diag_set(d, number, 1, "found a second key of the id %c",
				id.ptr[0]);
	if (!secret_read(span_trim(line), a, &secret))
		return diag_set(d, number, 3,
				"expected base64 of %d to %d bytes",
				SIGNED_SECRET_MIN, SIGNED_SECRET_MAX);
	/* ids are distinct, so there is room for each */
	ret->keys[count].id = id.ptr[0];
	ret->keys[count].secret = secret;
	return 0;
}

int signed_keys_parse(struct span text, struct arena *a,
		      struct signed_keys *ret, struct diag *d)
{
	struct signed_keys keys = { 0 };
	unsigned number = 0, count = 0;
	struct span line;
	int r = 0;

	while (text.len && !r) {
		line = span_cut(&text, '\n');
		number++;
		if (span_ends(line, SPAN("\r")))
			line.len--;
		line = span_trim(line);
		if (!line.len || line.ptr[0] == '#')
			continue;
		r = line_read(line, number, count, a, &keys, d);
		count++;
	}
	if (!r)
		*ret = keys;
	return r;
}
