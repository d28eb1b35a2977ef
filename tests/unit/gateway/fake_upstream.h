/* SPDX-License-Identifier: Apache-2.0 */
/* fake_upstream.h - a scripted DNS server on 127.0.0.1, on the test's loop
 *
 * The first label of a name says how the server behaves; see fake_script().
 * Everything is `static inline` so that each test uses what it needs.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/base/addr.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/wire/dns_emit.h"

enum { FAKE_STREAMS = 8, FAKE_PATIENCE_MS = 10 * 1000 };

struct fake {
	struct loop *loop;
	struct watch udp, listener;
	struct addr address;
	struct stream *streams[FAKE_STREAMS];
	unsigned stream_count;
	bool is_dead;  /* swallows everything */
	uint8_t error; /* not 0: answers this code to everything */
	unsigned udp_count, tcp_count;
	unsigned edns_count; /* questions that had an OPT */
	struct host last;    /* name of the last question */
};

/* A reply under construction. */
struct fake_reply {
	uint8_t bytes[8192];
	size_t len;
};

static inline void fake_put(struct fake_reply *r, const void *p, size_t len)
{
	must(r->len + len <= sizeof(r->bytes));
	memcpy(r->bytes + r->len, p, len);
	r->len += len;
}

static inline void fake_put16(struct fake_reply *r, unsigned v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	fake_put(r, b, 2);
}

static inline void fake_name(struct fake_reply *r, const char *name)
{
	struct dns_name n;

	must(dns_name_from_host(span_str(name), &n));
	fake_put(r, n.wire, n.len);
}

static inline void fake_begin(struct fake_reply *r, const struct dns_message *q,
			      unsigned rcode)
{
	static const uint8_t no_counts[8] = { 0, 1 };

	r->len = 0;
	fake_put16(r, q->id);
	fake_put16(r, DNS_FLAG_QR | DNS_FLAG_RA | DNS_FLAG_RD | rcode);
	fake_put(r, no_counts, 8);
	fake_put(r, q->name.wire, q->name.len);
	fake_put16(r, q->type);
	fake_put16(r, q->qclass);
}

/* One record; section 0 answer, 1 authority. */
static inline void fake_record(struct fake_reply *r, unsigned section,
			       const char *owner, uint16_t type, uint32_t ttl_s,
			       const void *data, size_t len)
{
	r->bytes[7 + 2 * section]++;
	fake_name(r, owner);
	fake_put16(r, type);
	fake_put16(r, DNS_CLASS_IN);
	fake_put16(r, ttl_s >> 16);
	fake_put16(r, ttl_s & 0xffff);
	fake_put16(r, (unsigned)len);
	fake_put(r, data, len);
}

static inline void fake_addr(struct fake_reply *r, const char *owner,
			     uint32_t ttl_s, const char *text)
{
	struct addr a;

	must(addr_parse(span_str(text), &a));
	if (addr_is_v4(&a))
		fake_record(r, 0, owner, DNS_TYPE_A, ttl_s, a.ip + 12, 4);
	else
		fake_record(r, 0, owner, DNS_TYPE_AAAA, ttl_s, a.ip, 16);
}

static inline void fake_cname(struct fake_reply *r, const char *owner,
			      const char *target)
{
	struct dns_name n;

	must(dns_name_from_host(span_str(target), &n));
	fake_record(r, 0, owner, DNS_TYPE_CNAME, 300, n.wire, n.len);
}

static inline void fake_soa(struct fake_reply *r, uint32_t minimum_s)
{
	uint8_t data[2 + 20] = { 0 };
	uint32_t be = htonl(minimum_s);

	memcpy(data + 18, &be, 4);
	fake_record(r, 1, "test", DNS_TYPE_SOA, 900, data, sizeof(data));
}

static inline bool fake_is(const struct fake *f, const char *name)
{
	return span_eq(host_span(&f->last), span_str(name));
}

/* Both families of a name, or the one that was asked for. */
static inline void fake_both(struct fake_reply *r, const struct dns_message *q,
			     const char *owner, uint32_t ttl_s)
{
	if (q->type == DNS_TYPE_A)
		fake_addr(r, owner, ttl_s, "192.0.2.1");
	else if (q->type == DNS_TYPE_AAAA)
		fake_addr(r, owner, ttl_s, "2001:db8::1");
}

static inline void fake_chain(struct fake_reply *r, const struct dns_message *q)
{
	/* deliberately out of order */
	fake_cname(r, "mid.test", "end.test");
	fake_both(r, q, "end.test", 40);
	fake_both(r, q, "stranger.test", 1);
	fake_cname(r, "chain.test", "mid.test");
}

