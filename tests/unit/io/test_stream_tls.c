/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_tls.c - TLS streams: integrity, ends, failures, memory */

#include "tests/unit/io/tls_party.h"

#include <malloc.h>

static struct loop *loop;
static struct tls_world world;

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop = loop_free(loop);
	assert_int_equal(ERR_peek_error(), 0);
	return 0;
}

static int group_setup(void **state)
{
	(void)state;
	tls_world_init(&world, 0);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	tls_world_fini(&world);
	return 0;
}

static struct stream *stream_of(int fd)
{
	struct stream *s = NULL;

	assert_int_equal(stream_new(loop, fd, &s), 0);
	return s;
}

static void turns(int n)
{
	while (n--)
		loop_run_once(loop, false);
}

/* a is the client, b the server. */
static void tls_pair(struct tls_world *w, const int fds[2], struct stream **a,
		     struct stream **b)
{
	*a = stream_of(fds[0]);
	*b = stream_of(fds[1]);
	assert_int_equal(stream_start_tls(*a, ssl_client(w, "origin.test")), 0);
	assert_int_equal(stream_start_tls(*b, ssl_server(w)), 0);
}

static void talk(struct tls_world *w, size_t bytes, size_t piece_max,
		 size_t read_max, bool tcp, bool small)
{
	struct party a, b;
	struct stream *s[2];
	int fds[2];

	(tcp ? tcp_pair : unix_pair)(fds);
	for (int j = 0; j < 2 && small; j++)
		small_buffers(fds[j]);
	tls_pair(w, fds, &s[0], &s[1]);
	party_init(&a, s[0], 11, 22, bytes, piece_max);
	party_init(&b, s[1], 22, 11, bytes, piece_max);
	a.read_max = b.read_max = read_max;
	if (!parties_run(loop, &a, &b))
		fail_msg("%zu/%zu/%zu: sent %zu %zu got %zu %zu", bytes,
			 piece_max, read_max, a.sent, b.sent, a.received,
			 b.received);
	assert_int_equal(a.error, 0);
	assert_int_equal(b.error, 0);
	assert_int_equal(a.wrong + b.wrong, 0);
	assert_int_equal(a.received, bytes);
	assert_int_equal(b.received, bytes);
	assert_true(a.events & STREAM_CONNECTED);
	assert_true(stream_tls_ready(a.stream));
	assert_false(stream_tls_truncated(a.stream));
	assert_false(stream_tls_truncated(b.stream));
	assert_int_equal(stream_bytes_in(a.stream), stream_bytes_out(b.stream));
	parties_free(&a, &b);
}

static void tls__any_chunking_both_ways(void **state)
{
	static const int versions[] = { 0, TLS1_2_VERSION, TLS1_3_VERSION };
	struct tls_world w;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		tls_world_init(&w, versions[i]);
		talk(&w, 0, 1, 0, false, false);
		talk(&w, 1, 1, 0, false, false);
		talk(&w, 3000, 7, 5, false, false);
		talk(&w, 200000, 300, 100, false, true);
		talk(&w, 3 << 20, 70000, 0, false, false);
		talk(&w, 3 << 20, 300000, 0, false, true);
		talk(&w, 3 << 20, 300000, 9000, true, false);
		talk(&w, 1 << 20, 40000, 0, true, true);
		tls_world_fini(&w);
	}
}

static void tls__sixty_four_mebibytes(void **state)
{
	uint64_t start_us = clock_us();

	(void)state;
	talk(&world, 64 << 20, 300000, 0, true, false);
	print_message("64 MiB both ways: %.0f ms, checking included\n",
		      (double)(clock_us() - start_us) / 1000);
}

