/* SPDX-License-Identifier: Apache-2.0 */
/* net_policies.c - kept, stored in pieces, put together again */

#include "src/control/egress/net_policies.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/vault_link.h"
#include "src/text/json.h"

struct kept_policy {
	struct net_policy *policy;
	unsigned pieces; /* in the vault */
};

struct kept_text {
	struct buf text;
	unsigned pieces;
};

static struct kept_policy *kept_free(struct kept_policy *k)
{
	if (k)
		net_policy_free(k->policy);
	free(k);
	return NULL;
}

void net_policies_init(struct net_policies *all)
{
	map_init(&all->by_id);
}

void net_policies_fini(struct net_policies *all)
{
	struct kept_policy *k;
	size_t cursor = 0;

	while ((k = map_next(&all->by_id, &cursor, NULL)))
		kept_free(k);
	map_fini(&all->by_id);
}

const struct net_policy *net_policies_find(const struct net_policies *all,
					   struct span id)
{
	const struct kept_policy *k = map_find(&all->by_id, id);

	return k ? k->policy : NULL;
}

void net_policies_put(struct net_policies *all, struct span id,
		      struct net_policy *p, unsigned pieces)
{
	struct kept_policy *k = must_alloc(sizeof(*k));

	k->policy = p;
	k->pieces = pieces;
	kept_free(map_set(&all->by_id, id, k));
}

void net_policies_remove(struct net_policies *all, struct span id)
{
	kept_free(map_take(&all->by_id, id));
}

/* -- names ---------------------------------------------------------------- */

void net_policies_name(struct span id, char dst[NET_POLICY_NAME_SIZE])
{
	(void)snprintf(dst, NET_POLICY_NAME_SIZE, "sandbox.%.*s", SPAN_FMT(id));
}

bool net_policies_own(const struct net_policies *all, struct span name)
{
	const struct span prefix = SPAN("sandbox.");

	return span_starts(name, prefix) &&
	       net_policies_find(all, span_from(name, prefix.len));
}

static struct span piece_name(struct span id, unsigned at,
			      char dst[NET_POLICY_NAME_SIZE])
{
	(void)snprintf(dst, NET_POLICY_NAME_SIZE, "%.*s.%02u", SPAN_FMT(id),
		       at);
	return span_str(dst);
}

/* -- storing -------------------------------------------------------------- */

static unsigned pieces_of(const struct net_policies *all, struct span id)
{
	const struct kept_policy *k = map_find(&all->by_id, id);

	return k ? k->pieces : 0;
}

static void pieces_remove(struct span id, unsigned from, unsigned to,
			  struct vault_link *link)
{
	char name[NET_POLICY_NAME_SIZE];

	for (; from < to; from++)
		vault_link_remove(link, RECORD_NET_POLICY,
				  piece_name(id, from, name));
}

unsigned net_policies_store(const struct net_policies *all, struct span id,
			    struct span text, struct vault_link *link)
{
	char name[NET_POLICY_NAME_SIZE];
	unsigned pieces;
	size_t len;

	for (pieces = 0; text.len; pieces++) {
		len = MIN(text.len, (size_t)NET_POLICY_PIECE);
		vault_link_put(link, RECORD_NET_POLICY,
			       piece_name(id, pieces, name),
			       span_of(text.ptr, len));
		text = span_from(text, len);
	}
	pieces_remove(id, pieces, pieces_of(all, id), link);
	return pieces;
}

void net_policies_store_none(const struct net_policies *all, struct span id,
			     struct vault_link *link)
{
	pieces_remove(id, 0, pieces_of(all, id), link);
}

/* -- reading -------------------------------------------------------------- */

void net_policy_texts_init(struct net_policy_texts *t)
{
	map_init(&t->by_id);
}

void net_policy_texts_fini(struct net_policy_texts *t)
{
	struct kept_text *k;
	size_t cursor = 0;

	while ((k = map_next(&t->by_id, &cursor, NULL))) {
		buf_fini(&k->text);
		free(k);
	}
	map_fini(&t->by_id);
}

bool net_policy_texts_add(struct net_policy_texts *t, struct span name,
			  struct span value)
{
	struct kept_text *k;
	struct span id;

	if (name.len < sizeof(".00"))
		return false;
	id = span_of(name.ptr, name.len - 3);
	k = map_find(&t->by_id, id);
	if (!k) {
		k = must_alloc(sizeof(*k));
		buf_init(&k->text, NET_POLICY_TEXT_MAX);
		(void)map_set(&t->by_id, id, k);
	}
	k->pieces++;
	return !buf_put(&k->text, value);
}

static int text_parse(struct span text, struct net_policy **ret, struct diag *d)
{
	struct json *j CLEANUP_JSON = NULL;
	unsigned total;
	int r;

	r = json_parse(text, &j, d);
	if (!r)
		r = net_policy_parse(j, ret, &total, d);
	return r;
}

void net_policy_texts_parse(const struct net_policy_texts *t,
			    struct net_policies *all)
{
	const struct kept_text *k;
	struct net_policy *p;
	size_t cursor = 0;
	struct span id;

	while ((k = map_next(&t->by_id, &cursor, &id))) {
		struct diag d = { 0 };

		if (text_parse(buf_peek(&k->text), &p, &d))
			log_error("the stored network policy of sandbox "
				  "\"%.*s\" could not be read and is not in "
				  "force: %s",
				  SPAN_FMT(id), d.msg);
		else
			net_policies_put(all, id, p, k->pieces);
	}
}
