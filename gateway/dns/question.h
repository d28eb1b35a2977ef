/* SPDX-License-Identifier: Apache-2.0 */
/* question.h - one question of a sandbox, from its bytes to its answer; what
 * the files of the DNS server share
 *
 * A question comes in by a path (a UDP socket or a TCP connection), is decided
 * and either answered within the call or kept until the resolver calls back.
 * While it is kept, it is linked in its path, which ends it when it closes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/dns/server.h"
#include "src/base/list.h"
#include "src/base/map.h"
#include "src/wire/dns.h"
#include "src/wire/host.h"

struct ask;
struct dns_path;
struct loop;
struct lookup;
struct resolver;

/* What one client has under way; pays for both kinds of questions. */
struct client_load {
	struct dns_server *server;
	uint8_t key[20]; /* source IP, interface */
	unsigned questions, connections;
};

struct dns_server {
	struct loop *loop;
	struct resolver *resolver;
	struct dns_counters *counters;
	const struct dns_server_ops *ops;
	void *ctx;
	struct dns_server_config config; /* defaults filled in */
	struct map loads;		 /* key -> client_load */
	struct list sockets;		 /* udp.c */
	struct list connections;	 /* tcp.c */
	unsigned questions, connection_count;
	/* a reply being built, behind room for the length of TCP */
	uint8_t reply[2 + DNS_MESSAGE_MAX];
};

/* How replies to a question travel. */
struct dns_path_ops {
	bool tcp;
	/* message lies at server->reply + 2. Nothing is freed in here. */
	void (*send)(struct dns_path *path, const struct dns_client *client,
		     struct span message);
	/* A kept question was answered; may free the path. NULL: no interest */
	void (*answered)(struct dns_path *path);
};

struct dns_path {
	struct dns_server *server;
	const struct dns_path_ops *ops;
	struct list questions; /* kept */
	unsigned question_count;
};

struct question {
	struct list link; /* in .path */
	struct dns_path *path;
	struct client_load *load; /* when kept */
	struct lookup *lookup;	  /* when kept, this one */
	struct ask *ask;	  /* or that one */
	uint64_t began_ms;
	enum name_source source;
	/* addresses of the answer, while it is sent and audited */
	struct addr addrs[NAME_ADDRS_MAX];
	unsigned addr_count;
	uint32_t ttl_s;
	enum dns_end end;
	struct dns_client client;
	struct dns_decision decision;
	struct dns_message query; /* .bytes is gone */
	struct host host;	  /* when the name is one */
};

void path_init(struct dns_path *path, struct dns_server *s,
	       const struct dns_path_ops *ops);
/* Ends what is kept, without replies. */
void path_fini(struct dns_path *path);

/* Parses, decides, and answers now or keeps the question. False: the bytes are
 * no query; nothing was answered. */
bool question_run(struct dns_path *path, const struct dns_client *client,
		  struct span bytes);

/* The load of a client, made when needed. */
struct client_load *load_at(struct dns_server *s,
			    const struct dns_client *client);
/* Frees it when nothing is under way. */
void load_settle(struct client_load *load);

/* The two ways in (server_udp.c, server_tcp.c): close all of it. */
void dns_server_close_udp(struct dns_server *s);
void dns_server_close_tcp(struct dns_server *s);
