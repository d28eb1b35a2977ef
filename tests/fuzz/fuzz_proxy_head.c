/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_proxy_head.c - what the proxy passes on is a head again, of one meaning
 *
 * The input is a request's head; with a first byte of 'r', a response's behind
 * it.
 */

#include <stdlib.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/execd/proxy/head.h"
#include "src/execd/proxy/target.h"
#include "src/httpd/forward_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)              \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

/* The framing, and that we take trailers. */
static bool is_ours(const struct header *h)
{
	return h->id == HEADER_TRANSFER_ENCODING ||
	       (h->id == HEADER_TE && span_eq(h->value, SPAN("trailers"))) ||
	       (h->id == HEADER_CONNECTION && span_eq(h->value, SPAN("TE")));
}

static void check_passed(const struct h1_request *sent,
			 const struct h1_request *got, bool upgrade)
{
	const struct headers *all = &got->headers;

	CHECK(span_eq(sent->method, got->method));
	CHECK(span_starts(got->path, SPAN("/")));
	CHECK(got->body == sent->body && got->length == sent->length);
	CHECK(!got->expect_continue && got->upgrade == upgrade);
	CHECK(!headers_find(all, HEADER_X_FORWARDED_HOST));
	CHECK(headers_count(all, HEADER_X_FORWARDED_FOR) == 1);
	CHECK(!headers_find_name(all, SPAN("x-execd-access-token")));
	for (unsigned i = 0; i < all->count; i++)
		CHECK(!(header_flags_of(all->items[i].id) & HEADER_HOP) ||
		      upgrade || is_ours(&all->items[i]));
}

static void pass_request(struct span in)
{
	struct buf out = BUF_INIT(1 << 20);
	struct h1_request *sent = malloc(2 * sizeof(*sent)), *got = sent + 1;
	struct addr peer = { 0 };
	struct h1_scan scan = { 0 };
	struct target to;

	CHECK(sent);
	if (h1_parse_request(in, sent) || !target_parse(sent->path, &to)) {
		free(sent);
		return;
	}
	CHECK(to.port);
	CHECK(!head_put_request(&out, sent, &to, &peer));
	CHECK(h1_scan(&scan, buf_peek(&out), 1 << 20) == (int)buf_len(&out));
	/* a few lines of ours may be more than fit */
	if (sent->headers.count + 7 < HEADERS_MAX) {
		CHECK(h1_parse_request(buf_peek(&out), got) == H1_OK);
		check_passed(sent, got, sent->upgrade);
	}
	free(sent);
	buf_fini(&out);
}

static void pass_switch(struct span in)
{
	struct h1_response *head = malloc(sizeof(*head));
	struct buf out = BUF_INIT(1 << 20);
	struct h1_scan scan = { 0 };

	CHECK(head);
	if (!h1_parse_response(in, SPAN("GET"), head) && head->status == 101) {
		CHECK(!forward_put_switch(&out, head, SPAN_NONE));
		CHECK(h1_scan(&scan, buf_peek(&out), 1 << 20) ==
		      (int)buf_len(&out));
	}
	free(head);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct h1_scan scan = { 0 };
	bool reply = size && data[0] == 'r';
	struct span in = span_of(data + reply, size - reply);
	int len;

	len = h1_scan(&scan, in, 1 << 16);
	if (len <= 0)
		return 0;
	in.len = (size_t)len;
	if (reply)
		pass_switch(in);
	else
		pass_request(in);
	return 0;
}
