/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_reply.c - what a server of the sandbox answers, on its way back
 *
 * How it works: the head is gathered and passed at once; interim replies are
 * skipped, as ours are our own. The body is taken out of the server's framing
 * and put into ours, each piece as it comes, while the client takes it; a body
 * that only the end of the connection ends gets chunks. Trailers are dropped.
 * After 101 both connections are joined in the kernel, whatever they speak.
 */

#include "src/base/err.h"
#include "src/execd/proxy/exchange_inside.h"
#include "src/execd/proxy/head.h"

enum {
	INTERIM_MAX = 16,		/* replies of 1xx */
	CLIENT_UNSENT_MAX = 128 * 1024, /* then the server's body waits */
};

/* -- another protocol ------------------------------------------------------ */

static void exchange_on_spliced(void *ctx, uint64_t to_server,
				uint64_t to_client, int error)
{
	struct proxy *p = ctx;

	(void)to_server;
	(void)to_client;
	(void)error;
	p->tunnels--;
}

static void exchange_switch(struct exchange *x, const struct h1_response *head,
			    struct span behind)
{
	struct buf out = BUF_INIT(HEAD_MAX + 1024);
	struct stream *client, *server = take_ptr(x->server);
	struct httpd_request *r = take_ptr(x->r);
	struct proxy *p = x->proxy;
	struct splice *splice;
	int failed;

	failed = head_put_switch(&out, head) || stream_unread(server, behind);
	exchange_free(x);
	stream_set_owner(server, NULL, NULL);
	client = httpd_take_stream(r);
	if (client && !failed)
		failed = stream_write(client, buf_peek(&out));
	buf_fini(&out);
	if (client && !failed &&
	    !stream_splice(client, server, 0, exchange_on_spliced, p,
			   &splice)) {
		p->tunnels++;
		return;
	}
	(void)stream_free(client);
	(void)stream_free(server);
}

/* -- the reply's body ------------------------------------------------------ */

/* To the client. False: it is over, or he is gone. */
static bool exchange_pass(struct exchange *x, struct span piece)
{
	if (!piece.len)
		return true;
	if (httpd_stream_write(x->r, piece)) {
		/* he left: .gone will be called */
		x->full = true;
		exchange_rearm(x);
		return false;
	}
	return true;
}

static void exchange_pass_chunks(struct exchange *x, struct span in)
{
	struct span piece;

	while (in.len && !x->chunked.done) {
		if (h1_chunked_next(&x->chunked, &in, &piece, NULL)) {
			exchange_fail(x);
			return; /* x is gone */
		}
		if (!exchange_pass(x, piece))
			return;
	}
	if (x->chunked.done)
		exchange_finish(x, !in.len);
}

static void exchange_pass_length(struct exchange *x, struct span in)
{
	const size_t n = (size_t)MIN((uint64_t)in.len, x->left);

	x->left -= n;
	if (exchange_pass(x, span_of(in.ptr, n)) && !x->left)
		exchange_finish(x, n == in.len);
}

/* x may be gone. */
static void exchange_feed(struct exchange *x, struct span in)
{
	switch (x->framing) {
	case H1_BODY_LENGTH:
		exchange_pass_length(x, in);
		return;
	case H1_BODY_CHUNKED:
		exchange_pass_chunks(x, in);
		return;
	case H1_BODY_CLOSE:
		(void)exchange_pass(x, in);
		return;
	case H1_BODY_NONE:
	case H1_BODY_TUNNEL:
		break;
	}
	must(!"a body where there is none");
}

static void exchange_on_room(void *user, struct httpd_request *r)
{
	struct exchange *x = user;

	(void)r;
	x->full = false;
	exchange_rearm(x);
}

void exchange_read_body(struct exchange *x)
{
	struct httpd_request *r = x->r;
	char chunk[CHUNK_BYTES];
	ssize_t n;

	if (httpd_stream_unsent(r) >= CLIENT_UNSENT_MAX) {
		x->full = true;
		exchange_rearm(x);
		httpd_stream_on_room(r, exchange_on_room);
		return;
	}
	n = stream_read(x->server, chunk, sizeof(chunk));
	if (n == STREAM_AGAIN)
		return;
	if (n > 0)
		exchange_feed(x, span_of(chunk, (size_t)n));
	else if (!n && x->framing == H1_BODY_CLOSE)
		exchange_finish(x, false);
	else
		exchange_fail(x);
	/* x may be gone */
}

