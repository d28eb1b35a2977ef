/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade.c - a connection that leaves the server to speak something else */

#include "src/base/err.h"
#include "src/httpd/request.h"
#include "src/io/stream.h"

const struct h1_request *httpd_head(const struct httpd_request *r)
{
	return &r->head;
}

struct stream *httpd_take_stream(struct httpd_request *r)
{
	struct stream *s = r->stream;
	struct span rest;

	if (request_let_go(r))
		return NULL;
	must(r->state == REQUEST_HANDLER);
	rest = r->ahead.ptr ? r->ahead : buf_peek(&r->in);
	stream_set_owner(s, NULL, NULL);
	stream_want(s, 0);
	if (rest.len && stream_unread(s, rest))
		s = stream_free(s);
	r->stream = NULL;
	r->body_state = BODY_OVER;
	timer_stop(&r->body_timer);
	r->state = REQUEST_OVER;
	request_run(r);
	return s; /* r may be freed */
}
