/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_records.c - streams that keep their records without OpenSSL, with
 * OpenSSL itself as the peer, and with a peer who does what he may not */

#include "tests/unit/io/tls_party.h"

#include <malloc.h>

#include "src/io/tls/inside.h"

static struct loop *loop;
static struct tls_world world;

static int setup(void **state)
{
	(void)state;
	tls_world_hands_over = true;
	tls_world_init(&world, 0);
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop = loop_free(loop);
	tls_world_fini(&world);
	assert_int_equal(ERR_peek_error(), 0);
	return 0;
}

static void turns(int n)
{
	while (n--)
		loop_run_once(loop, false);
}

/* -- a stream and OpenSSL -------------------------------------------------- */

struct pair {
	struct stream *stream;
	SSL *peer;
	int fd; /* the peer's */
	char got[64 * 1024];
};

static void pair_shake(struct pair *p, SSL *ours, SSL *peer)
{
	int fds[2], r = 0;

	unix_pair(fds);
	p->fd = fds[1];
	p->peer = peer;
	assert_int_equal(SSL_set_fd(peer, p->fd), 1);
	assert_int_equal(stream_new(loop, fds[0], &p->stream), 0);
	assert_int_equal(stream_start_tls(p->stream, ours), 0);
	for (int i = 0; i < 20 && r != 1; i++) {
		r = SSL_do_handshake(peer);
		turns(2);
	}
	assert_int_equal(r, 1);
	turns(2);
	ERR_clear_error();
}

/* What the stream reads within a few turns; < 0: its error. */
static ssize_t stream_gets(struct pair *p)
{
	ssize_t n = STREAM_AGAIN;

	for (int i = 0; i < 10 && n == STREAM_AGAIN; i++) {
		turns(1);
		n = stream_read(p->stream, p->got, sizeof(p->got));
	}
	return n;
}

static ssize_t peer_gets(struct pair *p)
{
	int n = -1;

	for (int i = 0; i < 10 && n <= 0; i++) {
		turns(1);
		n = SSL_read(p->peer, p->got, sizeof(p->got));
	}
	ERR_clear_error();
	return n;
}

static void send_bytes(struct pair *p, const void *bytes, size_t len)
{
	assert_int_equal(send(p->fd, bytes, len, 0), len);
}

static void peer_says(struct pair *p, const char *text)
{
	assert_int_equal(SSL_write(p->peer, text, (int)strlen(text)),
			 strlen(text));
}

static void assert_talk(struct pair *p)
{
	peer_says(p, "to us");
	assert_int_equal(stream_gets(p), 5);
	assert_memory_equal(p->got, "to us", 5);
	assert_int_equal(stream_write(p->stream, SPAN("to them")), 0);
	assert_int_equal(peer_gets(p), 7);
	assert_memory_equal(p->got, "to them", 7);
}

static void pair_server(struct pair *p)
{
	pair_shake(p, ssl_server(&world), ssl_client(&world, "origin.test"));
	assert_null(stream_ssl(p->stream));
	assert_int_equal(peer_gets(p), -1); /* its ticket */
}

static void pair_client(struct pair *p)
{
	pair_shake(p, ssl_client(&world, "origin.test"), ssl_server(&world));
	assert_non_null(stream_ssl(p->stream)); /* tickets may come */
	assert_talk(p);
	assert_null(stream_ssl(p->stream));
}

static void pair_end(struct pair *p)
{
	SSL_free(p->peer);
	stream_free(p->stream);
	fd_close(p->fd);
}

static void both(void (*fn)(struct pair *p))
{
	struct pair p;

	pair_server(&p);
	fn(&p);
	pair_end(&p);
	pair_client(&p);
	fn(&p);
	pair_end(&p);
}

/* -- who is taken over ----------------------------------------------------- */

static void takes__every_suite(void **state)
{
	static const char *const suites[] = { "TLS_AES_128_GCM_SHA256",
					      "TLS_AES_256_GCM_SHA384",
					      "TLS_CHACHA20_POLY1305_SHA256" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		SSL_CTX_set_ciphersuites(world.server, suites[i]);
		both(assert_talk);
	}
}

