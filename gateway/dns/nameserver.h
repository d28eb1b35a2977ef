/* SPDX-License-Identifier: Apache-2.0 */
/* nameserver.h - the upstream servers of one loop and how they behaved lately
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/dns/counters.h"
#include "src/base/addr.h"
#include "src/base/attrib.h"

struct loop;

enum {
	NAMESERVERS_MAX = 8,
	NAMESERVER_DOWN_MS = 5 * 1000,	    /* first time in the corner */
	NAMESERVER_DOWN_MAX_MS = 60 * 1000, /* doubled up to this */
};

struct nameserver {
	struct addr address;	/* port filled */
	uint64_t down_until_ms; /* 0 = was well when last met */
	uint32_t down_ms;	/* length of the last stay in the corner */
};

struct nameservers {
	struct loop *loop;
	struct dns_counters *counters;
	uint32_t timeout_ms; /* one server's turn */
	uint32_t generation; /* grows when the list is replaced */
	unsigned asks;	     /* questions under way */
	unsigned count;
	struct nameserver items[NAMESERVERS_MAX];
};

/* Replaces the list; returns whether it differs from what was there. */
bool nameservers_set(struct nameservers *ns, const struct addr *addrs,
		     unsigned count);
/* The first server in configured order that is not in the corner and not in
 * the bit set `except`; else the one whose stay ends first; -1: none left. */
int nameservers_pick(const struct nameservers *ns, unsigned except,
		     uint64_t now_ms);
/* It did not answer. */
void nameserver_failed(struct nameserver *server, uint64_t now_ms);
/* It answered. */
void nameserver_answered(struct nameserver *server);