/* The whole ClientHello was read before TLS was started. */
static void tls__starts_from_unread_bytes(void **state)
{
	struct stream *a, *b;
	struct party pa, pb;
	char hello[4096];
	ssize_t n;
	int fds[2];

	(void)state;
	unix_pair(fds);
	a = stream_of(fds[0]);
	b = stream_of(fds[1]);
	assert_int_equal(stream_start_tls(a, ssl_client(&world, "origin.test")),
			 0);
	turns(2);
	n = stream_read(b, hello, sizeof(hello));
	assert_true(n > 100);
	assert_int_equal(stream_unread(b, span_of(hello, (size_t)n)), 0);
	assert_int_equal(stream_start_tls(b, ssl_server(&world)), 0);
	party_init(&pa, a, 1, 2, 50000, 999);
	party_init(&pb, b, 2, 1, 50000, 999);
	assert_true(parties_run(loop, &pa, &pb));
	assert_int_equal(pa.wrong + pb.wrong + (unsigned)pa.error, 0);
	parties_free(&pa, &pb);
}

/* Plain output queued before TLS goes out before it, as after CONNECT. */
static void tls__plain_answer_then_handshake(void **state)
{
	struct stream *a, *b;
	char bytes[64];
	int fds[2];

	(void)state;
	unix_pair(fds);
	a = stream_of(fds[0]);
	b = stream_of(fds[1]);
	assert_int_equal(stream_write(b, SPAN("200 ok")), 0);
	assert_int_equal(stream_start_tls(b, ssl_server(&world)), 0);
	assert_int_equal(stream_write(b, SPAN("not yet")), STREAM_AGAIN);
	turns(2);
	assert_int_equal(stream_read(a, bytes, sizeof(bytes)), 6);
	assert_int_equal(stream_start_tls(a, ssl_client(&world, "origin.test")),
			 0);
	assert_int_equal(stream_unread(a, SPAN("x")), -EINVAL);
	turns(10);
	assert_true(stream_tls_ready(a) && stream_tls_ready(b));
	stream_free(a);
	stream_free(b);
}

static void tls__connects_then_starts(void **state)
{
	struct stream *a = NULL, *b;
	struct party pa, pb;
	struct addr addr;
	int listener, fd;

	(void)state;
	listener = tcp_listen(&addr);
	assert_int_equal(stream_connect(loop, &addr, &a), 0);
	assert_int_equal(stream_start_tls(a, ssl_client(&world, "origin.test")),
			 0);
	assert_int_equal(stream_write(a, SPAN("x")), STREAM_AGAIN);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	b = stream_of(fd);
	assert_int_equal(stream_start_tls(b, ssl_server(&world)), 0);
	party_init(&pa, a, 1, 2, 50000, 999);
	party_init(&pb, b, 2, 1, 50000, 999);
	assert_true(parties_run(loop, &pa, &pb));
	assert_true(pa.events & STREAM_CONNECTED);
	assert_int_equal(pa.error, 0);
	parties_free(&pa, &pb);
	fd_close(listener);
}

struct watcher {
	unsigned calls, events;
};

static void watcher_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct watcher *w = ctx;

	w->calls++;
	w->events |= events;
	stream_want(s, stream_wanted(s) & ~events);
}

static void tls__refused_certificate_has_a_reason(void **state)
{
	struct watcher wa = { 0 }, wb = { 0 };
	struct stream *a, *b;
	char byte;
	int fds[2];

	(void)state;
	unix_pair(fds);
	a = stream_of(fds[0]);
	b = stream_of(fds[1]);
	assert_int_equal(stream_start_tls(a, ssl_client(&world, "other.test")),
			 0);
	assert_int_equal(stream_start_tls(b, ssl_server(&world)), 0);
	stream_set_owner(a, watcher_on_event, &wa);
	stream_set_owner(b, watcher_on_event, &wb);
	stream_want(a, STREAM_CONNECTED);
	stream_want(b, STREAM_CONNECTED | STREAM_READABLE);
	turns(10);
	assert_int_equal(wa.events, STREAM_CONNECTED);
	assert_false(stream_tls_ready(a));
	assert_int_equal(stream_error(a), -EPROTO);
	assert_string_equal(stream_tls_error(a),
			    "certificate refused: hostname mismatch");
	assert_int_equal(stream_read(a, &byte, 1), -EPROTO);
	assert_int_equal(stream_write(a, SPAN("x")), -EPROTO);
	/* In TLS 1.3 the server was done before it hears of it. */
	assert_true(wb.events & STREAM_CONNECTED);
	assert_int_equal(stream_read(b, &byte, 1), -EPROTO);
	assert_string_equal(stream_tls_error(b),
			    "peer sent alert: bad certificate");
	stream_free(a);
	stream_free(b);
}