static void assert_terms(struct pair *p)
{
	assert_true(stream_is_tls(p->stream) && stream_tls_ready(p->stream));
	assert_string_equal(stream_tls_version(p->stream), "TLSv1.3");
	assert_true(span_eq(stream_tls_alpn(p->stream), SPAN("h2")));
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *len,
		  const unsigned char *in, unsigned in_len, void *arg)
{
	(void)ssl;
	(void)in_len;
	(void)arg;
	*out = in + 1;
	*len = in[0];
	return SSL_TLSEXT_ERR_OK;
}

static void takes__what_was_agreed_on_along(void **state)
{
	(void)state;
	SSL_CTX_set_alpn_select_cb(world.server, choose, NULL);
	SSL_CTX_set_alpn_protos(world.client, (const unsigned char *)"\2h2", 3);
	both(assert_terms);
}

static void assert_sessions(struct pair *p)
{
	SSL_SESSION *session;
	struct pair next;
	SSL *ssl;

	assert_false(stream_tls_resumed(p->stream));
	if (SSL_is_server(p->peer))
		return;
	SSL_set_shutdown(p->peer, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	session = SSL_get1_session(p->peer);
	ssl = ssl_client(&world, "origin.test");
	assert_int_equal(SSL_set_session(ssl, session), 1);
	pair_shake(&next, ssl_server(&world), ssl);
	assert_true(stream_tls_resumed(next.stream));
	assert_null(stream_ssl(next.stream));
	assert_talk(&next);
	pair_end(&next);
	SSL_SESSION_free(session);
}

static void takes__and_tickets_are_good(void **state)
{
	(void)state;
	both(assert_sessions);
}

static void leaves__what_only_openssl_knows(void **state)
{
	struct pair p;
	SSL *ssl;

	(void)state;
	/* records that were agreed to be small */
	ssl = ssl_client(&world, "origin.test");
	SSL_set_tlsext_max_fragment_length(ssl, TLSEXT_max_fragment_length_512);
	pair_shake(&p, ssl_server(&world), ssl);
	assert_non_null(stream_ssl(p.stream));
	assert_talk(&p);
	pair_end(&p);
	/* keys that were changed before the first bytes */
	pair_shake(&p, ssl_client(&world, "origin.test"), ssl_server(&world));
	assert_int_equal(SSL_key_update(p.peer, SSL_KEY_UPDATE_REQUESTED), 1);
	assert_talk(&p);
	assert_talk(&p);
	assert_non_null(stream_ssl(p.stream));
	pair_end(&p);
	/* an older version */
	SSL_CTX_set_max_proto_version(world.server, TLS1_2_VERSION);
	pair_shake(&p, ssl_server(&world), ssl_client(&world, "origin.test"));
	assert_non_null(stream_ssl(p.stream));
	assert_string_equal(stream_tls_version(p.stream), "TLSv1.2");
	assert_talk(&p);
	pair_end(&p);
}

/* The server's second record comes in two parts, the first of them together
 * with the record before. */
static void takes__between_records_only(void **state)
{
	char bytes[4096];
	struct pair p;
	ssize_t n, all;

	(void)state;
	for (ssize_t cut = 0; cut <= 28; cut++) {
		pair_shake(&p, ssl_client(&world, "origin.test"),
			   ssl_server(&world));
		assert_int_equal(stream_gets(&p), STREAM_AGAIN);
		peer_says(&p, "first");
		peer_says(&p, "second");
		all = recv(stream_fd(p.stream), bytes, sizeof(bytes), 0);
		assert_int_equal(all, 27 + 28);
		send_bytes(&p, bytes, (size_t)(27 + cut));
		n = stream_gets(&p);
		assert_int_equal(n, cut == 28 ? 11 : 5);
		assert_true(!stream_ssl(p.stream) == (cut == 0 || cut == 28));
		send_bytes(&p, bytes + 27 + cut, (size_t)(28 - cut));
		assert_int_equal(cut == 28 ? 6 : stream_gets(&p), 6);
		assert_talk(&p);
		assert_null(stream_ssl(p.stream));
		pair_end(&p);
	}
}

/* -- what a good peer does ------------------------------------------------- */

static void update_keys(struct pair *p)
{
	for (int i = 0; i < 8; i++) {
		assert_int_equal(
			SSL_key_update(p->peer,
				       i & 1 ? SSL_KEY_UPDATE_REQUESTED
					     : SSL_KEY_UPDATE_NOT_REQUESTED),
			1);
		assert_talk(p);
		assert_talk(p);
	}
}

static void keys__the_peer_updates(void **state)
{
	(void)state;
	both(update_keys);
}

static void update_own(struct pair *p)
{
	struct tls_records *r = p->stream->tls->records;

	r->update_at = 3;
	for (int i = 0; i < 20; i++) {
		assert_talk(p);
		assert_true(r->write.count <= 4);
	}
}

static void keys__wear_out(void **state)
{
	(void)state;
	both(update_own);
}

static void tickets__come_late(void **state)
{
	struct pair p;

	(void)state;
	pair_client(&p);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(SSL_new_session_ticket(p.peer), 1);
		assert_talk(&p);
	}
	pair_end(&p);
}

