/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - both bodies of an exchange, each as fast as its reader
 *
 * How it works: flow_run() moves bytes client -> origin and origin -> client
 * until neither moves, then asks both streams to call back for exactly what is
 * missing. A direction reads only while its output queue is short, so a slow
 * reader holds back its own writer and nobody else. Reads go into the worker's
 * scratch, output is put together in its assembly buffer: a small response,
 * head and body, is one read and one write.
 */

#include "gateway/session/exchange.h"

#include "gateway/pipeline/redact.h"
#include "gateway/session/h1_emit.h"
#include "gateway/session/session.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/secret.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	READ_BYTES = 128 * 1024,
	/* No reading while this much waits to be sent. Not less than what
	 * WRITABLE comes below, or the loop would spin in between. */
	QUEUE_BYTES = STREAM_UNSENT_MAX / 2,
	/* Pipelined bytes that are taken in while a response is awaited. */
	AHEAD_BYTES = 16 * 1024,
	/* Then the other sessions of the loop have their turn. */
	ROUNDS_MAX = 16,
};

/* What one attempt to move bytes came to. */
enum moved {
	MOVED_NOTHING, /* would block, or nothing to do */
	MOVED_SOME,
	MOVED_END, /* the exchange ended; it may be gone */
};

static struct buf assembly_of(struct exchange *x)
{
	return (struct buf){ .data = x->session->worker->assembly,
			     .size = WORKER_SCRATCH_BYTES,
			     .max = WORKER_SCRATCH_BYTES };
}

static void flow_deadline(struct exchange *x)
{
	const struct config *c = x->session->worker->config;

	session_deadline(x->session, x->state == EXCHANGE_TUNNEL
					     ? c->tunnel_idle_ms
					     : c->first_byte_ms);
}

/* -- client to origin ------------------------------------------------------ */

static enum moved upload_refused(struct exchange *x, enum h1_error error)
{
	exchange_fail(x, AUDIT_REASON_MALFORMED, 400, h1_error_text(error));
	return MOVED_END;
}

/* The origin takes no more of the request; its answer may still come. */
static void upload_break(struct exchange *x)
{
	x->upload_broken = true;
	x->client_keep = false;
	x->origin_keep = false;
}

static enum moved upload_feed(struct exchange *x, struct span *in)
{
	struct buf out = assembly_of(x);
	struct body_sink sink = { .out = &out, .to = x->origin->stream };
	enum h1_error error = body_feed(&x->upload, in, &sink);

	if (error)
		return upload_refused(x, error);
	if (sink_flush(&sink))
		upload_break(x);
	flow_deadline(x);
	return MOVED_SOME;
}

static enum moved upload_ended(struct exchange *x)
{
	struct buf out = assembly_of(x);
	struct body_sink sink = { .out = &out, .to = x->origin->stream };

	x->client_ended = true;
	if (!body_end(&x->upload, &sink)) {
		exchange_fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, NULL);
		return MOVED_END;
	}
	if (x->state == EXCHANGE_TUNNEL)
		stream_shutdown_write(x->origin->stream);
	return MOVED_SOME;
}

static bool upload_is_open(const struct exchange *x)
{
	return !x->upload.done && !x->upload_broken;
}

static enum moved upload_move(struct exchange *x)
{
	struct session *s = x->session;
	enum moved moved;
	struct span in;
	ssize_t n;

	if (!upload_is_open(x) ||
	    stream_unsent(x->origin->stream) >= QUEUE_BYTES)
		return MOVED_NOTHING;
	if (buf_len(&s->in)) {
		in = buf_peek(&s->in);
		moved = upload_feed(x, &in);
		if (moved != MOVED_END)
			buf_consume(&s->in, buf_len(&s->in) - in.len);
		return moved;
	}
	n = stream_read(s->client, s->worker->scratch, READ_BYTES);
	if (n == STREAM_AGAIN)
		return MOVED_NOTHING;
	if (n == 0)
		return upload_ended(x);
	if (n < 0) {
		exchange_fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, NULL);
		return MOVED_END;
	}
	in = span_of(s->worker->scratch, (size_t)n);
	moved = upload_feed(x, &in);
	if (moved != MOVED_END && in.len && buf_put(&s->in, in)) {
		exchange_fail(x, AUDIT_REASON_MALFORMED, 400, NULL);
		return MOVED_END;
	}
	return moved;
}

/* While the response is awaited: what comes ahead is kept a little, and a
 * client that is gone is noticed. */
static bool ahead_is_open(const struct exchange *x)
{
	return !upload_is_open(x) && !x->client_ended && !x->upload_broken &&
	       buf_len(&x->session->in) < AHEAD_BYTES;
}

static enum moved ahead_move(struct exchange *x)
{
	struct session *s = x->session;
	ssize_t n;

