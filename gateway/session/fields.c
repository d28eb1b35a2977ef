/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - which header fields go on */

#include "gateway/session/fields.h"

#include "gateway/pipeline/inject.h"
#include "policy/binding.h"

static bool is_hop(const struct headers *all, const struct header *h)
{
	unsigned flags = header_flags_of(h->id);

	if (flags & HEADER_HOP || h->id == HEADER_TRANSFER_ENCODING)
		return true;
	/* what frames the message stays, whoever names it */
	return !(flags & HEADER_FRAMING) &&
	       headers_have_token(all, HEADER_CONNECTION, h->name);
}

/* Messages of gRPC that are compressed could not be searched: none are asked
 * for. */
static bool asks_for_unsearchable(const struct request *req,
				  const struct header *h)
{
	return req->binding && req->binding->redact_body &&
	       span_eq_nocase(h->name, SPAN("grpc-accept-encoding"));
}

bool field_goes_on(const struct request *req, const struct headers *all,
		   const struct header *h)
{
	if (is_hop(all, h) || asks_for_unsearchable(req, h))
		return false;
	return !req->injection_count ||
	       (!inject_replaces(req, h->name) && !inject_forbids(req, h->id));
}

bool field_comes_back(const struct headers *all, const struct header *h)
{
	return h->id != HEADER_ALT_SVC && !is_hop(all, h);
}

bool field_upgrades_to_http(struct span protocols)
{
	static const struct span names[] = {
		SPAN_INIT("h2c"),  SPAN_INIT("h2"),  SPAN_INIT("h3"),
		SPAN_INIT("http"), SPAN_INIT("tls"),
	};
	struct span member;
	unsigned i;

	while (protocols.len) {
		member = span_cut(&protocols, ',');
		member = span_trim(span_cut(&member, '/'));
		for (i = 0; i < ARRAY_LEN(names); i++)
			if (span_eq_nocase(member, names[i]))
				return true;
	}
	return false;
}