static void pad(struct pair *p)
{
	assert_int_equal(SSL_set_block_padding(p->peer, 4096), 1);
	for (int i = 0; i < 3; i++)
		assert_talk(p);
}

static void padding__is_left_out(void **state)
{
	(void)state;
	both(pad);
}

static void close_half(struct pair *p)
{
	peer_says(p, "last");
	assert_int_equal(SSL_shutdown(p->peer), 0);
	assert_int_equal(stream_gets(p), 4);
	assert_int_equal(stream_gets(p), 0);
	assert_false(stream_tls_truncated(p->stream));
	assert_int_equal(stream_write(p->stream, SPAN("answer")), 0);
	assert_int_equal(peer_gets(p), 6);
	stream_shutdown_write(p->stream);
	turns(2);
	assert_int_equal(SSL_read(p->peer, p->got, 1), 0);
	assert_int_equal(SSL_get_shutdown(p->peer),
			 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

static void ends__each_way_by_itself(void **state)
{
	(void)state;
	both(close_half);
}

static void cut_off(struct pair *p)
{
	peer_says(p, "last");
	assert_int_equal(shutdown(p->fd, SHUT_WR), 0);
	assert_int_equal(stream_gets(p), 4);
	assert_int_equal(stream_gets(p), 0);
	assert_true(stream_tls_truncated(p->stream));
}

static void ends__without_a_word(void **state)
{
	(void)state;
	both(cut_off);
}

/* -- a peer with the keys, who writes records of his own ------------------- */

/* The keys of what the stream reads (or writes) for its other side. */
static struct tls_keys twin(const struct tls_keys *k, bool seals)
{
	struct tls_keys t = { 0 };

	assert_true(tls_keys_init(&t, 0x1302, span_of(k->secret, 48), seals,
				  k->count));
	return t;
}

static void send_record(struct pair *p, struct tls_keys *k, uint8_t type,
			struct span bytes)
{
	static char dst[TLS_PLAIN_MAX + TLS_SEAL_SIZE];

	tls_seal(k, type, bytes, dst);
	send_bytes(p, dst, bytes.len + TLS_SEAL_SIZE);
}

/* The alert that the stream sent last; -1: none. */
static int alert_sent(struct pair *p, struct tls_keys *k)
{
	char bytes[4096];
	uint8_t type = 0;
	size_t len = 0;
	ssize_t n;

	turns(2);
	n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n != TLS_SEAL_SIZE + 2)
		return -1;
	assert_int_equal(tls_open(k, (uint8_t *)bytes,
				  span_of(bytes + 5, (size_t)n - 5), bytes,
				  &type, &len),
			 0);
	assert_int_equal(type, TLS_TYPE_ALERT);
	assert_int_equal(bytes[0], 2);
	return (uint8_t)bytes[1];
}

struct step {
	uint8_t type; /* 0: raw bytes */
	unsigned times;
	struct span bytes;
};

struct misdeed {
	const char *name;
	struct step steps[4];
	int alert; /* -1: none is sent */
	const char *error;
	bool client_only, server_only;
};

static char large[TLS_PLAIN_MAX + 1];

static const struct misdeed misdeeds[] = {
	{ "an unknown type",
	  { { 99, 1, SPAN_INIT("x") } },
	  10,
	  "unexpected_message" },
	{ "a plain alert",
	  { { 0, 1, SPAN_INIT("\x15\3\3\0\2\2\x28") } },
	  10,
	  "unexpected_message" },
	{ "a plain change of cipher",
	  { { 0, 1, SPAN_INIT("\x14\3\3\0\1\1") } },
	  10,
	  "unexpected_message" },
	{ "text",
	  { { 0, 1, SPAN_INIT("GET / HTTP/1.1\r\n\r\n") } },
	  10,
	  "unexpected_message" },
	{ "too long by its head",
	  { { 0, 1, SPAN_INIT("\x17\3\3\x41\1") } },
	  22,
	  "record overflow" },
	{ "too long for a buffer",
	  { { TLS_TYPE_DATA, 1, SPAN_INIT("x") },
	    { 0, 1, SPAN_INIT("\x17\3\3\xff\xff") } },
	  22,
	  "record overflow" },
	{ "too short for a tag",
	  { { 0, 1, SPAN_INIT("\x17\3\3\0\x10") } },
	  20,
	  "bad record mac" },
	{ "under other keys",
	  { { 0, 1,
	      SPAN_INIT("\x17\3\3\0\x11"
			"0123456789abcdefg") } },
	  20,
	  "bad record mac" },
	{ "nothing but padding",
	  { { TLS_TYPE_DATA + 200, 1, SPAN_INIT("") } },
	  10,
	  "unexpected_message" },
	{ "an alert of one byte",
	  { { TLS_TYPE_ALERT, 1, SPAN_INIT("\2") } },
	  50,
	  "decode error" },
	{ "an alert of three",
	  { { TLS_TYPE_ALERT, 1, SPAN_INIT("\2\x28\x28") } },
	  50,
	  "decode error" },
	{ "an alert",
	  { { TLS_TYPE_ALERT, 1, SPAN_INIT("\2\x28") } },
	  -1,
	  "peer sent alert: handshake failure" },
	{ "an empty message",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("") } },
	  10,
	  "unexpected_message" },
	{ "a message of the handshake",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\1\0\0\1x") } },
	  10,
	  "unexpected_message" },
	{ "a request of a certificate",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x0d\0\0\1x") } },
	  10,
	  "unexpected_message" },
	{ "a ticket for a server",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\4\0\0\1x") } },
	  10,
	  "unexpected_message",
	  .server_only = true },
	{ "an empty ticket",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\4\0\0\0") } },
	  50,
	  "decode error",
	  .client_only = true },
	{ "a key update without a word",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x18\0\0\0") } },
	  50,
	  "decode error" },
	{ "a key update of two",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x18\0\0\2\0\0") } },
	  50,
	  "decode error" },
	{ "a key update that asks for something else",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x18\0\0\1\2") } },
	  10,
	  "unexpected_message" },
	{ "a key update amid a record",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x18\0\0\1\0\x18") } },
	  10,
	  "unexpected_message" },
	{ "bytes amid a message",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x18\0") },
	    { TLS_TYPE_DATA, 1, SPAN_INIT("x") } },
	  10,
	  "unexpected_message" },
	{ "an alert amid a message",
	  { { TLS_TYPE_HANDSHAKE, 1, SPAN_INIT("\x18\0\0\1") },
	    { TLS_TYPE_ALERT, 1, SPAN_INIT("\1\0") } },
	  10,
	  "unexpected_message" },
	{ "records of nothing",
	  { { TLS_TYPE_DATA, 33, SPAN_INIT("") } },
	  10,
	  "unexpected_message" },
	{ "cancels on and on",
	  { { TLS_TYPE_ALERT, 33, SPAN_INIT("\1\x5a") } },
	  10,
	  "unexpected_message" },
	{ "tickets on and on",
	  { { TLS_TYPE_HANDSHAKE, 33, SPAN_INIT("\4\0\0\1x") } },
	  10,
	  "unexpected_message",
	  .client_only = true },
};