/* -- the reply's head ------------------------------------------------------ */

/* What a reply to HEAD says of its length. */
static bool head_length(const struct h1_response *head, uint64_t *ret)
{
	const struct header *h =
		headers_find(&head->headers, HEADER_CONTENT_LENGTH);

	return h && span_parse_u64(h->value, ret);
}

static bool reply_is_bare(const struct h1_response *head)
{
	return head->status == 204 || head->status == 304;
}

/* Starts the reply; one without a body is over with that. */
static void exchange_reply(struct exchange *x, const struct h1_response *head)
{
	struct httpd_request *r = x->r;
	uint64_t length = head->length;

	if (reply_is_bare(head)) {
		x->r = NULL;
		httpd_reply(r, head->status, NULL, SPAN(""));
		return;
	}
	x->replying = true;
	if (head->body == H1_BODY_LENGTH ||
	    (head->body == H1_BODY_NONE && head_length(head, &length)))
		httpd_stream_start_sized(r, head->status, NULL, length,
					 exchange_on_gone);
	else
		httpd_stream_start(r, head->status, NULL, exchange_on_gone);
	httpd_stream_set_room(r, CLIENT_UNSENT_MAX);
	httpd_stream_on_room(r, exchange_on_room);
}

/* x may be gone. */
static void exchange_on_head(struct exchange *x, const struct h1_response *head,
			     struct span behind)
{
	struct buf in;

	if (head->status == 101) {
		if (x->upgrade && x->body_over)
			exchange_switch(x, head, behind);
		else
			exchange_fail(x);
		return; /* x is gone */
	}
	if (!head_set_reply(x->r, head)) {
		exchange_fail(x);
		return; /* x is gone */
	}
	x->keep_alive = head->keep_alive;
	x->framing = head->body;
	x->left = head->length;
	exchange_reply(x, head);
	buf_wipe(&x->request);
	in = x->in; /* behind lies in it */
	buf_init(&x->in, HEAD_MAX);
	if (x->framing == H1_BODY_NONE ||
	    (x->framing == H1_BODY_LENGTH && !x->left))
		exchange_finish(x, !behind.len);
	else if (behind.len)
		exchange_feed(x, behind);
	buf_fini(&in);
}

/* Looks whether a head is whole; skips interim ones. x may be gone. */
static void exchange_scan_head(struct exchange *x)
{
	struct h1_response head;
	struct span all;
	int len;

	for (;;) {
		all = buf_peek(&x->in);
		len = h1_scan(&x->scan, all, HEAD_MAX);
		if (!len)
			return;
		if (len < 0 || x->interims > INTERIM_MAX ||
		    h1_parse_response(span_of(all.ptr, (size_t)len),
				      httpd_method(x->r), &head)) {
			exchange_fail(x);
			return; /* x is gone */
		}
		if (head.status >= 200 || head.status == 101) {
			exchange_on_head(x, &head, span_from(all, (size_t)len));
			return; /* x may be gone */
		}
		x->interims++;
		buf_consume(&x->in, (size_t)len);
		x->scan = (struct h1_scan){ 0 };
	}
}

void exchange_read_head(struct exchange *x)
{
	char *room;
	ssize_t n;

	/* h1_scan() refuses what is longer than HEAD_MAX */
	must(buf_reserve(&x->in, CHUNK_BYTES, &room) == 0);
	n = stream_read(x->server, room, CHUNK_BYTES);
	if (n == STREAM_AGAIN)
		return;
	if (n <= 0) {
		exchange_end_early(x);
		return; /* x may be gone */
	}
	x->pooled = false;
	buf_commit(&x->in, (size_t)n);
	exchange_scan_head(x);
	/* x may be gone */
}
