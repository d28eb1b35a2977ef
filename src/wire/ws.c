/* SPDX-License-Identifier: Apache-2.0 */
/* ws.c - WebSocket frames (RFC 6455): reading them at any split, writing them
 *
 * How it works: a frame's head is gathered (at most 14 bytes), and everything
 * it can be refused for is refused as soon as its first two bytes are known.
 * The payload of a data frame is never held: each call unmasks what is there
 * and hands it out. Control frames, at most 125 bytes, are gathered and handed
 * out whole; they may stand between the frames of a message, whose own state
 * (opcode, length, UTF-8) they do not touch.
 */

#include "src/wire/ws.h"

#include <errno.h>

#include "src/base/base64.h"
#include "src/base/buf.h"
#include "src/base/sha1.h"

enum {
	HEAD_MIN = 2,
	HEAD_MAX = 14,
	FIN = 0x80,
	RESERVED = 0x70,
	OPCODE = 0x0f,
	MASKED = 0x80,
	LENGTH = 0x7f,
	LENGTH_16 = 126,
	LENGTH_64 = 127,
	CONTROL = 8, /* bit of the opcode */
	CONTROL_MAX = 125,
	MASK_BYTES = 4,
	KEY_BYTES = 16,
};

/* Close codes of 7.4.1 that a parser has reason for. */
enum { CODE_PROTOCOL = 1002, CODE_NOT_UTF8 = 1007, CODE_TOO_BIG = 1009 };

/* -- UTF-8 (RFC 3629), a byte at a time ------------------------------------ */

/* Between characters the state is 0; inside of one it is how many bytes are
 * missing, and the range of the next one. */
static uint32_t utf8_want(uint32_t missing, uint32_t low, uint32_t high)
{
	return missing | low << 8 | high << 16;
}

static bool utf8_lead(uint32_t *state, uint8_t c)
{
	if (c < 0x80)
		return true;
	if (c < 0xc2 || c > 0xf4)
		return false; /* amid a character, overlong, or too high */
	if (c < 0xe0)
		*state = utf8_want(1, 0x80, 0xbf);
	else if (c < 0xf0) /* not overlong, no surrogates */
		*state = utf8_want(2, c == 0xe0 ? 0xa0 : 0x80,
				   c == 0xed ? 0x9f : 0xbf);
	else
		*state = utf8_want(3, c == 0xf0 ? 0x90 : 0x80,
				   c == 0xf4 ? 0x8f : 0xbf);
	return true;
}

static bool utf8_feed(uint32_t *state, struct span bytes)
{
	const uint8_t *p = (const uint8_t *)bytes.ptr, *end = p + bytes.len;
	uint32_t missing;

	for (; p < end; p++) {
		missing = *state & 0xff;
		if (!missing) {
			if (!utf8_lead(state, *p))
				return false;
			continue;
		}
		if (*p < (*state >> 8 & 0xff) || *p > *state >> 16)
			return false;
		*state = missing > 1 ? utf8_want(missing - 1, 0x80, 0xbf) : 0;
	}
	return true;
}

/* -- the mask -------------------------------------------------------------- */

/* XORs with the mask from its byte `at` on; returns where the next begins. */
static uint8_t ws_mask(char *p, size_t len, const uint8_t mask[MASK_BYTES],
		       uint8_t at)
{
	uint8_t turned[8];
	uint64_t word, key;
	size_t i;

	for (i = 0; i < sizeof(turned); i++)
		turned[i] = mask[(at + i) % MASK_BYTES];
	memcpy(&key, turned, sizeof(key));
	for (i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		word ^= key;
		memcpy(p + i, &word, sizeof(word));
	}
	for (; i < len; i++)
		p[i] = (char)(p[i] ^ turned[i % sizeof(turned)]);
	return (uint8_t)((at + len) % MASK_BYTES);
}

/* -- the head of a frame --------------------------------------------------- */

