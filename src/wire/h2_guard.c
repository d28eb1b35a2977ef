/* SPDX-License-Identifier: Apache-2.0 */
/* h2_guard.c - counts what a peer makes us do for nothing, and sees what no
 * honest peer sends
 *
 * How it works: the guard reads the frame headers before nghttp2 does, nine
 * bytes per frame however they are cut. Every kind of frame has a price in
 * sixteenths of a chore: DATA and requests are free or earn something, PING,
 * PRIORITY, unknown types, empty and all-padding DATA cost a whole one,
 * SETTINGS several, tiny DATA a sixteenth. WINDOW_UPDATE and PING are honest
 * where data flows, so each DATA frame sent and each request earns two. A
 * server's heads cost one each: its answer and trailers are paid for by the
 * request, heads without end by nothing. The bucket holds a second's worth and
 * refills with time: whoever empties it has kept us busy a thousand times in a
 * second with nothing (CVE-2019-9511 to 9518). Resets have a bucket of their
 * own, for those the client sends before its answer was complete
 * (CVE-2023-44487) and those it makes us send (CVE-2025-8671). CONTINUATION
 * frames (CVE-2024-27316) are counted per block.
 *
 * Where nghttp2 passes over what RFC 9113 calls an error, the guard does not:
 * frames on streams that the peer itself ended or reset, stream ids that go
 * back, PRIORITY on stream 0 or of a stream on itself. For this it keeps the
 * last ids of each residue, so that an id is either known, forgotten (then
 * nothing is said), or was skipped for good.
 */

#include "src/wire/h2_guard.h"

#include <string.h>

#include "src/wire/h2.h"

enum { UNIT = 16, HEAD_SIZE = 9, PRIORITY_SIZE = 5, MAGIC_SIZE = 24 };
enum { TINY_BYTES = 16, PADDED_BYTES = 257, BULK_BYTES = 1024 };

enum frame_type {
	FRAME_DATA,
	FRAME_HEADERS,
	FRAME_PRIORITY,
	FRAME_RST_STREAM,
	FRAME_SETTINGS,
	FRAME_CONTINUATION = 9,
};

enum frame_flags {
	FLAG_END_STREAM = 1,
	FLAG_ACK = 1,
	FLAG_END_HEADERS = 4,
	FLAG_PADDED = 8,
};

static void bucket_init(struct h2_bucket *b, uint64_t most, uint64_t per_second)
{
	b->level = b->most = (int64_t)most * UNIT;
	b->per_second = (int64_t)per_second * UNIT;
	b->filled_ms = 0;
}

static void bucket_add(struct h2_bucket *b, int64_t units)
{
	b->level = MIN(b->level + units, b->most);
}

static void bucket_refill(struct h2_bucket *b, uint64_t now_ms)
{
	uint64_t ms = now_ms > b->filled_ms ? now_ms - b->filled_ms : 0;
	int64_t units;

	/* a long rest fills it; also keeps the product small */
	units = ms >= 60 * 1000 ? b->most : (int64_t)ms * b->per_second / 1000;
	/* what is less than a unit stays in the clock */
	if (units || now_ms < b->filled_ms) {
		bucket_add(b, units);
		b->filled_ms = now_ms;
	}
}

/* False: it was empty. */
static bool bucket_take(struct h2_bucket *b, uint64_t now_ms, int64_t units)
{
	bucket_refill(b, now_ms);
	if (b->level < units)
		return false;
	b->level -= units;
	return true;
}

void h2_guard_init(struct h2_guard *g, bool server, uint32_t chores,
		   uint32_t resets)
{
	*g = (struct h2_guard){ .server = server, .head_need = HEAD_SIZE };
	g->magic_left = server ? MAGIC_SIZE : 0;
	bucket_init(&g->chores, chores, chores);
	bucket_init(&g->resets, resets, MAX(resets / 10, 1u));
}

void h2_guard_worked(struct h2_guard *g)
{
	bucket_add(&g->chores, 2 * UNIT);
}

bool h2_guard_provoked(struct h2_guard *g, uint64_t now_ms)
{
	return !g->server || bucket_take(&g->resets, now_ms, UNIT);
}

/* Negative: it earns. */
static int64_t data_price(uint32_t len, uint8_t flags)
{
	if (len >= BULK_BYTES)
		return -UNIT;
	if (flags & FLAG_END_STREAM)
		return 0;
	if (!len || (flags & FLAG_PADDED && len < PADDED_BYTES))
		return UNIT;
	return len < TINY_BYTES ? 1 : 0;
}

static int64_t frame_price(const struct h2_guard *g, uint8_t type,
			   uint8_t flags, uint32_t len)
{
	switch (type) {
	case FRAME_DATA:
		return data_price(len, flags);
	case FRAME_HEADERS:
		return g->server ? -2 * UNIT : UNIT;
	case FRAME_SETTINGS:
		/* each may touch the window of every stream */
		return flags & FLAG_ACK ? UNIT : 8 * UNIT;
	default:
		return UNIT;
	}
}

static const struct h2_verdict fine = { 0 };

static struct h2_verdict calm(const char *why)
{
	return (struct h2_verdict){ why, H2_ENHANCE_YOUR_CALM };
}