static void tls__garbage_fails_the_handshake(void **state)
{
	static const char *const garbage[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
		"\x15\x03\x01\x00\x02\x02\x28",
		"\x17\x03\x03\xff\xff",
	};
	static const size_t sizes[] = { 18, 10, 7, 5 };
	struct watcher w;
	struct stream *s;
	int fds[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
		w = (struct watcher){ 0 };
		unix_pair(fds);
		s = stream_of(fds[0]);
		assert_int_equal(stream_start_tls(s, ssl_server(&world)), 0);
		stream_set_owner(s, watcher_on_event, &w);
		stream_want(s, STREAM_CONNECTED);
		assert_int_equal(write(fds[1], garbage[i], sizes[i]), sizes[i]);
		turns(5);
		assert_int_equal(w.calls, 1);
		assert_int_equal(stream_error(s), -EPROTO);
		assert_true(strlen(stream_tls_error(s)) > 3);
		stream_free(s);
		fd_close(fds[1]);
	}
}

static void tls__peer_leaves_amid_the_handshake(void **state)
{
	struct watcher w = { 0 };
	struct stream *s;
	int fds[2];

	(void)state;
	unix_pair(fds);
	s = stream_of(fds[0]);
	assert_int_equal(stream_start_tls(s, ssl_client(&world, "origin.test")),
			 0);
	stream_set_owner(s, watcher_on_event, &w);
	stream_want(s, STREAM_READABLE);
	turns(2);
	fd_close(fds[1]);
	turns(3);
	assert_int_equal(w.events, STREAM_READABLE);
	assert_true(stream_error(s) < 0);
	stream_free(s);
}

static void tls__end_without_close_notify_is_truncation(void **state)
{
	struct stream *a, *b;
	char bytes[64];
	int fds[2];

	(void)state;
	unix_pair(fds);
	tls_pair(&world, fds, &a, &b);
	turns(10);
	assert_int_equal(stream_write(a, SPAN("cut")), 0);
	assert_int_equal(stream_flush(a), 0);
	/* Tickets that stay unread would turn the FIN into a reset. */
	assert_int_equal(stream_read(a, bytes, 1), STREAM_AGAIN);
	stream_free(a);
	turns(2);
	assert_int_equal(stream_read(b, bytes, sizeof(bytes)), 3);
	assert_int_equal(stream_read(b, bytes, sizeof(bytes)), 0);
	assert_true(stream_tls_truncated(b));
	stream_free(b);
}

static void tls__close_sends_close_notify(void **state)
{
	struct stream *a, *b;
	char bytes[64];
	int fds[2];

	(void)state;
	tcp_pair(fds);
	tls_pair(&world, fds, &a, &b);
	turns(10);
	assert_int_equal(stream_write(a, SPAN("whole")), 0);
	assert_null(stream_close(a, 1000));
	turns(3);
	assert_int_equal(stream_read(b, bytes, sizeof(bytes)), 5);
	assert_int_equal(stream_read(b, bytes, sizeof(bytes)), 0);
	assert_false(stream_tls_truncated(b));
	/* Half-close: we may still answer. */
	assert_int_equal(stream_write(b, SPAN("answer")), 0);
	stream_free(b);
	turns(3);
}