static inline void fake_big(struct fake_reply *r, const struct dns_message *q,
			    bool tcp)
{
	char text[32];
	unsigned i;

	if (!tcp) {
		r->bytes[2] |= DNS_FLAG_TC >> 8;
		return;
	}
	for (i = 0; i < 40 && q->type == DNS_TYPE_A; i++) {
		(void)snprintf(text, sizeof(text), "192.0.2.%u", i);
		fake_addr(r, "big.test", 60, text);
	}
}

/* Service bindings: with ECH keys and HTTP/3, to other names, ports; broken. */
static inline void fake_service(struct fake *f, struct fake_reply *r,
				uint16_t type)
{
	static const char ech[] = "\0\1\0\0\1\0\6\2h3\2h2"
				  "\0\4\0\4\x0a\0\0\1"
				  "\0\5\0\4\0\2\xfe\x0d",
			  away[] = "\0\1\1x\6denied\4test\0",
			  port[] = "\0\1\0\0\3\0\2\x20\xfb",
			  broken[] = "\0\1\0\0\1\0\0";

	if (fake_is(f, "ech.test"))
		fake_record(r, 0, f->last.text, type, 60, ech, sizeof(ech) - 1);
	else if (fake_is(f, "away.test"))
		fake_record(r, 0, f->last.text, type, 60, away,
			    sizeof(away) - 1);
	else if (fake_is(f, "port.test"))
		fake_record(r, 0, f->last.text, type, 60, port,
			    sizeof(port) - 1);
	else if (fake_is(f, "broken.test"))
		fake_record(r, 0, f->last.text, type, 60, broken,
			    sizeof(broken) - 1);
}

/* Builds the reply to q. False: silence. */
static inline bool fake_script(struct fake *f, struct fake_reply *r,
			       const struct dns_message *q, bool tcp)
{
	static const char mx[] = "\0\12\2mx\4test\0", txt[] = "\5hello";
	bool is_v4 = q->type == DNS_TYPE_A;

	fake_begin(r, q, 0);
	if (fake_is(f, "nx.test")) {
		fake_begin(r, q, DNS_NXDOMAIN);
		fake_soa(r, 7);
	} else if (fake_is(f, "nodata.test")) {
		fake_soa(r, 9);
	} else if (fake_is(f, "servfail.test")) {
		fake_begin(r, q, DNS_SERVFAIL);
	} else if (fake_is(f, "formerr.test") && q->edns) {
		fake_begin(r, q, DNS_FORMERR);
	} else if (fake_is(f, "silent.test")) {
		return false;
	} else if (fake_is(f, "v4only.test") && !is_v4) {
		return false;
	} else if (fake_is(f, "chain.test")) {
		fake_chain(r, q);
	} else if (fake_is(f, "leaves.test")) {
		fake_cname(r, "leaves.test", "a.test");
	} else if (fake_is(f, "ring.test")) {
		fake_cname(r, "ring.test", "ring2.test");
		fake_cname(r, "ring2.test", "ring.test");
	} else if (fake_is(f, "ring3.test")) {
		fake_cname(r, "ring3.test", "ring4.test");
	} else if (fake_is(f, "ring4.test")) {
		fake_cname(r, "ring4.test", "ring3.test");
	} else if (fake_is(f, "big.test")) {
		fake_big(r, q, tcp);
	} else if (q->type == DNS_TYPE_HTTPS || q->type == DNS_TYPE_SVCB) {
		fake_service(f, r, q->type);
	} else if (q->type == DNS_TYPE_MX) {
		fake_record(r, 0, f->last.text, q->type, 1, mx, sizeof(mx) - 1);
	} else if (q->type == DNS_TYPE_TXT) {
		fake_record(r, 0, f->last.text, q->type, 1, txt, 6);
		if (fake_is(f, "odd.test"))
			fake_addr(r, "odd.test", 1, "192.0.2.66");
	} else {
		fake_both(r, q, f->last.text,
			  fake_is(f, "long.test") ? 90000 : 1);
	}
	return true;
}

static inline bool fake_answer(struct fake *f, struct span bytes, bool tcp,
			       struct fake_reply *r, struct dns_message *q)
{
	must(dns_parse_query(bytes, q) == DNS_OK);
	must(dns_name_to_host(&q->name, &f->last));
	f->edns_count += q->edns;
	if (tcp)
		f->tcp_count++;
	else
		f->udp_count++;
	if (f->is_dead)
		return false;
	if (f->error) {
		fake_begin(r, q, f->error);
		return true;
	}
	return fake_script(f, r, q, tcp);
}

static inline void fake_send(struct fake *f, const struct fake_reply *r,
			     const struct sockaddr_in *to)
{
	must(sendto(f->udp.fd, r->bytes, r->len, 0, (const void *)to,
		    sizeof(*to)) == (ssize_t)r->len);
}