static void commit(struct pair *p, const struct misdeed *m)
{
	struct tls_records *r = p->stream->tls->records;
	struct tls_keys out = twin(&r->read, true), in = twin(&r->write, false);
	ssize_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(m->steps); i++)
		for (unsigned j = 0; j < m->steps[i].times; j++)
			if (m->steps[i].type == TLS_TYPE_DATA + 200)
				send_record(p, &out, 0, SPAN_NONE);
			else if (m->steps[i].type)
				send_record(p, &out, m->steps[i].type,
					    m->steps[i].bytes);
			else
				send_bytes(p, m->steps[i].bytes.ptr,
					   m->steps[i].bytes.len);
	for (int i = 0; i < 3 && n >= 0; i++)
		n = stream_gets(p);
	if (n != -EPROTO || strcmp(stream_tls_error(p->stream), m->error) != 0)
		fail_msg("%s: %zd, %s", m->name, n,
			 stream_tls_error(p->stream));
	assert_int_equal(stream_read(p->stream, p->got, 1), -EPROTO);
	assert_int_equal(stream_write(p->stream, SPAN("x")), -EPROTO);
	if (alert_sent(p, &in) != m->alert)
		fail_msg("%s: another alert was sent", m->name);
	tls_keys_fini(&out);
	tls_keys_fini(&in);
}