	if (!ahead_is_open(x))
		return MOVED_NOTHING;
	n = stream_read(s->client, s->worker->scratch, AHEAD_BYTES);
	if (n == STREAM_AGAIN)
		return MOVED_NOTHING;
	if (n < 0 || buf_put(&s->in, span_of(s->worker->scratch, (size_t)n))) {
		exchange_fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, NULL);
		return MOVED_END;
	}
	if (n == 0)
		x->client_ended = true;
	return MOVED_SOME;
}

/* -- origin to client ------------------------------------------------------ */

static int redact_trailers(void *ctx, struct span trailers, struct buf *out)
{
	return redact_value(ctx, trailers, out);
}

static struct h1_reply reply_of(const struct exchange *x,
				const struct h1_response *r)
{
	bool unbounded = r->body == H1_BODY_CHUNKED || r->body == H1_BODY_CLOSE;

	return (struct h1_reply){
		.interim = r->status < 200,
		.upgrade = r->status == 101,
		.chunked = unbounded && x->head.minor == 1,
		.close = !x->client_keep,
		.keep_old = x->client_keep && x->head.minor == 0,
	};
}

/* A final head: what becomes of both connections is known now. */
static void response_settle(struct exchange *x, const struct h1_response *r)
{
	bool unbounded = r->body == H1_BODY_CHUNKED || r->body == H1_BODY_CLOSE;

	x->answered = true;
	x->audit.status = r->status;
	x->origin_keep = r->keep_alive && r->body != H1_BODY_CLOSE;
	if (!x->upload.done) /* an early answer: the rest is not waited for */
		x->client_keep = x->origin_keep = false;
	if (unbounded && x->head.minor == 0)
		x->client_keep = false;
	if (x->session->worker->draining)
		x->client_keep = false;
}

static void tunnel_open(struct exchange *x)
{
	exchange_move(x, EXCHANGE_TUNNEL);
	x->audit.kind = AUDIT_TUNNEL;
	x->client_keep = x->origin_keep = false;
	body_init(&x->upload, H1_BODY_TUNNEL, 0, false);
	body_init(&x->download, H1_BODY_TUNNEL, 0, false);
}

static const char *response_problem(const struct exchange *x,
				    const struct h1_response *r)
{
	if (r->status == 101 && !x->head.upgrade)
		return "the origin switched protocols unasked";
	return NULL;
}

static enum moved response_refused(struct exchange *x, const char *why)
{
	exchange_fail(x, AUDIT_REASON_ORIGIN_FAILED, 502, why);
	return MOVED_END;
}

/* One response head at the front of *in, interim or final. */
static enum moved response_head(struct exchange *x, struct span *in, size_t len,
				struct body_sink *sink)
{
	struct h1_response response;
	struct h1_reply reply;
	enum h1_error error;
	const char *problem;

	error = h1_parse_response(span_of(in->ptr, len), x->head.method,
				  &response);
	problem = error ? h1_error_text(error) : response_problem(x, &response);
	if (problem)
		return response_refused(x, problem);
	if (!x->audit.first_byte_us)
		x->audit.first_byte_us = clock_us() - x->audit.start_us;
	x->scan = (struct h1_scan){ 0 };
	*in = span_from(*in, len);
	if (response.status >= 200 || response.status == 101)
		response_settle(x, &response);
	else if (x->head.minor == 0)
		return MOVED_SOME; /* HTTP/1.0 knows no interim answers */

	reply = reply_of(x, &response);
	if (h1_emit_response(&x->request, &response, &reply, sink->out))
		return response_refused(x, "the response head is too large");
	if (response.status == 101)
		tunnel_open(x);
	else if (x->answered)
		body_init(&x->download, response.body, response.length,
			  reply.chunked);
	return MOVED_SOME;
}

/* Everything that *in holds. What is left of it is an incomplete head. */
static enum moved download_feed(struct exchange *x, struct span *in)
{
	uint32_t limit = x->session->worker->config->head_bytes;
	struct buf out = assembly_of(x);
	struct body_sink sink = { .out = &out,
				  .to = x->session->client,
				  .ctx = &x->request };
	enum h1_error error;
	int len;

	if (x->request.injection_count)
		sink.trailers = redact_trailers;
	while (in->len && !x->answered) {
		len = h1_scan(&x->scan, *in, limit);
		if (!len)
			break;
		if (len < 0)
			return response_refused(
				x, h1_error_text((enum h1_error) - len));
		if (response_head(x, in, (size_t)len, &sink) == MOVED_END)
			return MOVED_END;
	}
	if (x->answered) {
		error = body_feed(&x->download, in, &sink);
		if (error)
			return response_refused(x, h1_error_text(error));
	}
	if (sink_flush(&sink)) {
		exchange_fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, NULL);
		return MOVED_END;
	}
	if (x->answered && x->download.done && in->len)
		x->origin_keep = false; /* it said more than it was asked */
	flow_deadline(x);
	return MOVED_SOME;
}