static struct h2_verdict block_watch(struct h2_guard *g, uint8_t type,
				     uint8_t flags)
{
	if (type == FRAME_HEADERS) {
		g->in_block = !(flags & FLAG_END_HEADERS);
		g->continuations = 0;
	} else if (type == FRAME_CONTINUATION && g->in_block) {
		g->in_block = !(flags & FLAG_END_HEADERS);
		if (++g->continuations > H2_CONTINUATIONS_MAX)
			return calm("too many CONTINUATION frames");
	}
	return fine;
}

static uint32_t *id_slot(struct h2_guard *g, uint32_t id)
{
	return &g->ids[(id >> 1) % H2_GUARD_IDS];
}

void h2_guard_finished(struct h2_guard *g, int32_t id)
{
	uint32_t *slot = id_slot(g, (uint32_t)id);

	if (*slot >> 1 == (uint32_t)id)
		*slot |= 1;
}

/* May a client send this on its own stream? */
static struct h2_verdict stream_watch(struct h2_guard *g, uint8_t type,
				      uint32_t id)
{
	uint32_t *slot = id_slot(g, id);

	if (type == FRAME_RST_STREAM) {
		h2_guard_finished(g, (int32_t)id);
	} else if (type == FRAME_HEADERS && id > g->last_id) {
		g->last_id = id;
		*slot = id << 1;
	} else if (*slot == (id << 1 | 1)) {
		return (struct h2_verdict){ "a frame on a closed stream",
					    H2_STREAM_CLOSED };
	} else if (type == FRAME_HEADERS && *slot >> 1 < id) {
		return (struct h2_verdict){ "a stream id that goes back",
					    H2_PROTOCOL_ERROR };
	}
	return fine;
}

static uint32_t get_u31(const uint8_t *p)
{
	return (uint32_t)(p[0] & 0x7f) << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static struct h2_verdict priority_watch(const struct h2_guard *g, uint32_t id)
{
	if (!id || (g->head_len == H2_GUARD_HEAD_MAX &&
		    get_u31(g->head + HEAD_SIZE) == id))
		return (struct h2_verdict){ "a PRIORITY of no stream or on "
					    "itself",
					    H2_PROTOCOL_ERROR };
	return fine;
}

static struct h2_verdict price_watch(struct h2_guard *g, uint64_t now_ms,
				     uint8_t type, int64_t price)
{
	if (type == FRAME_RST_STREAM && g->server)
		return bucket_take(&g->resets, now_ms, UNIT)
			       ? fine
			       : calm("too many streams reset");
	if (price < 0)
		bucket_add(&g->chores, -price);
	else if (price && !bucket_take(&g->chores, now_ms, price))
		return calm("too many frames without useful work");
	return fine;
}

static uint32_t frame_len(const struct h2_guard *g)
{
	return (uint32_t)g->head[0] << 16 | (uint32_t)g->head[1] << 8 |
	       g->head[2];
}

/* What is to be judged of a frame has arrived. */
static struct h2_verdict frame_watch(struct h2_guard *g, uint64_t now_ms)
{
	uint8_t type = g->head[3], flags = g->head[4];
	uint32_t id = get_u31(g->head + 5);
	struct h2_verdict v = block_watch(g, type, flags);

	if (!v.why && type == FRAME_PRIORITY)
		v = priority_watch(g, id);
	else if (!v.why && g->server && id % 2 &&
		 (type == FRAME_DATA || type == FRAME_HEADERS ||
		  type == FRAME_RST_STREAM))
		v = stream_watch(g, type, id);
	return v.why ? v
		     : price_watch(g, now_ms, type,
				   frame_price(g, type, flags, frame_len(g)));
}

/* Takes what is missing of the frame's head; returns bytes taken. */
static size_t head_take(struct h2_guard *g, struct span bytes)
{
	size_t take = MIN(bytes.len, (size_t)(g->head_need - g->head_len));

	memcpy(g->head + g->head_len, bytes.ptr, take);
	g->head_len += (uint8_t)take;
	/* of PRIORITY its first number too */
	if (g->head_len == HEAD_SIZE && g->head[3] == FRAME_PRIORITY &&
	    frame_len(g) == PRIORITY_SIZE)
		g->head_need = H2_GUARD_HEAD_MAX;
	return take;
}

size_t h2_guard_watch(struct h2_guard *g, uint64_t now_ms, struct span bytes,
		      struct h2_verdict *ret)
{
	size_t at = MIN(bytes.len, (size_t)g->magic_left), start = at, take;

	g->magic_left -= (uint8_t)at;
	while (at < bytes.len) {
		if (g->payload_left) {
			take = MIN(bytes.len - at, (size_t)g->payload_left);
			g->payload_left -= (uint32_t)take;
			at += take;
			continue;
		}
		if (!g->head_len)
			start = at;
		at += head_take(g, span_from(bytes, at));
		if (g->head_len < g->head_need)
			continue;
		*ret = frame_watch(g, now_ms);
		if (ret->why)
			return start;
		g->payload_left = frame_len(g) - (g->head_len - HEAD_SIZE);
		g->head_len = 0;
		g->head_need = HEAD_SIZE;
	}
	return bytes.len;
}
