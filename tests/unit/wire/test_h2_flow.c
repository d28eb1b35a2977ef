/* SPDX-License-Identifier: Apache-2.0 */
/* test_h2_flow.c - bodies, windows, queues and memory of HTTP/2 */

#include "tests/unit/wire/h2_pair.h"

#include <errno.h>

static char body[64 * 1024];

static void accept_200(struct h2_end *e, int32_t id, const struct h2_head *req,
		       bool end)
{
	const struct h2_head head = { .status = 200 };

	(void)req;
	(void)end;
	assert_int_equal(h2_respond(e->h, id, &head, false), 0);
}

static int32_t get(struct h2_pair *p)
{
	struct h2_head head;
	int id = h2_request(p->client.h, h2_get_head(&head, "GET", "/"), true,
			    NULL);

	assert_true(id > 0);
	return id;
}

static void flow_open(struct h2_pair *p, const struct h2_limits *client,
		      const struct h2_limits *server)
{
	size_t i;

	for (i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 7 + i / 251);
	h2_pair_open(p, client, server);
	p->server.on_head = accept_200;
	p->client.quiet = p->server.quiet = true;
}

/* As much as the stream takes, in pieces; returns bytes taken. */
static size_t fill(struct h2_end *e, int32_t id, size_t piece)
{
	size_t total = 0, n;

	while ((n = MIN(h2_room(e->h, id), piece))) {
		assert_int_equal(h2_write(e->h, id, span_of(body, n)), 0);
		total += n;
	}
	return total;
}

static uint64_t sum_of(uint64_t sum, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		sum = sum * 31 + (unsigned char)body[i];
	return sum;
}

/* Bytes arrive in order and whole, however they are written. */
static void bulk_in_pieces(size_t piece)
{
	struct h2_pair p = { 0 };
	uint64_t sum = 0;
	size_t sent, n;
	int32_t id;

	flow_open(&p, NULL, NULL);
	id = get(&p);
	h2_talk(&p);
	for (sent = 0; sent < 8 << 20; sent += n) {
		n = MIN(h2_room(p.server.h, id), piece);
		if (!n) {
			h2_talk(&p);
			continue;
		}
		assert_int_equal(h2_write(p.server.h, id, span_of(body, n)), 0);
		sum = sum_of(sum, n);
	}
	assert_int_equal(h2_end(p.server.h, id, NULL), 0);
	h2_talk(&p);
	assert_int_equal(p.client.bytes, sent);
	assert_true(p.client.sum == sum);
	assert_int_equal(p.client.closes, 1);
	assert_int_equal(p.client.last_code, H2_NO_ERROR);
	h2_pair_close(&p);
}

static void flow__bulk(void **state)
{
	(void)state;
	bulk_in_pieces(65536);
	bulk_in_pieces(20000);
	bulk_in_pieces(4096);
	bulk_in_pieces(4095);
}

/* What was written still arrives, then the stream breaks off. */
static void flow__break(void **state)
{
	struct h2_pair p = { 0 };
	size_t sent = 0, i;
	int32_t id;

	(void)state;
	flow_open(&p, NULL, NULL);
	id = get(&p);
	h2_talk(&p);
	for (i = 0; i < 3; i++) {
		sent += fill(&p.server, id, 30000);
		h2_talk(&p);
	}
	sent += fill(&p.server, id, 30000);
	h2_break(p.server.h, id, H2_ENHANCE_YOUR_CALM);
	assert_int_equal(h2_write(p.server.h, id, SPAN("x")), -EPIPE);
	h2_talk(&p);
	assert_int_equal(p.client.bytes, sent);
	assert_int_equal(p.client.ends, 0);
	assert_int_equal(p.client.last_code, H2_ENHANCE_YOUR_CALM);
	assert_int_equal(p.client.closes, 1);
	assert_int_equal(p.server.closes, 1);
	assert_int_equal(p.server.failed, 0);

	id = get(&p); /* before the head, or for a window that stays shut */
	h2_talk(&p);
	h2_break(p.server.h, id, H2_CONNECT_ERROR);
	h2_talk(&p);
	assert_int_equal(p.client.closes, 2);
	assert_int_equal(p.client.last_code, H2_CONNECT_ERROR);
	id = get(&p);
	h2_talk(&p);
	p.client.hold = true;
	for (i = 0; i < 20; i++) {
		(void)fill(&p.server, id, 65536);
		h2_talk(&p);
	}
	h2_break(p.server.h, id, H2_INTERNAL_ERROR);
	h2_talk(&p);
	assert_int_equal(p.client.closes, 2);
	assert_int_equal(h2_stalled_since(p.server.h, id), 1000000);
	h2_reset(p.server.h, id, H2_CANCEL);
	h2_talk(&p);
	assert_int_equal(p.client.closes, 3);
	assert_int_equal(p.client.last_code, H2_CANCEL);
	h2_pair_close(&p);
}

