/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - the names this node knows by itself: operator pins and /etc/hosts
 *
 * A table is filled by its maker and immutable from the first names_ref() on;
 * then any number of loops read it without locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"

enum { NAME_ADDRS_MAX = 32, NAMES_MAX = 65536 };

/* Who says so. In order of precedence. */
enum name_source {
	NAME_SOURCE_NONE,
	NAME_PIN,   /* the operator's configuration */
	NAME_HOSTS, /* the node's hosts file */
	NAME_DNS,   /* an upstream server, perhaps by way of the cache */
	NAME_SOURCE_NUM,
};

const char *name_source_name(enum name_source source);

enum name_status {
	NAME_FAILED, /* zero: nobody could be asked, or nobody answered */
	NAME_OK,     /* .count > 0 */
	NAME_NXDOMAIN,
	NAME_NODATA, /* the name exists, without addresses */
	NAME_STATUS_NUM,
};

const char *name_status_name(enum name_status status);

struct name_answer {
	enum name_status status;
	enum name_source source;
	uint32_t ttl_s;		  /* between the configured min and max */
	const struct addr *addrs; /* v4 and v6, port 0; borrowed */
	unsigned count;		  /* <= NAME_ADDRS_MAX */
	bool partial;		  /* one family was not answered in time */
};

struct names;

/* An empty table, one reference. */
struct names *names_new(void);
/* Says that host (canonical) has this address. 0 (also when it was said
 * before); -EINVAL: not a canonical host name or source is neither NAME_PIN
 * nor NAME_HOSTS; -ENOSPC: over NAME_ADDRS_MAX or NAMES_MAX. */
WUNRES int names_add(struct names *n, enum name_source source, struct span host,
		     const struct addr *address);
/* Another reference; the table is immutable from now on. Any thread. */
struct names *names_ref(struct names *n);
/* NULL is fine; returns NULL. Any thread. */
struct names *names_unref(struct names *n);

/* A pin if there is one, else the hosts entry. False: neither, *ret untouched.
 * ret->addrs lives as long as the table; ttl_s is left 0. */
bool names_find(const struct names *n, struct span host,
		struct name_answer *ret);
/* Names in the table, of both sources. */
size_t names_count(const struct names *n);
