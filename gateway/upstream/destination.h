/* SPDX-License-Identifier: Apache-2.0 */
/* destination.h - where a connection goes, proved once, in one place
 *
 * A destination is made from what the connection itself says (SNI, or the
 * first authority of a plain HTTP connection, or nothing but the address that
 * the sandbox dialled) and from nothing else afterwards:
 *
 *   name in the question  =  name that policy allowed  =  name that we
 *   resolved  =  name in the origin's verified certificate  =  authority of
 *   every request on the connection
 *
 * The sandbox's own resolution is a hint: the address it dialled is kept only
 * when it is among our answers. What we checked is what we dial.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/wire/host.h"

struct facts;
struct sandbox;

enum scheme { SCHEME_NONE, SCHEME_HTTP, SCHEME_HTTPS, SCHEME_TCP, SCHEME_NUM };

const char *scheme_name(enum scheme scheme);
uint16_t scheme_port(enum scheme scheme);

/* Where the addresses came from. */
enum address_source {
	ADDRESS_ORIGINAL, /* the sandbox dialled it; no name is proved */
	ADDRESS_DNS,
	ADDRESS_HOSTS, /* the node's hosts file */
	ADDRESS_PIN,   /* the operator's pins: trusted like a certificate */
	ADDRESS_PROXY, /* none: the upstream proxy resolves the name */
};

enum { DESTINATION_ADDRS_MAX = 8 };

struct destination {
	enum scheme scheme;
	bool by_name;	  /* host is proved; else only the address counts */
	struct host host; /* what was asked for; "" = no name at all */
	uint16_t port;
	enum address_source source;
	/* What the sandbox dialled; port 0: it gave a proxy the name only. */
	struct addr original;
	/* checked addresses, best first, with port; none: see ADDRESS_PROXY */
	struct addr addrs[DESTINATION_ADDRS_MAX];
	unsigned addr_count;
};

/* Is this authority (Host, :authority) the one this connection is for? */
bool destination_is_authority(const struct destination *d,
			      const struct authority *a);