static void tls__tampered_record_is_refused(void **state)
{
	struct stream *a, *b;
	char bytes[256];
	int fds[2];
	ssize_t n;

	(void)state;
	unix_pair(fds);
	tls_pair(&world, fds, &a, &b);
	turns(10);
	assert_int_equal(stream_write(a, SPAN("secret")), 0);
	assert_int_equal(stream_flush(a), 0);
	n = recv(fds[1], bytes, sizeof(bytes), 0);
	assert_true(n > 6);
	bytes[n - 1] ^= 1;
	assert_int_equal(send(fds[0], bytes, (size_t)n, 0), n);
	turns(1);
	assert_int_equal(stream_read(b, bytes, sizeof(bytes)), -EPROTO);
	assert_true(strlen(stream_tls_error(b)) > 3);
	assert_int_equal(stream_read(b, bytes, sizeof(bytes)), -EPROTO);
	stream_free(a);
	stream_free(b);
}

/* Bytes that SSL holds decrypted, or that wait as ciphertext, are announced
 * though the kernel has nothing more. */
static void tls__leftovers_are_announced(void **state)
{
	static char big[100000];
	struct party b;
	struct stream *s[2];
	int fds[2];

	(void)state;
	tcp_pair(fds);
	tls_pair(&world, fds, &s[0], &s[1]);
	turns(10);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = sequence_at(1, i);
	assert_int_equal(stream_write(s[0], span_of(big, sizeof(big))), 0);
	party_init(&b, s[1], 2, 1, 0, 1);
	b.read_max = 10;
	for (int i = 0; i < 100000 && b.received < sizeof(big); i++)
		turns(1);
	assert_int_equal(b.received, sizeof(big));
	assert_int_equal(b.wrong, 0);
	stream_free(s[0]);
	stream_free(s[1]);
}

static void tls__key_updates_and_tickets_pass_unseen(void **state)
{
	struct party pa, pb;
	struct stream *a, *b;
	struct tls_world w;
	int fds[2];

	(void)state;
	if (tls_world_hands_over)
		skip(); /* test_stream_records.c */
	tls_world_init(&w, TLS1_3_VERSION);
	tcp_pair(fds);
	tls_pair(&w, fds, &a, &b);
	turns(10);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			SSL_key_update(stream_ssl(a), SSL_KEY_UPDATE_REQUESTED),
			1);
		assert_int_equal(SSL_new_session_ticket(stream_ssl(b)), 1);
		assert_int_equal(stream_write(a, SPAN("")), 0);
		party_init(&pa, a, 1, 2, 1000, 10);
		party_init(&pb, b, 2, 1, 1000, 10);
		pa.keep_open = pb.keep_open = true;
		for (int j = 0; j < 1000 && pa.received + pb.received < 2000;
		     j++)
			turns(1);
		assert_int_equal(pa.received + pb.received, 2000);
		assert_int_equal(pa.wrong + pb.wrong, 0);
	}
	stream_free(a);
	stream_free(b);
	tls_world_fini(&w);
}

static void tls__sessions_survive_a_plain_free(void **state)
{
	SSL_SESSION *session;
	struct stream *a, *b;
	struct tls_world w;
	int fds[2];
	SSL *ssl;

	(void)state;
	tls_world_init(&w, TLS1_2_VERSION);
	unix_pair(fds);
	tls_pair(&w, fds, &a, &b);
	turns(10);
	session = SSL_get1_session(stream_ssl(a));
	stream_free(a);
	stream_free(b);
	assert_true(SSL_SESSION_is_resumable(session));

	unix_pair(fds);
	a = stream_of(fds[0]);
	b = stream_of(fds[1]);
	ssl = ssl_client(&w, "origin.test");
	assert_int_equal(SSL_set_session(ssl, session), 1);
	assert_int_equal(stream_start_tls(a, ssl), 0);
	assert_int_equal(stream_start_tls(b, ssl_server(&w)), 0);
	turns(10);
	assert_true(stream_tls_ready(a));
	assert_int_equal(SSL_session_reused(stream_ssl(a)), 1);
	stream_free(a);
	stream_free(b);
	SSL_SESSION_free(session);
	tls_world_fini(&w);
}

