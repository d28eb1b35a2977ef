/* SPDX-License-Identifier: Apache-2.0 */
/* h2.c - one HTTP/2 connection: its life, and the calls of its owner
 *
 * How it works: nghttp2 keeps the states of RFC 9113 and does HPACK. Around it
 * stand: h2_guard.c, which sees every frame header first and counts abuse;
 * h2_in.c, which makes heads of header blocks and refuses what nghttp2 would
 * let pass; h2_out.c, which feeds bodies and gathers output; h2_stream.c, which
 * keeps the streams and tells of their ends; h2_mem.c, nghttp2's allocator.
 *
 * Bounded memory, per connection with the default limits: nghttp2 itself at
 * most H2_HEAP_MAX (25 KiB when idle, 16 of them a frame buffer that is touched
 * as far as heads are long), h->out at most 96 KiB while something is sent, one
 * head (12 KiB and its fields) while it arrives, and per stream half a KiB and
 * a queue of 64 KiB while it is held back. Received data is never held here.
 *
 * Secrets: a field marked sensitive enters no dynamic table. Its value is in
 * nghttp2's copy of the head until the frame is made, then, HPACK-encoded, in
 * nghttp2's one frame buffer until it was copied to h->out, and there until it
 * was sent. All three are overwritten when they are let go. What a peer says
 * back is wiped with its block, unless the peer had it indexed: then the table
 * of that direction holds it as long as HPACK demands.
 */

#include "src/wire/h2_conn.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/err.h"

enum { OUT_MAX = H2_OUT_ENOUGH + 32 * 1024, FRAMES_QUEUED_MAX = 512 };

const char *h2_code_name(uint32_t code)
{
	switch (code) {
#define H2_CODE(number, id) \
	case (number):      \
		return #id;
#include "src/wire/h2_code.def"
#undef H2_CODE
	default:
		return "UNKNOWN";
	}
}

void h2_fail(struct h2 *h, int r, uint32_t code, const char *why)
{
	if (h->failed)
		return;
	h->failed = r;
	h->code = code;
	(void)snprintf(h->error, sizeof(h->error), "%s", why);
	/* nothing happens when it has said so itself */
	(void)nghttp2_session_terminate_session(h->session, code);
}

static void limits_set(struct h2_limits *l, const struct h2_limits *given)
{
	*l = given ? *given : (struct h2_limits){ 0 };
	l->streams = l->streams ?: 100;
	l->header_bytes = l->header_bytes ?: 64 << 10;
	l->queue_bytes = l->queue_bytes ?: 64 << 10;
	l->window = MIN(l->window ?: 256 << 10, (uint32_t)INT32_MAX);
	l->window_max = MIN(MAX(l->window_max ?: 1 << 20, l->window),
			    (uint32_t)INT32_MAX);
	l->conn_window = MIN(l->conn_window ?: 1 << 20, (uint32_t)INT32_MAX);
	l->conn_window_max =
		MIN(MAX(l->conn_window_max ?: 4 << 20, l->conn_window),
		    (uint32_t)INT32_MAX);
	l->resets = l->resets ?: 500;
	l->chores = l->chores ?: 1000;
}

static int settings_submit(struct h2 *h)
{
	const struct h2_limits *l = &h->limits;
	nghttp2_settings_entry s[6];
	size_t n = 0;

	s[n++] = (nghttp2_settings_entry){ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
					   l->window };
	s[n++] =
		(nghttp2_settings_entry){ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
					  l->header_bytes };
	if (h->side == H2_CLIENT) {
		s[n++] = (nghttp2_settings_entry){ NGHTTP2_SETTINGS_ENABLE_PUSH,
						   0 };
	} else {
		s[n++] = (nghttp2_settings_entry){
			NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, l->streams
		};
		s[n++] = (nghttp2_settings_entry){
			NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1
		};
		if (l->extended_connect)
			s[n++] = (nghttp2_settings_entry){
				NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1
			};
	}
	return nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, s, n);
}

static int session_new(struct h2 *h, nghttp2_session_callbacks *cbs,
		       nghttp2_option *opt)
{
	h2_in_callbacks(cbs);
	h2_out_callbacks(cbs);
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_no_closed_streams(opt, 1);
	/* h2_guard.c counts resets, by the caller's clock and with a code */
	nghttp2_option_set_stream_reset_rate_limit(opt, UINT32_MAX, UINT32_MAX);
	nghttp2_option_set_max_send_header_block_length(opt, H2_HEAD_SEND_MAX);
	if (h->side == H2_SERVER)
		return nghttp2_session_server_new3(&h->session, cbs, h, opt,
						   &h->mem);
	return nghttp2_session_client_new3(&h->session, cbs, h, opt, &h->mem);
}

static int session_set_up(struct h2 *h)
{
	nghttp2_session_callbacks *cbs = NULL;
	nghttp2_option *opt = NULL;
	int r;

	r = nghttp2_session_callbacks_new(&cbs);
	r = r ?: nghttp2_option_new(&opt);
	r = r ?: session_new(h, cbs, opt);
	r = r ?: settings_submit(h);
	r = r
		    ?: nghttp2_session_set_local_window_size(
			       h->session, NGHTTP2_FLAG_NONE, 0,
			       (int32_t)h->limits.conn_window);
	nghttp2_session_callbacks_del(cbs);
	nghttp2_option_del(opt);
	return r ? err_origin(-ENOMEM) : 0;
}