/* An end that waits for a window is stalled as well. */
static void flow__end_without_window(void **state)
{
	struct h2_pair p = { 0 };
	int32_t id;
	int i;

	(void)state;
	flow_open(&p, NULL, NULL);
	id = get(&p);
	h2_talk(&p);
	p.client.hold = true;
	for (i = 0; i < 4; i++) {
		assert_int_equal(h2_write(p.server.h, id, span_of(body, 65536)),
				 0);
		h2_talk(&p);
	}
	assert_int_equal(p.client.bytes, 256 << 10);
	assert_int_equal(h2_stalled_since(p.server.h, id), 0);
	p.now_ms += 500;
	h2_talk(&p);
	assert_int_equal(h2_end(p.server.h, id, NULL), 0);
	h2_talk(&p);
	if (!p.client.ends) /* where nghttp2 waits for a window */
		assert_int_equal(h2_stalled_since(p.server.h, id), 1000500);
	h2_consumed(p.client.h, id, 256 << 10);
	h2_talk(&p);
	assert_int_equal(p.client.ends, 1);
	assert_int_equal(h2_stalled_since(p.server.h, id), 0);
	h2_pair_close(&p);
}

static void flow__upload(void **state)
{
	struct h2_pair p = { .step = 1000 };
	struct h2_head head;
	size_t sent = 0;
	unsigned i;

	(void)state;
	flow_open(&p, NULL, NULL);
	assert_int_equal(h2_request(p.client.h, h2_get_head(&head, "POST", "/"),
				    false, NULL),
			 1);
	for (i = 0; i < 100; i++) {
		sent += fill(&p.client, 1, 30000);
		h2_talk(&p);
	}
	assert_int_equal(h2_end(p.client.h, 1, NULL), 0);
	h2_talk(&p);
	assert_int_equal(p.server.ends, 1);
	assert_true(sent >= 100 * 65536);
	assert_int_equal(p.server.bytes, sent);
	h2_pair_close(&p);
}

/* A reader that consumes nothing holds back its own stream only. */
static void flow__slow_reader(void **state)
{
	struct h2_pair p = { 0 };
	size_t slow = 0, fast = 0, i;
	int32_t a, b;

	(void)state;
	flow_open(&p, NULL, NULL);
	a = get(&p);
	h2_talk(&p);
	p.client.hold = true;
	for (i = 0; i < 20; i++) {
		slow += fill(&p.server, a, 65536);
		h2_talk(&p);
	}
	/* the window, and then the queue */
	assert_int_equal(p.client.bytes, 256 << 10);
	assert_int_equal(slow, (256 << 10) + (64 << 10));
	assert_int_equal(h2_room(p.server.h, a), 0);
	assert_int_equal(h2_write(p.server.h, a, SPAN("x")), -ENOBUFS);
	assert_int_equal(h2_stalled_since(p.server.h, a), 1000000);

	p.client.hold = false;
	p.client.bytes = 0;
	b = get(&p);
	h2_talk(&p);
	for (i = 0; i < 50; i++) {
		fast += fill(&p.server, b, 65536);
		h2_talk(&p);
	}
	assert_true(fast >= 50 * 65536);
	assert_int_equal(p.client.bytes, fast);
	assert_int_equal(h2_stalled_since(p.server.h, b), 0);

	/* the slow one goes on where it was */
	p.client.bytes = 0;
	p.now_ms += 500;
	h2_consumed(p.client.h, a, 256 << 10);
	h2_talk(&p);
	assert_int_equal(p.client.bytes, 64 << 10);
	assert_int_equal(h2_stalled_since(p.server.h, a), 0);
	assert_true(p.server.rooms > 0);
	h2_pair_close(&p);
}

/* What a closed stream did not consume is given back to the connection. */
static void flow__closed_streams_owe_nothing(void **state)
{
	struct h2_pair p = { 0 };
	unsigned i;
	int32_t id;
	size_t n;

	(void)state;
	flow_open(&p, NULL, NULL);
	p.client.hold = true;
	for (i = 0; i < 40; i++) {
		id = get(&p);
		h2_talk(&p);
		p.client.bytes = 0;
		n = fill(&p.server, id, 65536);
		h2_talk(&p);
		assert_int_equal(p.client.bytes, n);
		if (i % 2)
			h2_reset(p.client.h, id, H2_CANCEL);
		else
			h2_reset(p.server.h, id, H2_CANCEL);
		h2_talk(&p);
	}
	assert_int_equal(p.client.closes, 40);
	h2_pair_close(&p);
}

