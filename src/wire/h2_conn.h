/* SPDX-License-Identifier: Apache-2.0 */
/* h2_conn.h - what the files of HTTP/2 share: connection, stream, block */
#pragma once

#include <nghttp2/nghttp2.h>

#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/wire/h2.h"
#include "src/wire/h2_guard.h"

enum {
	H2_SLOTS = 32,
	H2_OUT_ENOUGH = 64 * 1024, /* output is not gathered beyond this */
	H2_DIRECT_MIN = 4 * 1024,  /* writes that may skip the queue */
	H2_HEAP_MAX = 16 << 20,	   /* nghttp2's own, per connection */
	H2_HEAD_SEND_MAX = 256 << 10,
	H2_PSEUDO_MAX = 6,
	H2_REFUSED_FACTOR = 4, /* a head so much over its limit is abuse */
};

/* Fields to be sent, as nghttp2 wants them. */
struct h2_nvs {
	nghttp2_nv items[HEADERS_MAX + H2_PSEUDO_MAX];
	size_t count;
	char status[3];
};

/* Copies of fields, in one allocation. */
struct h2_fields;

struct h2_stream {
	struct h2_stream *next; /* of its slot */
	struct list event;	/* in h->events, when something is to tell */
	int32_t id;
	uint32_t code;	  /* once gone, or as asked by h2_reset() */
	bool told;	  /* the owner knows of it */
	bool gone;	  /* in nghttp2 */
	bool cut;	  /* nothing more of it is told, but closed */
	bool reset_asked; /* RST_STREAM is of our own wish */
	bool connect;	  /* both ways live on their own */
	bool answered;	  /* a server's final head is under way */
	bool got_final;	  /* a client's final head came */
	bool sending;	  /* a body may be written, or its end is due */
	bool ended;	  /* h2_end() or h2_break() */
	bool broken;	  /* h2_break() */
	bool remote_ended;
	bool deferred; /* nghttp2 waits for h2_write() or h2_end() */
	bool over_half, tell_room;
	const char *why;	    /* it was refused */
	void *data;		    /* the owner's */
	struct buf queue;	    /* to be sent */
	struct span direct;	    /* to be sent first, during h2_write() */
	struct h2_fields *trailers; /* to be sent last */
	uint64_t moved_ms;	    /* the queue began or moved */
	size_t unconsumed;	    /* told by data() */
	uint32_t window;
	uint64_t flowed; /* consumed since the window has this size */
};

/* A head or trailers while they arrive. Values are nghttp2's own buffers. */
struct h2_block {
	struct h2_stream *stream;
	bool trailers;
	const char *why; /* refused: malformed, or ... */
	bool too_large;
	size_t bytes;
	unsigned seen;
	struct span host;
	struct buf cookie; /* crumbs joined, when there were several */
	struct header *cookie_field;
	struct h2_head head;
	unsigned held_count;
	nghttp2_rcbuf *held[2 * (HEADERS_MAX + H2_PSEUDO_MAX + 1)];
};

struct h2 {
	enum h2_side side;
	struct h2_limits limits;
	const struct h2_ops *ops;
	void *ctx;
	nghttp2_session *session;
	nghttp2_mem mem;
	size_t heap; /* bytes nghttp2 holds */

	struct h2_stream *slots[H2_SLOTS];
	struct list events;
	unsigned open; /* told and not closed */
	struct h2_block *block;
	uint64_t block_ms;

	struct buf out;
	size_t given; /* of out, by the last h2_output() */
	bool out_secret;

	struct h2_guard guard;
	uint64_t now_ms;
	size_t unconsumed;
	uint32_t window;
	uint64_t flowed;

	bool inside;	 /* nghttp2 is at work */
	bool calling;	 /* an op may be running */
	bool lost;	 /* h2_drop(): nghttp2 is left alone */
	bool goaway_due; /* the final one of a shutdown */
	bool notice_sent, closing, goaway_seen, settings_seen;
	bool cutting; /* h2_goaway(): the error it says is the owner's */
	int failed;
	uint32_t code;
	char error[96];
};

/* h2_mem.c: counts, and wipes what it frees. */
void h2_mem_init(struct h2 *h);

/* h2_nv.c: -EINVAL when the head lacks what it needs. */
int h2_nvs_request(const struct h2_head *head, struct h2_nvs *ret);
int h2_nvs_response(const struct h2_head *head, struct h2_nvs *ret);
struct h2_fields *h2_fields_new(const struct headers *headers);
struct h2_fields *h2_fields_free(struct h2_fields *f);
const nghttp2_nv *h2_fields_items(const struct h2_fields *f, size_t *ret_count);
size_t h2_fields_size(const struct h2_fields *f);

/* h2_in.c */
void h2_in_callbacks(nghttp2_session_callbacks *cbs);
void h2_block_free(struct h2 *h);

/* h2_out.c */
void h2_out_callbacks(nghttp2_session_callbacks *cbs);
nghttp2_data_provider h2_out_provider(struct h2_stream *s);
void h2_out_drop_given(struct h2 *h);
/* Lets nghttp2 say what it has to say, until there is enough. */
void h2_out_pump(struct h2 *h);

/* h2_stream.c */
struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id);
struct h2_stream *h2_stream_new(struct h2 *h, int32_t id);
/* It will be told as closed (or refused); the first code counts. */
void h2_stream_gone(struct h2 *h, struct h2_stream *s, uint32_t code);
void h2_stream_tell_room(struct h2 *h, struct h2_stream *s);
/* Calls the ops for what happened to streams. */
void h2_events_tell(struct h2 *h);
/* Frees it untold. */
void h2_stream_forget(struct h2 *h, struct h2_stream *s);
void h2_streams_free(struct h2 *h);
void h2_streams_lose(struct h2 *h, uint32_t code);
size_t h2_streams_memory(const struct h2 *h);
/* Data that nobody will consume. */
void h2_stream_forgive(struct h2 *h, struct h2_stream *s);

/* h2.c: the connection is over, GOAWAY is queued; the first reason counts. */
void h2_fail(struct h2 *h, int r, uint32_t code, const char *why);
