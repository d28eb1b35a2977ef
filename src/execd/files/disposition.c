/* SPDX-License-Identifier: Apache-2.0 */
/* disposition.c - the name of a download in its head */

#include "src/execd/files/disposition.h"

#include <stdbool.h>

#include "src/base/buf.h"
#include "src/text/json.h"
#include "src/wire/bytes.h"

/* May it stand in a quoted string and mean itself to every client? A percent
 * sign is decoded by some. */
static bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '%';
}

static bool all_plain(struct span name)
{
	size_t i;

	for (i = 0; i < name.len; i++)
		if (!is_plain(name.ptr[i]))
			return false;
	return true;
}

/* The bytes that follow the first one in a sequence of UTF-8 add nothing. */
static int plain_put(struct buf *out, struct span name)
{
	char c;
	int r = 0;
	size_t i;

	for (i = 0; i < name.len && !r; i++) {
		if (((unsigned char)name.ptr[i] & 0xc0) == 0x80)
			continue;
		c = is_plain(name.ptr[i]) ? name.ptr[i] : '_';
		r = buf_put(out, span_of(&c, 1));
	}
	return r;
}

/* attr-char of RFC 8187 3.2.1 is more than what stays as it is here. */
static int exact_put(struct buf *out, struct span name)
{
	size_t i;
	int r = 0;

	for (i = 0; i < name.len && !r; i++) {
		if (byte_is(name.ptr[i], BYTE_UNRESERVED))
			r = buf_put(out, span_of(&name.ptr[i], 1));
		else
			r = buf_putf(out, "%%%02X",
				     (unsigned)(unsigned char)name.ptr[i]);
	}
	return r;
}

int disposition_put(struct buf *out, struct span name)
{
	int r;

	r = buf_put(out, SPAN("attachment; filename=\""));
	if (!r)
		r = plain_put(out, name);
	if (!r)
		r = buf_put(out, SPAN("\""));
	if (r || all_plain(name) || !json_is_utf8(name))
		return r;
	r = buf_put(out, SPAN("; filename*=UTF-8''"));
	return r ? r : exact_put(out, name);
}
