/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - the one canonicaliser of host names (field cases 4, 6, 7)
 *
 * Every name that is compared anywhere (policy targets, SNI, Host, DNS
 * questions, bindings) went through host_canon(): LDH labels and underscores
 * of 1..63 bytes, at most 253 in all, lower case, one trailing dot cut. No NUL,
 * no control, no percent, no IP literal (those are addresses), no empty label,
 * no hyphen at the ends of a label.
 */
#pragma once

#include <stdbool.h>

#include "src/base/addr.h"
#include "src/base/span.h"

enum { HOST_MAX = 253 };

struct host {
	char text[HOST_MAX + 1]; /* NUL-terminated, canonical */
	uint8_t len;
};

static inline struct span host_span(const struct host *h)
{
	return span_of(h->text, h->len);
}

/* A name. False (ret untouched): not canonicalisable. A last label of digits
 * only, or 0x and hex digits, is refused: some resolver would read it as an
 * address. */
WUNRES bool host_canon(struct span text, struct host *ret);

/* An authority as in Host, :authority or CONNECT: name or IP literal (IPv6 in
 * brackets) with an optional port; no userinfo. port_given tells whether. */
struct authority {
	bool is_address;
	struct host host;    /* when a name */
	struct addr address; /* when an IP literal; its port is .port */
	uint16_t port;	     /* default_port when none was given */
	bool port_given;
};

/* False (ret untouched): not one of these forms. An empty port, port 0, leading
 * zeros and IPv6 without brackets are refused. */
WUNRES bool authority_parse(struct span text, uint16_t default_port,
			    struct authority *ret);

/* Does name lie below suffix at a label boundary ("a.b.c" below "b.c")? Both
 * canonical; a name is not below itself. */
bool host_is_below(struct span name, struct span suffix);