/* Before the truth: wrong id, wrong question, a query, a broken message. */
static inline void fake_lie(struct fake *f, const struct fake_reply *truth,
			    const struct sockaddr_in *to)
{
	static const uint8_t evil[4] = { 192, 0, 2, 66 };
	struct fake_reply r = *truth;

	memcpy(r.bytes + r.len - 4, evil, 4);
	r.bytes[0] ^= 1;
	fake_send(f, &r, to);
	r.bytes[0] ^= 1;
	r.bytes[13] ^= 1; /* "mlar" */
	fake_send(f, &r, to);
	r.bytes[13] ^= 1;
	r.bytes[2] &= 0x7f;
	fake_send(f, &r, to);
	r.bytes[2] |= 0x80;
	r.len--;
	fake_send(f, &r, to);
}

static inline void fake_on_udp(struct watch *w, unsigned ready)
{
	struct fake *f = container_of(w, struct fake, udp);
	struct fake_reply r, lie;
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	struct dns_message q;
	uint8_t bytes[4096];
	unsigned i;
	ssize_t n;

	(void)ready;
	n = recvfrom(w->fd, bytes, sizeof(bytes), 0, (void *)&from, &from_len);
	if (n < 0) {
		watch_spent(w, WATCH_READ);
		return;
	}
	if (!fake_answer(f, span_of(bytes, (size_t)n), false, &r, &q))
		return;
	if (fake_is(f, "liar.test"))
		fake_lie(f, &r, &from);
	for (i = 0, lie = r; fake_is(f, "flood.test") && i < 100; i++) {
		lie.bytes[0] = (uint8_t)~r.bytes[0];
		fake_send(f, &lie, &from);
	}
	if (!fake_is(f, "flood.test"))
		fake_send(f, &r, &from);
}

static inline void fake_on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct fake *f = ctx;
	struct fake_reply r;
	struct dns_message q;
	uint8_t bytes[4096], head[2];
	ssize_t n = stream_read(s, bytes, sizeof(bytes));

	(void)events;
	if (n <= 2) { /* the end */
		stream_want(s, 0);
		return;
	}
	must((size_t)n == 2u + (bytes[0] << 8 | bytes[1]));
	if (!fake_answer(f, span_of(bytes + 2, (size_t)n - 2), true, &r, &q))
		return;
	head[0] = (uint8_t)(r.len >> 8);
	head[1] = (uint8_t)r.len;
	must(!stream_write(s, span_of(head, 2)));
	must(!stream_write(s, span_of(r.bytes, r.len)));
}

static inline void fake_on_accept(struct watch *w, unsigned ready)
{
	struct fake *f = container_of(w, struct fake, listener);
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct stream **s;

	(void)ready;
	if (fd < 0) {
		watch_spent(w, WATCH_READ);
		return;
	}
	must(f->stream_count < FAKE_STREAMS);
	s = &f->streams[f->stream_count++];
	must(!stream_new(f->loop, fd, s));
	stream_set_owner(*s, fake_on_stream, f);
	stream_want(*s, STREAM_READABLE);
}

static inline int fake_bind(int type, struct addr *address)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(address, &sa);
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	if (bind(fd, (void *)&sa, len) < 0)
		return fd_close(fd);
	must(!getsockname(fd, (void *)&sa, &len));
	must(addr_from_sockaddr((void *)&sa, address));
	return fd;
}

static inline void fake_init(struct fake *f, struct loop *loop)
{
	int udp, tcp = -1;

	*f = (struct fake){ .loop = loop };
	while (tcp < 0) { /* the same port for both */
		must(addr_parse(SPAN("127.0.0.1"), &f->address));
		udp = fake_bind(SOCK_DGRAM, &f->address);
		tcp = fake_bind(SOCK_STREAM, &f->address);
		if (tcp < 0)
			(void)fd_close(udp);
	}
	must(!listen(tcp, 8));
	must(!watch_init(&f->udp, loop, udp, fake_on_udp));
	must(!watch_init(&f->listener, loop, tcp, fake_on_accept));
	watch_want(&f->udp, WATCH_READ);
	watch_want(&f->listener, WATCH_READ);
}

static inline void fake_fini(struct fake *f)
{
	int udp = f->udp.fd, tcp = f->listener.fd;

	while (f->stream_count)
		(void)stream_free(f->streams[--f->stream_count]);
	watch_fini(&f->udp);
	watch_fini(&f->listener);
	(void)fd_close(udp);
	(void)fd_close(tcp);
}

/* Turns the loop until *done, or fails the test. */
static inline void fake_run(struct loop *loop, const bool *done)
{
	uint64_t start_ms = clock_ms();

	while (!*done && clock_ms() - start_ms < FAKE_PATIENCE_MS)
		loop_run_once(loop, true);
	assert_true(*done);
}