static void refuses__what_no_peer_may_send(void **state)
{
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(misdeeds); i++) {
		if (!misdeeds[i].client_only) {
			pair_server(&p);
			commit(&p, &misdeeds[i]);
			pair_end(&p);
		}
		if (!misdeeds[i].server_only) {
			pair_client(&p);
			commit(&p, &misdeeds[i]);
			pair_end(&p);
		}
	}
}

static void tolerate(struct pair *p)
{
	static const char update[] = "\x18\0\0\1\1";
	struct tls_records *r = p->stream->tls->records;
	struct tls_keys out = twin(&r->read, true);
	uint64_t count = r->write.count;

	for (int i = 0; i < 32; i++)
		send_record(p, &out, TLS_TYPE_DATA, SPAN_NONE);
	send_record(p, &out, TLS_TYPE_DATA, SPAN("one"));
	for (int i = 0; i < 5; i++)
		send_record(p, &out, TLS_TYPE_ALERT, SPAN("\1\x5a"));
	for (int i = 0; i < 5; i++) /* one message, a byte in each record */
		send_record(p, &out, TLS_TYPE_HANDSHAKE,
			    span_of(update + i, 1));
	tls_keys_update(&out);
	send_record(p, &out, TLS_TYPE_DATA, SPAN("two"));
	assert_int_equal(stream_gets(p), 6);
	assert_memory_equal(p->got, "onetwo", 6);
	assert_int_equal(r->write.count, 0); /* it answered */
	assert_true(count > 0);
	tls_keys_fini(&out);
}

static void bears__what_is_odd_and_allowed(void **state)
{
	(void)state;
	both(tolerate);
}

/* Nobody who reads nothing makes us queue answers without end. */
static void ask_on_and_on(struct pair *p)
{
	struct tls_records *r = p->stream->tls->records;
	struct tls_keys out = twin(&r->read, true);
	size_t most = 0;
	ssize_t n = 0;

	small_buffers(stream_fd(p->stream));
	for (int i = 0; i < 20000 && n != -EPROTO; i++) {
		send_record(p, &out, TLS_TYPE_HANDSHAKE, SPAN("\x18\0\0\1\1"));
		tls_keys_update(&out);
		send_record(p, &out, TLS_TYPE_DATA, SPAN("x"));
		turns(1);
		n = stream_read(p->stream, p->got, sizeof(p->got));
		most = MAX(most, stream_unsent(p->stream));
	}
	assert_int_equal(n, -EPROTO);
	assert_true(most > 1024 && most <= TLS_UNASKED_MAX);
	tls_keys_fini(&out);
}

static void bears__no_updates_without_end(void **state)
{
	(void)state;
	both(ask_on_and_on);
}

/* Each byte alone, for a reader with little room and for one with much. */
static void dribble(struct pair *p)
{
	static const size_t rooms[] = { 1, 3, 4096 };
	struct tls_keys out = twin(&p->stream->tls->records->read, true);
	char dst[600 + TLS_SEAL_SIZE];
	size_t got;
	ssize_t n;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = sequence_at(3, i);
	for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
		tls_seal(&out, TLS_TYPE_DATA, span_of(large, 600), dst);
		for (size_t j = 0; j + 1 < sizeof(dst); j++) {
			send_bytes(p, dst + j, 1);
			turns(1);
			assert_int_equal(stream_read(p->stream, p->got, 10),
					 STREAM_AGAIN);
		}
		send_bytes(p, dst + sizeof(dst) - 1, 1);
		for (got = 0; got < 600; got += (size_t)n) {
			turns(1);
			n = stream_read(p->stream, p->got + got, rooms[i]);
			assert_true(n > 0 && (size_t)n <= rooms[i]);
		}
		assert_memory_equal(p->got, large, 600);
	}
	assert_int_equal(buf_len(&p->stream->tls->records->partial), 0);
	tls_keys_fini(&out);
}