static int ws_check_start(const struct ws *w)
{
	const uint8_t opcode = w->head[0] & OPCODE;
	const uint8_t length = w->head[1] & LENGTH;

	if (w->head[0] & RESERVED || !!(w->head[1] & MASKED) != w->is_server)
		return -CODE_PROTOCOL;
	if (opcode & CONTROL)
		return opcode > WS_PONG || !(w->head[0] & FIN) ||
				       length > CONTROL_MAX
			       ? -CODE_PROTOCOL
			       : 0;
	/* a message continues if and only if one is under way */
	return opcode > WS_BINARY ||
			       (opcode == WS_CONTINUATION) != w->in_message
		       ? -CODE_PROTOCOL
		       : 0;
}

static size_t ws_head_size(const struct ws *w)
{
	const uint8_t length = w->head[1] & LENGTH;

	return HEAD_MIN + (size_t)(length == LENGTH_16 ? 2 : 0) +
	       (size_t)(length == LENGTH_64 ? 8 : 0) +
	       (size_t)(w->is_server ? MASK_BYTES : 0);
}

/* 0, or -CODE_PROTOCOL: not in the shortest form, or over 63 bits. */
static int ws_length(const struct ws *w, uint64_t *ret)
{
	const uint8_t length = w->head[1] & LENGTH;
	uint64_t v = 0;
	size_t i;

	if (length < LENGTH_16) {
		*ret = length;
		return 0;
	}
	for (i = 0; i < (length == LENGTH_16 ? 2 : 8); i++)
		v = v << 8 | w->head[HEAD_MIN + i];
	if (v < (length == LENGTH_16 ? LENGTH_16 : UINT64_C(0x10000)) ||
	    v >> 63)
		return -CODE_PROTOCOL;
	*ret = v;
	return 0;
}

/* The head is whole: a frame begins. */
static int ws_begin(struct ws *w)
{
	const size_t size = ws_head_size(w);
	int r;

	r = ws_length(w, &w->left);
	if (r)
		return r;
	w->fin = w->head[0] & FIN;
	w->opcode = w->head[0] & OPCODE;
	w->mask_at = 0;
	if (w->is_server)
		memcpy(w->mask, w->head + size - MASK_BYTES, MASK_BYTES);
	w->control_len = 0;
	w->in_payload = true;
	if (w->opcode & CONTROL)
		return 0;

	if (!w->in_message) {
		w->message_opcode = w->opcode;
		w->message_len = 0;
		w->utf8 = 0;
		w->in_message = true;
	}
	if (w->message_max && (w->left > w->message_max ||
			       w->message_len > w->message_max - w->left))
		return -CODE_TOO_BIG;
	w->message_len += w->left;
	return 0;
}

/* 1: a frame began; 0: more bytes are needed; < 0 as ws_next(). */
static int ws_take_head(struct ws *w, char **in, size_t *len)
{
	size_t size;
	int r;

	while (*len) {
		w->head[w->head_len++] = (uint8_t) * *in;
		(*in)++;
		(*len)--;
		if (w->head_len < HEAD_MIN)
			continue;
		r = w->head_len == HEAD_MIN ? ws_check_start(w) : 0;
		if (r)
			return r;
		size = ws_head_size(w);
		if (w->head_len < size)
			continue;
		r = ws_begin(w);
		w->head_len = 0;
		return r ? r : 1;
	}
	return 0;
}

/* -- payloads -------------------------------------------------------------- */

/* Of Close: nothing, or a code that may be sent and a reason in UTF-8. */
static int ws_check_close(const struct ws *w)
{
	uint32_t utf8 = 0;
	unsigned code;

	if (w->opcode != WS_CLOSE || !w->control_len)
		return 0;
	if (w->control_len == 1)
		return -CODE_PROTOCOL;
	code = (unsigned)w->control[0] << 8 | w->control[1];
	if (code < 1000 || (code > 1003 && code < 1007) ||
	    (code > 1014 && code < 3000) || code > 4999)
		return -CODE_PROTOCOL;
	if (!utf8_feed(&utf8, span_of(w->control + 2, w->control_len - 2u)) ||
	    utf8)
		return -CODE_NOT_UTF8;
	return 0;
}

static int ws_take_control(struct ws *w, char *piece, size_t len,
			   struct ws_event *ev)
{
	int r;

