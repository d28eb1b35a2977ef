/* SPDX-License-Identifier: Apache-2.0 */
/* forward_reply.c - what a server answers, on its way back
 *
 * How it works: the head is gathered and passed at once; interim replies are
 * passed too, but for 100, as ours is our own. The body is taken out of the
 * server's framing and put into ours, each piece as it comes, while the client
 * takes it; a body that only the end of the connection ends gets chunks.
 * Trailers stand behind it where it has chunks there, else nowhere.
 * After 101 both connections are joined in the kernel, whatever they speak.
 */

#include "src/base/err.h"
#include "src/httpd/forward_inside.h"
#include "src/httpd/forward_head.h"

enum {
	INTERIM_MAX = 16,		/* replies of 1xx */
	CLIENT_UNSENT_MAX = 128 * 1024, /* then the server's body waits */
};

/* -- another protocol ------------------------------------------------------ */

static void forward_switch(struct forward *x, const struct h1_response *head,
			   struct span behind)
{
	struct buf out = BUF_INIT(FORWARD_REPLY_HEAD_MAX + 1024);
	struct stream *client, *server = take_ptr(x->server);
	int failed;

	failed = forward_put_switch(&out, head, x->switch_lines) ||
		 stream_unread(server, behind);
	stream_set_owner(server, NULL, NULL);
	client = httpd_take_stream(take_ptr(x->r));
	if (client && !failed)
		failed = stream_write(client, buf_peek(&out));
	buf_fini(&out);
	if (failed)
		client = stream_free(client);
	forward_join(x, client, server);
}

/* -- the reply's body ------------------------------------------------------ */

/* To the client. False: it is over, or he is gone. */
static bool forward_pass(struct forward *x, struct span piece)
{
	if (!piece.len)
		return true;
	x->result.response_bytes += piece.len;
	if (httpd_stream_write(x->r, piece)) {
		/* he left: .gone will be called */
		x->full = true;
		forward_rearm(x);
		return false;
	}
	return true;
}

static void forward_pass_chunks(struct forward *x, struct span in)
{
	struct span piece;

	while (in.len && !x->chunked.done) {
		if (h1_chunked_next(&x->chunked, &in, &piece, &x->trailers)) {
			forward_fail(x);
			return; /* x is gone */
		}
		if (!forward_pass(x, piece))
			return;
	}
	if (x->chunked.done)
		forward_finish(x, !in.len);
}

static void forward_pass_length(struct forward *x, struct span in)
{
	const size_t n = (size_t)MIN((uint64_t)in.len, x->left);

	x->left -= n;
	if (forward_pass(x, span_of(in.ptr, n)) && !x->left)
		forward_finish(x, n == in.len);
}

/* x may be gone. */
static void forward_feed(struct forward *x, struct span in)
{
	switch (x->framing) {
	case H1_BODY_LENGTH:
		forward_pass_length(x, in);
		return;
	case H1_BODY_CHUNKED:
		forward_pass_chunks(x, in);
		return;
	case H1_BODY_CLOSE:
		(void)forward_pass(x, in);
		return;
	case H1_BODY_NONE:
	case H1_BODY_TUNNEL:
		break;
	}
	must(!"a body where there is none");
}

static void forward_on_room(void *user, struct httpd_request *r)
{
	struct forward *x = user;

	(void)r;
	x->full = false;
	forward_rearm(x);
}