static enum moved download_ended(struct exchange *x, int error)
{
	struct buf out = assembly_of(x);
	struct body_sink sink = { .out = &out, .to = x->session->client };

	if (!x->answered) {
		if (exchange_retry(x))
			return MOVED_END; /* begun anew */
		exchange_fail(x, AUDIT_REASON_ORIGIN_FAILED, 502,
			      error ? stream_tls_error(x->origin->stream)
				    : "the origin closed without an answer");
		return MOVED_END;
	}
	x->origin_keep = false;
	if (error || !body_end(&x->download, &sink)) {
		exchange_fail(x, AUDIT_REASON_ORIGIN_FAILED, 502,
			      "the origin broke off in the middle");
		return MOVED_END;
	}
	if (sink_flush(&sink)) {
		exchange_fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, NULL);
		return MOVED_END;
	}
	if (x->state == EXCHANGE_TUNNEL)
		stream_shutdown_write(x->session->client);
	return MOVED_SOME;
}

/* A head that came in parts is put together in origin->in. */
static enum moved download_more(struct exchange *x, struct span got)
{
	struct origin *o = x->origin;
	enum moved moved;
	struct span in;

	if (!buf_len(&o->in)) {
		in = got;
		moved = download_feed(x, &in);
		if (moved == MOVED_END || !in.len || x->answered)
			return moved;
		return buf_put(&o->in, in)
			       ? response_refused(x, "the head is too large")
			       : MOVED_SOME;
	}
	if (buf_put(&o->in, got))
		return response_refused(x, "the head is too large");
	in = buf_peek(&o->in);
	moved = download_feed(x, &in);
	if (moved == MOVED_END)
		return moved;
	if (x->answered)
		buf_clear(&o->in);
	else
		buf_consume(&o->in, buf_len(&o->in) - in.len);
	return MOVED_SOME;
}

static enum moved download_move(struct exchange *x)
{
	bool injected = x->request.injection_count, head = !x->answered;
	struct session *s = x->session;
	char *scratch = s->worker->scratch;
	enum moved moved;
	ssize_t n;

	if ((x->answered && x->download.done) ||
	    stream_unsent(s->client) >= QUEUE_BYTES)
		return MOVED_NOTHING;
	n = stream_read(x->origin->stream, scratch, READ_BYTES);
	if (n == STREAM_AGAIN)
		return MOVED_NOTHING;
	if (n <= 0)
		return download_ended(x, (int)n);
	moved = download_more(x, span_of(scratch, (size_t)n));
	/* heads and trailers may echo a credential */
	if (injected && (head || moved == MOVED_END || x->download.done))
		secret_wipe(scratch, (size_t)n);
	return moved;
}

/* -- both ------------------------------------------------------------------ */

static void flow_wait(struct exchange *x)
{
	struct stream *client = x->session->client;
	struct stream *origin = x->origin->stream;
	unsigned from_client = 0, from_origin = 0;

	if (upload_is_open(x)) {
		if (stream_unsent(origin) >= QUEUE_BYTES)
			from_origin |= STREAM_WRITABLE;
		else
			from_client |= STREAM_READABLE;
	} else if (ahead_is_open(x)) {
		from_client |= STREAM_READABLE;
	}
	if (!(x->answered && x->download.done)) {
		if (stream_unsent(client) >= QUEUE_BYTES)
			from_client |= STREAM_WRITABLE;
		else
			from_origin |= STREAM_READABLE;
	}
	stream_want(client, from_client);
	stream_want(origin, from_origin);
}

/* Is everything said that will be said? */
static bool flow_is_done(const struct exchange *x)
{
	if (!x->answered || !x->download.done)
		return false;
	if (x->state == EXCHANGE_TUNNEL)
		return x->upload.done || x->upload_broken;
	/* an early answer ends the exchange; the connection closes after it */
	return true;
}

void flow_run(struct exchange *x)
{
	enum moved up, down, ahead;
	unsigned rounds = 0;

	do {
		up = upload_move(x);
		if (up == MOVED_END)
			return;
		down = download_move(x);
		if (down == MOVED_END)
			return;
		if (flow_is_done(x)) {
			exchange_finish(x);
			return;
		}
		ahead = ahead_move(x);
		if (ahead == MOVED_END)
			return;
	} while ((up == MOVED_SOME || down == MOVED_SOME ||
		  ahead == MOVED_SOME) &&
		 ++rounds < ROUNDS_MAX);
	flow_wait(x);
}

static void on_origin(struct stream *s, void *ctx, unsigned events)
{
	(void)s;
	(void)events;
	flow_run(ctx);
}

void exchange_on_client(struct exchange *x, unsigned events)
{
	(void)events;
	flow_run(x);
}

void flow_start(struct exchange *x)
{
	stream_set_owner(x->origin->stream, on_origin, x);
	flow_deadline(x);
	flow_run(x);
}
