/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_h2_server.c - what any client may say to our HTTP/2 server */

#include "tests/fuzz/h2_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(struct h2_fuzz *f, int32_t id, const struct headers *fields)
{
	struct h2_head head = { .status = 103, .headers = *fields };

	(void)h2_interim(f->h, id, &head);
	head.status = 200;
	H2_CHECK(!h2_respond(f->h, id, &head, false));
	H2_CHECK(!h2_write(f->h, id, SPAN("answer")));
}

static void on_head(void *ctx, int32_t id, const struct h2_head *head, bool end)
{
	bool connect = span_eq(head->method, SPAN("CONNECT"));
	struct h2_fuzz *f = ctx;

	fuzz_opened(f, id);
	fuzz_fields(&head->headers);
	H2_CHECK(head->method.len && head->authority.len && !head->status);
	H2_CHECK(connect || !head->protocol.len);
	H2_CHECK((connect && !head->protocol.len) || head->path.len);
	if (id % 4 == 1)
		answer(f, id, &head->headers);
	else if (end && id % 8 == 3)
		h2_reset(f->h, id, H2_REFUSED_STREAM);
}

static void on_refused(void *ctx, int32_t id, const char *why)
{
	struct h2_fuzz *f = ctx;

	H2_CHECK(why[0]);
	if (fuzz_slot(id) < FUZZ_IDS)
		H2_CHECK(!f->open[fuzz_slot(id)]);
}

static const struct h2_ops ops = {
	.head = on_head,
	.data = fuzz_data,
	.trailers = fuzz_trailers,
	.end = fuzz_end,
	.closed = fuzz_closed,
	.refused = on_refused,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct h2_limits limits = { .streams = 10,
					  .header_bytes = 4096,
					  .queue_bytes = 4096,
					  .extended_connect = true };
	struct h2_fuzz f = { .server = true };
	struct buf bytes = BUF_INIT(64 << 20);

	if (size < 2)
		return 0;
	H2_CHECK(!h2_new(H2_SERVER, &limits, &ops, &f, &f.h));
	if (data[0] % 4 >= 2)
		H2_CHECK(!buf_put_str(&bytes, "PRI * HTTP/2.0\r\n\r\n"
					      "SM\r\n\r\n") &&
			 !buf_put(&bytes, SPAN("\0\0\0\4\0\0\0\0\0")));
	fuzz_expand(data, size, &bytes);
	fuzz_feed(&f, buf_peek(&bytes), data[1]);
	fuzz_finish(&f);
	buf_fini(&bytes);
	return 0;
}
