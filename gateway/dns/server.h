/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the DNS server that sandboxes see, for one event loop
 *
 * It does not know who a sandbox is or what policy says: it asks its owner
 * about every question, answers, and tells the owner what it answered.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/dns/counters.h"
#include "gateway/dns/names.h"
#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

struct dns_server;
struct loop;
struct resolver;
struct stream;

/* Who asked, as the kernel says. */
struct dns_client {
	struct addr source;	 /* address and port of the sandbox */
	struct addr destination; /* the server it believes it asked */
	uint32_t ifindex;	 /* where the packet came in; 0 = unknown */
};

enum { DNS_DECISION_TEXT_SIZE = 512 };

/* Zero denies. */
struct dns_decision {
	bool allowed;
	bool limited; /* not allowed just now: REFUSED instead of NXDOMAIN */
	/* the owner's own; come back with every op */
	unsigned reason;
	void *token;
	/* Why not, in one sentence; sent as EDE extra text. */
	char text[DNS_DECISION_TEXT_SIZE];
};

/* How a question ended. */
enum dns_end {
	DNS_END_FAILED,	  /* zero: upstream gave nothing, or it died */
	DNS_END_ANSWERED, /* with records, or truthfully none */
	DNS_END_DENIED,	  /* decide said no */
	DNS_END_REFUSED,  /* of a kind that is never answered */
	DNS_END_LIMITED,  /* may_ask said no */
	DNS_END_FILTERED, /* there are records, none of which may be seen */
};

/* What was answered. All pointers are borrowed for the call. */
struct dns_event {
	const struct dns_client *client;
	const struct dns_decision *decision; /* zero: decide was not asked */
	struct span host; /* canonical; when it is no host name, its escaped
			     text */
	uint16_t type;	  /* DNS_TYPE_... */
	uint16_t rcode;	  /* DNS_NOERROR ... */
	enum dns_end end;
	bool tcp;
	enum name_source source;  /* NAME_SOURCE_NONE: nobody was asked */
	const struct addr *addrs; /* answered, all of the asked family */
	unsigned addr_count;
	uint32_t ttl_s; /* of the addresses */
	uint64_t took_ms;
};

struct dns_server_ops {
	/* May this client resolve host? *ret is zeroed before: denied. Called
	 * once per question, unless its name is no host name or its class or
	 * type is never answered. */
	void (*decide)(void *ctx, const struct dns_client *client,
		       struct span host, struct dns_decision *ret);
	/* Addresses to give instead of looking for those of host; false: none,
	 * *ret untouched. NULL: never. What *ret points to outlives the call. */
	bool (*stand_in)(void *ctx, struct span host, struct name_answer *ret);
	/* May an allowed question see this address of its name? What is left
	 * out nobody hears of; when nothing is left, the answer says why. */
	bool (*may_see)(void *ctx, const struct dns_decision *decision,
			struct span host, const struct addr *address,
			enum name_source source);
	/* May a service binding of host lead there? target is a host name, or
	 * empty: host itself. port 0: that of the scheme. */
	bool (*may_lead)(void *ctx, const struct dns_decision *decision,
			 struct span host, struct span target, uint16_t port);
	/* The question is about to go upstream. False: it may not, and
	 * decision->text says why; it is answered REFUSED. */
	bool (*may_ask)(void *ctx, struct dns_decision *decision,
			struct span host);
	/* Follows every decide exactly once (the token may be released here),
	 * also when the question died with its connection or with the server;
	 * and questions that decide was not asked about, down to what is no
	 * question at all (.host is empty then). */
	void (*audit)(void *ctx, const struct dns_event *event);
};

/* Zero in a limit means the default. */
struct dns_server_config {
	uint32_t idle_ms;	     /* TCP without a whole question: 10 s */
	unsigned queries_max;	     /* under way in all: 4096 */
	unsigned client_queries_max; /* under way per client: 256 */
	unsigned connections_max;    /* TCP: 1024 */
	unsigned client_connections_max; /* TCP per client: 32 */
	struct dns_counters *counters;	 /* borrowed, must outlive; not NULL */
};

WUNRES int dns_server_new(struct loop *loop, struct resolver *resolver,
			  const struct dns_server_config *config,
			  const struct dns_server_ops *ops, void *ctx,
			  struct dns_server **ret);
/* Closes sockets and connections; what is under way is dropped (audited as
 * SERVFAIL). Not from one of the ops. NULL is fine; returns NULL. */
struct dns_server *dns_server_free(struct dns_server *s);

/* Serves a bound UDP socket; takes fd, closed on failure too. The address a
 * packet was sent to and the interface it came in by are learnt with
 * IP_PKTINFO; the reply leaves from that address, which needs IP_TRANSPARENT
 * when it is not local (the supervisor has set it). */
WUNRES int dns_server_add_udp(struct dns_server *s, int fd);

/* Serves an accepted TCP connection; takes the stream. client is copied. */
void dns_server_give(struct dns_server *s, struct stream *stream,
		     const struct dns_client *client);