static void on_room(struct h2_end *e, int32_t id)
{
	size_t *left = e->test, n;

	while (*left && (n = MIN(MIN(h2_room(e->h, id), *left), 10000u))) {
		assert_int_equal(h2_write(e->h, id, span_of(body, n)), 0);
		*left -= n;
	}
	if (!*left)
		(void)h2_end(e->h, id, NULL);
}

/* room() alone keeps a body going. */
static void flow__room_is_told(void **state)
{
	struct h2_pair p = { 0 };
	size_t left = 3 << 20;
	int32_t id;

	(void)state;
	flow_open(&p, NULL, NULL);
	p.server.on_room = on_room;
	p.server.test = &left;
	id = get(&p);
	h2_talk(&p);
	on_room(&p.server, id);
	h2_talk(&p);
	assert_int_equal(left, 0);
	assert_int_equal(p.client.bytes, 3 << 20);
	assert_int_equal(p.client.closes, 1);
	h2_pair_close(&p);
}

/* Bulk gets a larger window, up to its limit; a slow owner does not. */
static void flow__windows_grow(void **state)
{
	const struct h2_limits small = { .window = 65536,
					 .window_max = 262144,
					 .conn_window = 65536,
					 .conn_window_max = 262144 };
	struct h2_pair p = { 0 };
	unsigned i;
	int32_t id;

	(void)state;
	flow_open(&p, &small, NULL);
	id = get(&p);
	h2_talk(&p);
	for (i = 0; i < 64; i++) {
		(void)fill(&p.server, id, 65536);
		h2_talk(&p);
	}
	p.client.bytes = 0;
	p.client.hold = true;
	for (i = 0; i < 10; i++) {
		(void)fill(&p.server, id, 65536);
		h2_talk(&p);
	}
	assert_in_range(p.client.bytes, 262144 - 65536, 262144);
	h2_pair_close(&p);
}

/* Many streams share the connection: all take turns. */
static void flow__streams_take_turns(void **state)
{
	struct h2_pair p = { 0 };
	int32_t ids[10];
	struct span out;
	unsigned i;

	(void)state;
	flow_open(&p, NULL, NULL);
	for (i = 0; i < ARRAY_LEN(ids); i++)
		ids[i] = get(&p);
	h2_talk(&p);
	for (i = 0; i < ARRAY_LEN(ids); i++)
		while (h2_room(p.server.h, ids[i]) > 40000)
			assert_int_equal(h2_write(p.server.h, ids[i],
						  span_of(body, 4000)),
					 0);
	/* the first batch holds a frame of several streams */
	out = h2_output(p.server.h, p.now_ms);
	assert_in_range(out.len, 1, 90 * 1024);
	h2_pair_close(&p);
}

static void flow__memory_is_small(void **state)
{
	struct h2_pair p = { 0 };
	size_t idle, open;
	int32_t id;
	unsigned i;

	(void)state;
	flow_open(&p, NULL, NULL);
	idle = h2_memory(p.server.h);
	print_message("idle: server %zu, client %zu bytes\n", idle,
		      h2_memory(p.client.h));
	assert_in_range(idle, 1, 32 * 1024);
	id = get(&p);
	h2_talk(&p);
	print_message("with one stream: server %zu, client %zu bytes\n",
		      h2_memory(p.server.h), h2_memory(p.client.h));
	for (i = 1; i < 100; i++)
		(void)get(&p);
	h2_talk(&p);
	open = h2_memory(p.server.h);
	print_message("with 100 streams: server %zu, client %zu bytes\n", open,
		      h2_memory(p.client.h));
	assert_in_range(open - idle, 1, 100 * 2048);
	p.client.hold = true;
	for (i = 0; i < 100; i++)
		(void)fill(&p.server, id + 2 * (int32_t)i, 65536);
	h2_talk(&p);
	for (i = 0; i < 100; i++)
		(void)fill(&p.server, id + 2 * (int32_t)i, 65536);
	print_message("all queues full: server %zu bytes\n",
		      h2_memory(p.server.h));
	assert_in_range(h2_memory(p.server.h), 1, 8 << 20);
	for (i = 0; i < 100; i++)
		h2_reset(p.server.h, id + 2 * (int32_t)i, H2_CANCEL);
	h2_talk(&p);
	print_message("all gone: server %zu, client %zu bytes\n",
		      h2_memory(p.server.h), h2_memory(p.client.h));
	assert_in_range(h2_memory(p.server.h), 1, 64 * 1024);
	h2_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow__bulk),
		cmocka_unit_test(flow__break),
		cmocka_unit_test(flow__end_without_window),
		cmocka_unit_test(flow__upload),
		cmocka_unit_test(flow__slow_reader),
		cmocka_unit_test(flow__closed_streams_owe_nothing),
		cmocka_unit_test(flow__room_is_told),
		cmocka_unit_test(flow__windows_grow),
		cmocka_unit_test(flow__streams_take_turns),
		cmocka_unit_test(flow__memory_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