static void reads__any_piece(void **state)
{
	(void)state;
	both(dribble);
}

/* A record of the largest size, padding that fills one, and one byte more. */
static void fill_up(struct pair *p)
{
	struct tls_keys out = twin(&p->stream->tls->records->read, true);

	send_record(p, &out, TLS_TYPE_DATA, span_of(large, TLS_PLAIN_MAX));
	assert_int_equal(stream_gets(p), TLS_PLAIN_MAX);
	assert_memory_equal(p->got, large, TLS_PLAIN_MAX);
	tls_keys_fini(&out);
}

static void reads__the_largest(void **state)
{
	(void)state;
	both(fill_up);
}

/* -- both ends of ours ----------------------------------------------------- */

static void streams__any_chunking_both_ways(void **state)
{
	static const struct {
		size_t bytes, piece_max, read_max;
		bool small;
	} rows[] = {
		{ 0, 1, 0, false },
		{ 1, 1, 0, false },
		{ 3000, 7, 5, false },
		{ 200000, 300, 100, true },
		{ 3 << 20, 70000, 0, false },
		{ 3 << 20, 300000, 9000, true },
		{ 16 << 20, 300000, 0, false },
	};
	struct party a, b;
	struct stream *s[2];
	int fds[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		tcp_pair(fds);
		for (int j = 0; j < 2; j++) {
			if (rows[i].small)
				small_buffers(fds[j]);
			assert_int_equal(stream_new(loop, fds[j], &s[j]), 0);
		}
		assert_int_equal(
			stream_start_tls(s[0],
					 ssl_client(&world, "origin.test")),
			0);
		assert_int_equal(stream_start_tls(s[1], ssl_server(&world)), 0);
		party_init(&a, s[0], 11, 22, rows[i].bytes, rows[i].piece_max);
		party_init(&b, s[1], 22, 11, rows[i].bytes, rows[i].piece_max);
		a.read_max = b.read_max = rows[i].read_max;
		assert_true(parties_run(loop, &a, &b));
		assert_int_equal(a.wrong + b.wrong, 0);
		assert_int_equal(a.error, 0);
		assert_int_equal(b.error, 0);
		assert_int_equal(a.received, rows[i].bytes);
		assert_int_equal(b.received, rows[i].bytes);
		assert_false(stream_tls_truncated(a.stream));
		assert_false(stream_tls_truncated(b.stream));
		assert_null(stream_ssl(b.stream));
		/* one that ended with its first bytes was not worth it */
		assert_true(rows[i].bytes < 3000 || !stream_ssl(a.stream));
		parties_free(&a, &b);
	}
}

enum { IDLE = 300, IDLE_BYTES = 4096 };

static void streams__at_rest_hold_little(void **state)
{
	static struct pair pairs[IDLE];
	size_t before, after;

	(void)state;
	pair_server(&pairs[0]); /* what is made once */
	assert_talk(&pairs[0]);
	before = mallinfo2().uordblks;
	for (int i = 1; i < IDLE; i++) {
		pair_server(&pairs[i]);
		assert_talk(&pairs[i]);
		SSL_free(pairs[i].peer);
		pairs[i].peer = NULL;
	}
	turns(3);
	after = mallinfo2().uordblks;
	print_message("a stream at rest holds %zu bytes\n",
		      (after - before) / (IDLE - 1));
	assert_true((after - before) / (IDLE - 1) < IDLE_BYTES);
	for (int i = 0; i < IDLE; i++)
		pair_end(&pairs[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(takes__every_suite),
		TEST(takes__what_was_agreed_on_along),
		TEST(takes__and_tickets_are_good),
		TEST(takes__between_records_only),
		TEST(leaves__what_only_openssl_knows),
		TEST(keys__the_peer_updates),
		TEST(keys__wear_out),
		TEST(tickets__come_late),
		TEST(padding__is_left_out),
		TEST(ends__each_way_by_itself),
		TEST(ends__without_a_word),
		TEST(refuses__what_no_peer_may_send),
		TEST(bears__what_is_odd_and_allowed),
		TEST(bears__no_updates_without_end),
		TEST(reads__any_piece),
		TEST(reads__the_largest),
		TEST(streams__any_chunking_both_ways),
		TEST(streams__at_rest_hold_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