int h2_new(enum h2_side side, const struct h2_limits *limits,
	   const struct h2_ops *ops, void *ctx, struct h2 **ret)
{
	struct h2 *h = must_alloc(sizeof(*h));
	int r;

	h->side = side;
	limits_set(&h->limits, limits);
	h->ops = ops;
	h->ctx = ctx;
	h->window = h->limits.conn_window;
	buf_init(&h->out, OUT_MAX);
	list_init(&h->events);
	h2_guard_init(&h->guard, side == H2_SERVER, h->limits.chores,
		      h->limits.resets);
	h2_mem_init(h);
	r = session_set_up(h);
	if (r) {
		h2_free(h);
		return err_trace(r);
	}
	*ret = h;
	return 0;
}

struct h2 *h2_free(struct h2 *h)
{
	if (!h)
		return NULL;
	must(!h->calling);
	h2_block_free(h);
	nghttp2_session_del(h->session);
	h2_streams_free(h);
	buf_wipe(&h->out);
	free(h);
	return NULL;
}

void h2_drop(struct h2 *h, uint32_t code)
{
	must(!h->calling);
	h->calling = h->lost = true;
	h2_streams_lose(h, code);
	h->calling = false;
}

static void fail_of_nghttp2(struct h2 *h, int error)
{
	uint32_t code = NGHTTP2_PROTOCOL_ERROR;

	if (error == NGHTTP2_ERR_FLOODED)
		code = NGHTTP2_ENHANCE_YOUR_CALM;
	else if (error == NGHTTP2_ERR_NOMEM)
		code = NGHTTP2_INTERNAL_ERROR;
	h2_fail(h, error == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO, code,
		nghttp2_strerror(error));
}

int h2_input(struct h2 *h, uint64_t now_ms, struct span bytes)
{
	struct h2_verdict verdict = { 0 };
	size_t take;
	ssize_t n;

	must(!h->calling);
	h->now_ms = now_ms;
	if (h->failed || h->lost)
		return h->failed ?: -ECONNABORTED;
	h->calling = h->inside = true;
	take = h2_guard_watch(&h->guard, now_ms, bytes, &verdict);
	n = nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes.ptr,
				     take);
	h->inside = false;
	if (n < 0)
		fail_of_nghttp2(h, (int)n);
	if (verdict.why)
		h2_fail(h, -EPROTO, verdict.code, verdict.why);
	/* whether nghttp2 gave up is seen by its GOAWAY */
	h2_out_pump(h);
	h2_events_tell(h);
	h->calling = false;
	return h->failed;
}

const char *h2_error(const struct h2 *h)
{
	return h->error;
}

uint32_t h2_error_code(const struct h2 *h)
{
	return h->code;
}

struct span h2_output(struct h2 *h, uint64_t now_ms)
{
	must(!h->calling);
	h->now_ms = now_ms;
	h->calling = true;
	h2_out_pump(h);
	h2_events_tell(h);
	h->calling = false;
	h->given = buf_len(&h->out);
	if (!h->given) {
		h->out_secret = false;
		buf_fini(&h->out);
	}
	return buf_peek(&h->out);
}

bool h2_wants_write(const struct h2 *h)
{
	return buf_len(&h->out) > h->given ||
	       (!h->lost &&
		(h->goaway_due || nghttp2_session_want_write(h->session)));
}

bool h2_wants_read(const struct h2 *h)
{
	return !h->failed && !h->lost &&
	       nghttp2_session_want_read(h->session) &&
	       nghttp2_session_get_outbound_queue_size(h->session) <
		       FRAMES_QUEUED_MAX;
}

bool h2_is_over(const struct h2 *h)
{
	return (h->failed || h->lost ||
		!nghttp2_session_want_read(h->session)) &&
	       !h2_wants_write(h);
}

void h2_goaway(struct h2 *h, uint32_t code)
{
	h->closing = h->cutting = true;
	(void)nghttp2_session_terminate_session(h->session, code);
}

void h2_shutdown(struct h2 *h)
{
	if (h->side == H2_SERVER && !h->notice_sent) {
		h->notice_sent = true;
		(void)nghttp2_submit_shutdown_notice(h->session);
		return;
	}
	h->goaway_due |= !h->closing;
	h->closing = true;
}

int h2_ping(struct h2 *h)
{
	return nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL)
		       ? err_origin(-ENOMEM)
		       : 0;
}

unsigned h2_peer_max_streams(const struct h2 *h)
{
	return nghttp2_session_get_remote_settings(
		h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool h2_peer_extended_connect(const struct h2 *h)
{
	return nghttp2_session_get_remote_settings(
		       h->session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) ==
	       1;
}

bool h2_peer_settings_seen(const struct h2 *h)
{
	return h->settings_seen;
}

unsigned h2_open_streams(const struct h2 *h)
{
	return h->open;
}

bool h2_is_open(const struct h2 *h)
{
	return !h->failed && !h->lost && !h->closing && !h->goaway_seen &&
	       nghttp2_session_check_request_allowed(h->session);
}

uint64_t h2_head_since(const struct h2 *h)
{
	return h->block_ms;
}

size_t h2_memory(const struct h2 *h)
{
	return sizeof(*h) + h->heap + h->out.size + h2_streams_memory(h) +
	       (h->block ? sizeof(*h->block) + h->block->cookie.size : 0);
}