	if (len)
		memcpy(w->control + w->control_len, piece, len);
	w->control_len = (uint8_t)(w->control_len + len);
	if (w->left)
		return 0;
	w->in_payload = false;
	r = ws_check_close(w);
	if (r)
		return r;
	*ev = (struct ws_event){ .opcode = w->opcode,
				 .bytes = span_of(w->control, w->control_len),
				 .last = true };
	return 1;
}

static int ws_take_data(struct ws *w, char *piece, size_t len,
			struct ws_event *ev)
{
	const struct span bytes = span_of(piece, len);
	const bool last = w->fin && !w->left;

	if (w->message_opcode == WS_TEXT &&
	    (!utf8_feed(&w->utf8, bytes) || (last && w->utf8)))
		return -CODE_NOT_UTF8;
	w->in_payload = w->left;
	w->in_message = !last;
	if (!len && !last)
		return 0; /* an empty frame amid a message says nothing */
	*ev = (struct ws_event){ .opcode = w->message_opcode,
				 .bytes = bytes,
				 .last = last };
	return 1;
}

int ws_next(struct ws *w, char **in, size_t *len, struct ws_event *ev)
{
	size_t n;
	char *piece;
	int r;

	for (;;) {
		if (!w->in_payload) {
			r = ws_take_head(w, in, len);
			if (r <= 0)
				return r;
		}
		if (w->left && !*len)
			return 0;
		piece = *in;
		n = (size_t)MIN((uint64_t)*len, w->left);
		if (w->is_server)
			w->mask_at = ws_mask(piece, n, w->mask, w->mask_at);
		*in += n;
		*len -= n;
		w->left -= n;
		r = w->opcode & CONTROL ? ws_take_control(w, piece, n, ev)
					: ws_take_data(w, piece, n, ev);
		if (r)
			return r;
	}
}

/* -- writing --------------------------------------------------------------- */

int ws_put(struct buf *out, enum ws_opcode opcode, struct span bytes,
	   const uint8_t mask[MASK_BYTES])
{
	uint8_t head[HEAD_MAX] = { (uint8_t)(FIN | opcode) };
	unsigned wide, i;
	size_t head_len;
	char *room;
	int r;

	wide = bytes.len < LENGTH_16 ? 0 : bytes.len < 0x10000 ? 2 : 8;
	if (!wide)
		head[1] = (uint8_t)bytes.len;
	else
		head[1] = wide == 2 ? LENGTH_16 : LENGTH_64;
	for (i = 0; i < wide; i++)
		head[HEAD_MIN + i] =
			(uint8_t)((uint64_t)bytes.len >> 8 * (wide - 1 - i));
	head_len = HEAD_MIN + wide;
	if (mask) {
		head[1] |= MASKED;
		memcpy(head + head_len, mask, MASK_BYTES);
		head_len += MASK_BYTES;
	}

	if (bytes.len > SIZE_MAX - head_len)
		return -ENOBUFS;
	r = buf_reserve(out, head_len + bytes.len, &room);
	if (r)
		return r;
	memcpy(room, head, head_len);
	if (bytes.len)
		memcpy(room + head_len, bytes.ptr, bytes.len);
	if (mask)
		(void)ws_mask(room + head_len, bytes.len, mask, 0);
	buf_commit(out, head_len + bytes.len);
	return 0;
}

bool ws_accept(struct span key, char dst[WS_ACCEPT_SIZE])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[WS_KEY_SIZE + sizeof(guid) - 1];
	uint8_t bytes[KEY_BYTES], digest[SHA1_SIZE];
	size_t len;

	if (key.len != WS_KEY_SIZE ||
	    !base64_decode(key, bytes, sizeof(bytes), &len) || len != KEY_BYTES)
		return false;
	memcpy(text, key.ptr, WS_KEY_SIZE);
	memcpy(text + WS_KEY_SIZE, guid, sizeof(guid) - 1);
	sha1(span_of(text, sizeof(text)), digest);
	base64_encode(span_of(digest, sizeof(digest)), dst);
	return true;
}
