/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_h2_client.c - what any server may say to our HTTP/2 client */

#include "tests/fuzz/h2_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void request(struct h2_fuzz *f, struct span method, bool end)
{
	struct h2_head head = {
		.method = method,
		.scheme = SPAN("https"),
		.authority = SPAN("a"),
		.path = SPAN("/"),
	};
	int id;

	id = h2_request(f->h, &head, end, f);
	if (id < 0)
		return;
	fuzz_opened(f, id);
	if (!end)
		(void)!h2_write(f->h, id, SPAN("some of the body"));
}

static void on_head(void *ctx, int32_t id, const struct h2_head *head, bool end)
{
	fuzz_is_open(ctx, id);
	fuzz_fields(&head->headers);
	H2_CHECK(head->status >= 100 && head->status < 1000 &&
		 head->status != 101);
	H2_CHECK(!end || head->status >= 200);
	H2_CHECK(!head->method.len && !head->path.len);
}

static void on_closed(void *ctx, int32_t id, uint32_t code)
{
	struct h2_fuzz *f = ctx;

	H2_CHECK(h2_stream_data(f->h, id) == f);
	fuzz_closed(ctx, id, code);
	if (code == H2_REFUSED_STREAM && id < 100)
		request(f, SPAN("GET"), true);
}

static const struct h2_ops ops = {
	.head = on_head,
	.data = fuzz_data,
	.trailers = fuzz_trailers,
	.end = fuzz_end,
	.closed = on_closed,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct h2_limits limits = { .header_bytes = 4096,
					  .queue_bytes = 4096 };
	struct buf bytes = BUF_INIT(64 << 20);
	struct h2_fuzz f = { .server = false };

	if (size < 2)
		return 0;
	H2_CHECK(!h2_new(H2_CLIENT, &limits, &ops, &f, &f.h));
	request(&f, SPAN("GET"), true);
	request(&f, SPAN("POST"), false);
	request(&f, SPAN("HEAD"), true);
	if (data[0] % 4 >= 2)
		H2_CHECK(!buf_put(&bytes, SPAN("\0\0\0\4\0\0\0\0\0")));
	fuzz_expand(data, size, &bytes);
	fuzz_feed(&f, buf_peek(&bytes), data[1]);
	request(&f, SPAN("PUT"), false);
	fuzz_finish(&f);
	buf_fini(&bytes);
	return 0;
}