static void tls__alert_before_the_first_record(void **state)
{
	struct watcher w = { 0 };
	struct stream *a, *b;
	int fds[2];

	(void)state;
	unix_pair(fds);
	a = stream_of(fds[0]);
	b = stream_of(fds[1]);
	assert_int_equal(stream_start_tls(a, ssl_client(&world, "origin.test")),
			 0);
	assert_int_equal(stream_start_tls(b, ssl_server(&world)), 0);
	assert_null(stream_close_alert(b, SSL3_AD_HANDSHAKE_FAILURE));
	stream_set_owner(a, watcher_on_event, &w);
	stream_want(a, STREAM_CONNECTED);
	turns(5);
	assert_string_equal(stream_tls_error(a),
			    "peer sent alert: handshake failure");
	stream_free(a);
	turns(2);
}

/* Renegotiation is refused with a warning that the peer need not read. */
static void tls__refused_renegotiation_does_no_harm(void **state)
{
	struct party pa, pb;
	struct stream *a, *b;
	struct tls_world w;
	int fds[2];

	(void)state;
	tls_world_init(&w, TLS1_2_VERSION);
	SSL_CTX_clear_options(w.client, SSL_OP_NO_RENEGOTIATION);
	unix_pair(fds);
	tls_pair(&w, fds, &a, &b);
	turns(10);
	assert_int_equal(SSL_renegotiate(stream_ssl(a)), 1);
	party_init(&pa, a, 1, 2, 1000, 10);
	party_init(&pb, b, 2, 1, 1000, 10);
	turns(100);
	/* OpenSSL's client gives up; what matters is that nobody hangs. */
	assert_true(pb.finished || pb.received <= 1000);
	stream_free(a);
	stream_free(b);
	tls_world_fini(&w);
}

enum { IDLE_PAIRS = 500 };

static void tls__idle_streams_hold_little(void **state)
{
	static struct stream *streams[IDLE_PAIRS][2];
	size_t before, after;
	char bytes[64];
	int fds[2];

	(void)state;
	before = mallinfo2().uordblks;
	for (int i = 0; i < IDLE_PAIRS; i++) {
		unix_pair(fds);
		tls_pair(&world, fds, &streams[i][0], &streams[i][1]);
		turns(6);
		assert_int_equal(stream_write(streams[i][0], SPAN("hello")), 0);
		turns(2);
		assert_int_equal(stream_read(streams[i][1], bytes, 64), 5);
		assert_int_equal(stream_write(streams[i][1], SPAN("hello")), 0);
		turns(2);
		assert_int_equal(stream_read(streams[i][0], bytes, 64), 5);
	}
	turns(10);
	after = mallinfo2().uordblks;
	print_message("an idle TLS stream holds %zu bytes (mean of client and "
		      "server)\n",
		      (after - before) / IDLE_PAIRS / 2);
	if (after > before)
		assert_true((after - before) / IDLE_PAIRS / 2 < 40 * 1024);
	for (int i = 0; i < IDLE_PAIRS; i++) {
		stream_free(streams[i][0]);
		stream_free(streams[i][1]);
	}
}

/* -- what OpenSSL leaves behind ---------------------------------------------
 */

static const char marker[] = "sallyport-plaintext-marker";
static bool armed;
static unsigned remains; /* freed buffers that still had it in them */

/* Without what others left in that memory: a marker there is OpenSSL's own. */
static void *on_malloc(size_t size, const char *file, int line)
{
	void *p = size ? malloc(size) : NULL;

	(void)file;
	(void)line;
	if (p)
		memset(p, 0, malloc_usable_size(p));
	return p;
}

static void *on_realloc(void *p, size_t size, const char *file, int line)
{
	size_t had = p ? malloc_usable_size(p) : 0;

	(void)file;
	(void)line;
	p = realloc(p, size);
	if (p && malloc_usable_size(p) > had)
		memset((char *)p + had, 0, malloc_usable_size(p) - had);
	return p;
}