void forward_read_body(struct forward *x)
{
	struct httpd_request *r = x->r;
	char chunk[FORWARD_CHUNK_BYTES];
	ssize_t n;

	if (httpd_stream_unsent(r) >= CLIENT_UNSENT_MAX) {
		x->full = true;
		forward_rearm(x);
		httpd_stream_on_room(r, forward_on_room);
		return;
	}
	n = stream_read(x->server, chunk, sizeof(chunk));
	if (n == STREAM_AGAIN)
		return;
	if (n > 0)
		forward_feed(x, span_of(chunk, (size_t)n));
	else if (!n && x->framing == H1_BODY_CLOSE)
		forward_finish(x, false);
	else
		forward_fail(x);
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
static void forward_reply(struct forward *x, const struct h1_response *head)
{
	struct httpd_request *r = x->r;
	uint64_t length = head->length;

	x->result.status = head->status;
	if (reply_is_bare(head)) {
		x->r = NULL;
		httpd_reply(r, head->status, NULL, SPAN(""));
		return;
	}
	x->replying = true;
	if (head->body == H1_BODY_LENGTH ||
	    (head->body == H1_BODY_NONE && head_length(head, &length)))
		httpd_stream_start_sized(r, head->status, NULL, length,
					 forward_on_gone);
	else
		httpd_stream_start(r, head->status, NULL, forward_on_gone);
	httpd_stream_set_room(r, CLIENT_UNSENT_MAX);
	httpd_stream_on_room(r, forward_on_room);
}

/* x may be gone. */
static void forward_on_head(struct forward *x, const struct h1_response *head,
			    struct span behind)
{
	struct buf in;

	if (head->status == 101) {
		if (x->upgrade && x->body_over)
			forward_switch(x, head, behind);
		else
			forward_fail(x);
		return; /* x is gone */
	}
	if (!forward_set_reply(x->r, head)) {
		forward_fail(x);
		return; /* x is gone */
	}
	x->keep_alive = head->keep_alive;
	x->framing = head->body;
	x->left = head->length;
	forward_reply(x, head);
	buf_wipe(&x->request);
	in = x->in; /* behind lies in it */
	buf_init(&x->in, FORWARD_REPLY_HEAD_MAX);
	if (x->framing == H1_BODY_NONE ||
	    (x->framing == H1_BODY_LENGTH && !x->left))
		forward_finish(x, !behind.len);
	else if (behind.len)
		forward_feed(x, behind);
	buf_fini(&in);
}

static void forward_pass_interim(struct forward *x,
				 const struct h1_response *head)
{
	struct buf lines CLEANUP(buf_fini) = BUF_INIT(FORWARD_REPLY_HEAD_MAX);

	if (head->status > 101 && !forward_put_interim(&lines, head))
		httpd_interim(x->r, head->status, buf_peek(&lines));
}

/* Looks whether a head is whole; passes interim ones. x may be gone. */
static void forward_scan_head(struct forward *x)
{
	struct h1_response head;
	struct span all;
	int len;

	for (;;) {
		all = buf_peek(&x->in);
		len = h1_scan(&x->scan, all, FORWARD_REPLY_HEAD_MAX);
		if (!len)
			return;
		if (len < 0 || x->interims > INTERIM_MAX ||
		    h1_parse_response(span_of(all.ptr, (size_t)len),
				      httpd_method(x->r), &head)) {
			forward_fail(x);
			return; /* x is gone */
		}
		if (head.status >= 200 || head.status == 101) {
			forward_on_head(x, &head, span_from(all, (size_t)len));
			return; /* x may be gone */
		}
		forward_pass_interim(x, &head);
		x->interims++;
		buf_consume(&x->in, (size_t)len);
		x->scan = (struct h1_scan){ 0 };
	}
}

void forward_read_head(struct forward *x)
{
	char *room;
	ssize_t n;

	/* h1_scan() refuses what is longer than FORWARD_REPLY_HEAD_MAX */
	must(buf_reserve(&x->in, FORWARD_CHUNK_BYTES, &room) == 0);
	n = stream_read(x->server, room, FORWARD_CHUNK_BYTES);
	if (n == STREAM_AGAIN)
		return;
	if (n <= 0) {
		forward_end_early(x);
		return; /* x may be gone */
	}
	x->pooled = false;
	buf_commit(&x->in, (size_t)n);
	forward_scan_head(x);
	/* x may be gone */
}
