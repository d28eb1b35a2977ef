/* SPDX-License-Identifier: Apache-2.0 */
/* redact.c - replace injected values in response header fields
 *
 * What is looked for is what was sent: for a basic binding that is the base64
 * form, which is its lease.
 */

#include "gateway/pipeline/redact.h"

#include "gateway/redact/automaton.h"
#include "gateway/redact/stream.h"
#include "src/base/buf.h"
#include "src/base/secret.h"

enum { VALUE_BYTES = 1024 * 1024 };

static const char replacement[] = "[REDACTED]";

/* The first occurrence of any injected value at or after value[0]; the longest
 * where several begin at the same place. Length 0: none. */
static struct span find_echo(const struct request *req, struct span value)
{
	struct span best = span_of(value.ptr + value.len, 0), secret;
	const char *hit;
	unsigned i;

	for (i = 0; i < req->injection_count; i++) {
		secret = secret_open(req->injections[i].secret);
		if (!secret.len || secret.len > value.len)
			continue;
		hit = memmem(value.ptr, value.len, secret.ptr, secret.len);
		if (!hit || hit > best.ptr ||
		    (hit == best.ptr && secret.len <= best.len))
			continue;
		best = span_of(hit, secret.len);
	}
	return best;
}

/* Where an occurrence of secret begins inside echo and ends after it, echo
 * grows to its end: the rest of a value is not shown because two overlap. */
static bool echo_grow(struct span *echo, struct span value, struct span secret)
{
	const char *end = value.ptr + value.len, *from = echo->ptr + 1;
	size_t before = echo->len;

	while (secret.len && from < echo->ptr + echo->len) {
		from = memmem(from, (size_t)(end - from), secret.ptr,
			      secret.len);
		if (!from || from >= echo->ptr + echo->len)
			break;
		echo->len =
			MAX(echo->len, (size_t)(from - echo->ptr) + secret.len);
		from++;
	}
	return echo->len > before;
}

/* The next echo in value, with all that overlaps it. Length 0: none. */
static struct span find_echoes(const struct request *req, struct span value)
{
	struct span echo = find_echo(req, value);
	bool grew = echo.len > 0;
	unsigned i;

	while (grew) {
		grew = false;
		for (i = 0; i < req->injection_count; i++)
			grew |= echo_grow(
				&echo, value,
				secret_open(req->injections[i].secret));
	}
	return echo;
}

static int redact_exact(struct request *req, struct span value, struct buf *out)
{
	struct span echo;
	size_t before;
	int r;

	while (value.len) {
		echo = find_echoes(req, value);
		before = echo.len ? (size_t)(echo.ptr - value.ptr) : value.len;
		r = buf_put(out, span_of(value.ptr, before));
		if (!r && echo.len)
			r = buf_put_str(out, replacement);
		if (r)
			return r;
		if (echo.len)
			req->audit->redactions++;
		value = span_from(value, before + echo.len);
	}
	return 0;
}

/* Nearly every field: one look says that nothing of it has to go. Most are
 * shorter than anything that is looked for. */
static bool value_is_clean(const struct request *req, struct span value)
{
	struct cursor c = cursor_at(0);

	return !find_echo(req, value).len &&
	       (!req->automaton ||
		value.len < automaton_shortest(req->automaton) ||
		!automaton_find(req->automaton, &c, value));
}

int redact_value(struct request *req, struct span value, struct buf *out)
{
	struct buf exact = BUF_INIT(VALUE_BYTES);
	uint64_t hits = 0;
	int r;

	if (value_is_clean(req, value))
		return buf_put(out, value);
	if (!req->automaton)
		return redact_exact(req, value, out);
	r = redact_exact(req, value, &exact);
	if (!r) /* encoded forms of it, which keep their length */
		r = redact_text(req->automaton, buf_peek(&exact), out, &hits);
	req->audit->redactions += (unsigned)hits;
	buf_wipe(&exact);
	return r;
}