static void on_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	if (p && armed && malloc_usable_size(p) >= 16 * 1024 &&
	    memmem(p, malloc_usable_size(p), marker, sizeof(marker) - 1))
		remains++;
	free(p);
}

static char received[256 * 1024];

/* The server sends `len` bytes of the marker, the client reads them at most
 * `piece` at a time; then both are gone. How many freed buffers remembered? */
static unsigned remains_of(bool cleanse, size_t len, size_t piece)
{
	static char sent[sizeof(received)];
	struct stream *a, *b;
	size_t got = 0, i;
	int fds[2], tries;
	ssize_t n = 0;

	for (i = 0; i < len; i++)
		sent[i] = marker[i % (sizeof(marker) - 1)];
	unix_pair(fds);
	a = stream_of(fds[0]);
	b = stream_of(fds[1]);
	if (cleanse)
		SSL_CTX_set_options(world.client, SSL_OP_CLEANSE_PLAINTEXT);
	else
		SSL_CTX_clear_options(world.client, SSL_OP_CLEANSE_PLAINTEXT);
	assert_int_equal(stream_start_tls(a, ssl_client(&world, "origin.test")),
			 0);
	assert_int_equal(stream_start_tls(b, ssl_server(&world)), 0);
	SSL_CTX_clear_options(world.client, SSL_OP_CLEANSE_PLAINTEXT);
	turns(6);
	remains = 0;
	armed = true;
	assert_int_equal(stream_write(b, span_of(sent, len)), 0);
	for (tries = 0; got < len && tries < 10000; tries++) {
		n = stream_read(a, received + got, MIN(piece, len - got));
		if (n > 0)
			got += (size_t)n;
		else
			turns(1);
	}
	assert_int_equal(got, len);
	assert_memory_equal(received, sent, len);
	stream_free(a);
	stream_free(b);
	armed = false;
	return remains;
}

static void tls__no_plaintext_is_left_behind(void **state)
{
	static const size_t lens[] = { 1000, 16 * 1024, 48 * 1024, 200000 };
	static const size_t pieces[] = { 700, 16 * 1024, 20000, 131072 };
	unsigned without = 0;
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lens); i++)
		for (j = 0; j < ARRAY_LEN(pieces); j++) {
			without += remains_of(false, lens[i], pieces[j]);
			assert_int_equal(remains_of(true, lens[i], pieces[j]),
					 0);
		}
	assert_true(without > 0); /* or the test sees nothing */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tls__any_chunking_both_ways),
		TEST(tls__sixty_four_mebibytes),
		TEST(tls__starts_from_unread_bytes),
		TEST(tls__plain_answer_then_handshake),
		TEST(tls__connects_then_starts),
		TEST(tls__refused_certificate_has_a_reason),
		TEST(tls__garbage_fails_the_handshake),
		TEST(tls__peer_leaves_amid_the_handshake),
		TEST(tls__end_without_close_notify_is_truncation),
		TEST(tls__close_sends_close_notify),
		TEST(tls__tampered_record_is_refused),
		TEST(tls__leftovers_are_announced),
		TEST(tls__key_updates_and_tickets_pass_unseen),
		TEST(tls__sessions_survive_a_plain_free),
		TEST(tls__alert_before_the_first_record),
		TEST(tls__refused_renegotiation_does_no_harm),
		TEST(tls__idle_streams_hold_little),
		TEST(tls__no_plaintext_is_left_behind),
	};
	int failed;

	assert_true(CRYPTO_set_mem_functions(on_malloc, on_realloc, on_free));

	failed = cmocka_run_group_tests(tests, group_setup, group_teardown);
	tls_world_hands_over = true;
	return failed +
	       cmocka_run_group_tests_name("handed over", tests, group_setup,
					   group_teardown);
}
