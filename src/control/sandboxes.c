/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes.c - sandboxes by id and by address */

#include "src/control/sandboxes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/buf.h"
#include "src/base/chars.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/policies.h"
#include "src/text/json.h"

enum { SANDBOX_ARENA_MAX = 128 * 1024 };

/* Who claims an address: one, but for registrations of a release that took the
 * interface for a part of the address. */
struct address_claims {
	struct sandbox **items;
	unsigned count;
};

/* -- parsing -------------------------------------------------------------- */

/* A sandbox while it is read. */
struct draft {
	struct sandbox s;
	struct addr addrs[MSG_ADDRS_MAX];
	struct arena arena;
};

bool sandbox_id_is_valid(struct span id)
{
	size_t i;

	if (!id.len || id.len > SANDBOX_ID_MAX || !char_is_alnum(id.ptr[0]))
		return false;
	for (i = 1; i < id.len; i++)
		if (!char_is_alnum(id.ptr[i]) && !strchr("._-:", id.ptr[i]))
			return false;
	return memchr(id.ptr, '\0', id.len) == NULL;
}

static int id_read(const struct json *j, struct span name, struct draft *draft,
		   struct diag *d)
{
	struct span id = name;
	int r;

	r = json_get_text(j, "sandbox", "id", &id, d);
	if (r < 0)
		return r;
	if (!sandbox_id_is_valid(id))
		return diag_set(d, 0, 0,
				"sandbox: \"id\": expected 1 to %d letters, "
				"digits, '.', '_', '-' or ':'",
				SANDBOX_ID_MAX);
	if (name.ptr && !span_eq(name, id))
		return diag_set(d, 0, 0,
				"sandbox: \"id\" differs from the "
				"path");
	draft->s.id = arena_dup(&draft->arena, id);
	return 0;
}

/* member: "interface" or "port"; "" stays when it is not there. */
static int iface_read(const struct json *j, const char *member,
		      char dst[MSG_IFACE_SIZE], struct diag *d)
{
	struct span iface = SPAN("");
	size_t i;
	int r;

	r = json_get_text(j, "sandbox", member, &iface, d);
	if (r < 0)
		return r;
	for (i = 0; i < iface.len; i++)
		if (iface.ptr[i] <= 0x20 || iface.ptr[i] >= 0x7f ||
		    strchr("/:*\"", iface.ptr[i]))
			break;
	if (i < iface.len || !span_copy(iface, dst, MSG_IFACE_SIZE))
		return diag_set(d, 0, 0,
				"sandbox: \"%s\": expected the name of "
				"a network interface",
				member);
	return 0;
}

static bool hex_pair(const char *at, uint8_t *ret)
{
	int high = char_hex(at[0]), low = char_hex(at[1]);

	if (high < 0 || low < 0)
		return false;
	*ret = (uint8_t)(high << 4 | low);
	return true;
}

/* "02:42:0a:09:00:02": of one interface, so not of a group, and not zero. */
static bool mac_parse(struct span text, uint8_t ret[6])
{
	static const uint8_t zero[6];
	size_t i;

	if (text.len != 6 * 3 - 1)
		return false;
	for (i = 0; i < 6; i++)
		if (!hex_pair(text.ptr + 3 * i, &ret[i]) ||
		    (i < 5 && text.ptr[3 * i + 2] != ':'))
			return false;
	return !(ret[0] & 1) && memcmp(ret, zero, sizeof(zero)) != 0;
}

static int mac_read(const struct json *j, struct sandbox *s, struct diag *d)
{
	struct span text = SPAN_NONE;
	int r = json_get_text(j, "sandbox", "mac", &text, d);

	if (r)
		return r < 0 ? r : 0;
	s->has_mac = mac_parse(text, s->mac);
	if (!s->has_mac)
		return diag_set(d, 0, 0,
				"sandbox: \"mac\": expected the hardware "
				"address of one interface, as "
				"\"02:42:0a:09:00:02\"");
	return 0;
}

static int device_read(const struct json *j, struct sandbox *s, struct diag *d)
{
	int r = iface_read(j, "interface", s->iface, d);

	if (!r)
		r = iface_read(j, "port", s->port, d);
	if (!r)
		r = mac_read(j, s, d);
	if (!r && !s->iface[0] && (s->port[0] || s->has_mac))
		return diag_set(d, 0, 0,
				"sandbox: \"port\" and \"mac\" need an "
				"\"interface\"");
	return r;
}

static int addrs_read(const struct json *j, struct sandbox *s, struct diag *d)
{
	const struct json *array = NULL;
	enum addr_kind kind;
	char text[64];
	unsigned i;
	int r;

	r = json_get_array(j, "sandbox", "addresses", &array, d);
	if (r < 0)
		return r;
	if (!json_count(array) || json_count(array) > MSG_ADDRS_MAX)
		return diag_set(d, 0, 0,
				"sandbox: \"addresses\": found %zu, expected 1 "
				"to %d",
				json_count(array), MSG_ADDRS_MAX);
	json_for_each(item, array)
	{
		struct addr *a = &s->addrs[s->addr_count];

		if (!addr_parse(json_text(item), a))
			return diag_set(d, 0, 0,
					"sandbox: address \"%s\": expected an "
					"IPv4 or IPv6 address",
					log_escape(json_text(item), text,
						   sizeof(text)));
		kind = addr_kind(a);
		if (kind == ADDR_UNSPECIFIED || kind == ADDR_MULTICAST)
			return diag_set(d, 0, 0,
					"sandbox: address %s is %s, which no "
					"sandbox can have",
					addr_text(a, text, sizeof(text)),
					addr_kind_name(kind));
		for (i = 0; i < s->addr_count; i++)
			if (addr_eq_ip(&s->addrs[i], a))
				break;
		s->addr_count += i == s->addr_count;
	}
	return 0;
}

static int label_order(const void *a, const void *b)
{
	const struct policy_label *x = a, *y = b;

	return strcmp(x->key.ptr, y->key.ptr);
}

static int labels_read(const struct json *j, struct draft *draft,
		       struct diag *d)
{
	const struct json *labels = NULL, *value;
	struct sandbox *s = &draft->s;
	struct span key, text;
	void *cursor = NULL;
	int r;

	r = json_get_object(j, "sandbox", "labels", &labels, d);
	if (r)
		return r < 0 ? r : 0;
	if (json_count(labels) > SANDBOX_LABELS_MAX)
		return diag_set(d, 0, 0,
				"sandbox: \"labels\": found %zu, expected at "
				"most %d",
				json_count(labels), SANDBOX_LABELS_MAX);
	s->labels = arena_alloc(&draft->arena,
				(json_count(labels) + 1) * sizeof(*s->labels));
	must(s->labels);
	while ((value = json_next(labels, &cursor, &key))) {
		text = json_text(value);
		if (!text.ptr || !key.len || key.len > SANDBOX_LABEL_MAX ||
		    text.len > SANDBOX_LABEL_MAX)
			return diag_set(d, 0, 0,
					"sandbox: \"labels\": expected names "
					"and strings of at most %d bytes",
					SANDBOX_LABEL_MAX);
		s->labels[s->label_count++] =
			(struct policy_label){ arena_dup(&draft->arena, key),
					       arena_dup(&draft->arena, text) };
	}
	qsort(s->labels, s->label_count, sizeof(*s->labels), label_order);
	return 0;
}

static int default_policy_read(const struct json *j, struct draft *draft,
			       struct diag *d)
{
	struct span text = SPAN_NONE;
	int r = json_get_text(j, "sandbox", "defaultPolicy", &text, d);

	if (r)
		return r < 0 ? r : 0;
	if (!text.len || text.len > POLICY_NAME_MAX)
		return diag_set(d, 0, 0,
				"sandbox: \"defaultPolicy\": expected the name "
				"of a policy, 1 to %d bytes",
				POLICY_NAME_MAX);
	draft->s.default_policy = arena_dup(&draft->arena, text);
	return 0;
}

/* Lower case, as sha256sum writes it. */
static int hash_read(const struct json *j, const char *member,
		     uint8_t hash[MSG_HASH_SIZE], bool *ret_has, struct diag *d)
{
	struct span text = SPAN_NONE;
	int r = json_get_text(j, "ingress", member, &text, d);
	size_t i;

	if (r)
		return r < 0 ? r : 0;
	*ret_has = text.len == 2 * (size_t)MSG_HASH_SIZE;
	for (i = 0; *ret_has && i < MSG_HASH_SIZE; i++)
		*ret_has = hex_pair(text.ptr + 2 * i, &hash[i]);
	return *ret_has ? 0
			: diag_set(d, 0, 0,
				   "ingress: \"%s\": expected the %d hex "
				   "digits of a SHA-256",
				   member, 2 * MSG_HASH_SIZE);
}

static int ingress_read(const struct json *j, struct sandbox_ingress *in,
			struct diag *d)
{
	static const char *const known[] = { "execdTokenSha256",
					     "secureTokenSha256", NULL };
	const struct json *object = NULL;
	int r = json_get_object(j, "sandbox", "ingress", &object, d);

	if (r)
		return r < 0 ? r : 0;
	in->is_open = true;
	r = json_refuse_unknown(object, "ingress", known, d);
	if (!r)
		r = hash_read(object, known[0], in->execd_token,
			      &in->has_execd_token, d);
	if (!r)
		r = hash_read(object, known[1], in->secure_token,
			      &in->has_secure_token, d);
	return r;
}

static int draft_read(const struct json *j, struct span name,
		      struct draft *draft, struct diag *d)
{
	static const char *const known[] = {
		"id",	  "interface", "port",		"mac", "addresses",
		"labels", "ingress",   "defaultPolicy", NULL
	};
	int r;

	r = json_want(j, JSON_KIND_OBJECT, "sandbox", d);
	if (!r)
		r = json_refuse_unknown(j, "sandbox", known, d);
	if (!r)
		r = id_read(j, name, draft, d);
	if (!r)
		r = device_read(j, &draft->s, d);
	if (!r)
		r = addrs_read(j, &draft->s, d);
	if (!r)
		r = labels_read(j, draft, d);
	if (!r)
		r = default_policy_read(j, draft, d);
	if (!r)
		r = ingress_read(j, &draft->s.ingress, d);
	if (!r)
		must(!arena_overflowed(&draft->arena)); /* bounded above */
	return r;
}

/* Copies s with a NUL to *at, and moves on. */
static struct span text_put(char **at, struct span s)
{
	char *dst = *at;

	if (s.len)
		memcpy(dst, s.ptr, s.len);
	dst[s.len] = '\0';
	*at += s.len + 1;
	return span_of(dst, s.len);
}

static struct sandbox *sandbox_new(const struct sandbox *from)
{
	size_t addrs = from->addr_count * sizeof(*from->addrs);
	size_t labels = from->label_count * sizeof(*from->labels);
	size_t size = sizeof(*from) + addrs + labels + from->id.len + 1 +
		      from->default_policy.len + 1;
	struct sandbox *s;
	unsigned i;
	char *at;

	for (i = 0; i < from->label_count; i++)
		size += from->labels[i].key.len + from->labels[i].value.len + 2;
	s = must_alloc(size);
	*s = *from;
	s->labels = (void *)(s + 1);
	s->addrs = (void *)((char *)s->labels + labels);
	at = (char *)s->addrs + addrs;
	memcpy(s->addrs, from->addrs, addrs);
	s->id = text_put(&at, from->id);
	s->default_policy = text_put(&at, from->default_policy);
	for (i = 0; i < from->label_count; i++) {
		s->labels[i].key = text_put(&at, from->labels[i].key);
		s->labels[i].value = text_put(&at, from->labels[i].value);
	}
	return s;
}

int sandbox_parse(struct span text, struct span name, struct sandbox **ret,
		  struct diag *d)
{
	struct json *root CLEANUP_JSON = NULL;
	struct draft draft = { .s.policy = POLICY_ID_NONE };
	int r;

	r = json_parse(text, &root, d);
	if (r)
		return r;
	arena_init(&draft.arena, SANDBOX_ARENA_MAX);
	draft.s.addrs = draft.addrs;
	r = draft_read(root, name, &draft, d);
	if (!r)
		*ret = sandbox_new(&draft.s);
	arena_fini(&draft.arena);
	return r;
}

struct sandbox *sandbox_free(struct sandbox *s)
{
	free(s);
	return NULL;
}

/* -- writing -------------------------------------------------------------- */

static void hash_emit(struct json_out *o, const char *member, bool has,
		      const uint8_t hash[MSG_HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * MSG_HASH_SIZE + 1] = "";
	size_t i;

	if (!has)
		return;
	for (i = 0; i < MSG_HASH_SIZE; i++) {
		text[2 * i] = digits[hash[i] >> 4];
		text[2 * i + 1] = digits[hash[i] & 15];
	}
	json_put_str(o, member, text);
}

static void ingress_emit(struct json_out *o, const struct sandbox_ingress *in)
{
	if (!in->is_open)
		return;
	json_open_object(o, "ingress");
	hash_emit(o, "execdTokenSha256", in->has_execd_token, in->execd_token);
	hash_emit(o, "secureTokenSha256", in->has_secure_token,
		  in->secure_token);
	json_close(o);
}

void sandbox_emit(struct json_out *o, const struct sandbox *s)
{
	char text[ADDR_TEXT_SIZE];
	unsigned i;

	json_put_text(o, "id", s->id);
	if (s->iface[0])
		json_put_str(o, "interface", s->iface);
	if (s->port[0])
		json_put_str(o, "port", s->port);
	if (s->has_mac)
		json_put_str(o, "mac", mac_text(s->mac, text));
	json_open_array(o, "addresses");
	for (i = 0; i < s->addr_count; i++)
		json_put_str(o, NULL,
			     addr_text(&s->addrs[i], text, sizeof(text)));
	json_close(o);
	json_open_object(o, "labels");
	for (i = 0; i < s->label_count; i++)
		json_put_text(o, s->labels[i].key.ptr, s->labels[i].value);
	json_close(o);
	if (s->default_policy.len)
		json_put_text(o, "defaultPolicy", s->default_policy);
	ingress_emit(o, &s->ingress);
}

void sandbox_set_lock(struct sandbox *s, const struct msg_locked *reply)
{
	s->lock = reply->status ? LOCK_FAILED
		  : s->iface[0] ? LOCK_HELD
				: LOCK_NONE;
	s->on_bridge = reply->is_bridge && !s->port[0];
}

void sandbox_emit_lock(struct json_out *o, const struct sandbox *s)
{
	const char *note = NULL;

	if (s->lock == LOCK_HELD && !s->awaits_port)
		json_put_str(o, "lockedAt", s->port[0] ? s->port : s->iface);
	else
		json_put_null(o, "lockedAt");
	if (s->lock == LOCK_FAILED)
		note = "the lock could not be installed: the sandbox is cut "
		       "off";
	else if (!s->iface[0])
		note = "no interface was given: its addresses are believed "
		       "wherever they come from";
	else if (s->awaits_port)
		note = "its port of the bridge is not known yet: nothing of "
		       "it passes";
	else if (s->on_bridge)
		note = "the interface is a bridge and no port was given: "
		       "whatever is at a port that is no sandbox's can take "
		       "its addresses";
	if (note)
		json_put_str(o, "lockNote", note);
}

void sandbox_fill(const struct sandbox *s, struct msg_sandbox *ret)
{
	unsigned i;

	*ret = (struct msg_sandbox){ .policy = s->policy,
				     .addr_count = s->addr_count };
	must(span_copy(s->id, ret->id, sizeof(ret->id)));
	memcpy(ret->iface, s->iface, sizeof(ret->iface));
	memcpy(ret->port, s->port, sizeof(ret->port));
	for (i = 0; i < s->addr_count; i++)
		memcpy(ret->addrs[i], s->addrs[i].ip, sizeof(ret->addrs[i]));
}

void sandbox_fill_ingress(const struct sandbox *s, struct msg_ingress *ret)
{
	const struct sandbox_ingress *in = &s->ingress;
	unsigned i;

	*ret = (struct msg_ingress){ .has_execd_token = in->has_execd_token,
				     .is_secured = in->has_secure_token,
				     .renews = in->renews };
	must(span_copy(s->id, ret->id, sizeof(ret->id)));
	memcpy(ret->iface, s->iface, sizeof(ret->iface));
	memcpy(ret->execd_token, in->execd_token, sizeof(ret->execd_token));
	memcpy(ret->secure_token, in->secure_token, sizeof(ret->secure_token));
	for (i = 0; i < s->addr_count; i++)
		if (addr_kind(&s->addrs[i]) != ADDR_LINK_LOCAL)
			memcpy(ret->addrs[ret->addr_count++], s->addrs[i].ip,
			       sizeof(ret->addrs[0]));
}

/* -- all of them ---------------------------------------------------------- */

void sandboxes_init(struct sandboxes *all)
{
	map_init(&all->by_id);
	map_init(&all->by_addr);
}

void sandboxes_fini(struct sandboxes *all)
{
	struct address_claims *claims;
	struct sandbox *s;
	struct span key;
	size_t cursor = 0;

	while ((s = map_next(&all->by_id, &cursor, &key)))
		sandbox_free(s);
	cursor = 0;
	while ((claims = map_next(&all->by_addr, &cursor, &key))) {
		free(claims->items);
		free(claims);
	}
	map_fini(&all->by_id);
	map_fini(&all->by_addr);
}

static struct span addr_key(const struct addr *a)
{
	return span_of(a->ip, sizeof(a->ip));
}

static void claim_add(struct sandboxes *all, struct sandbox *s,
		      const struct addr *a)
{
	struct address_claims *c = map_find(&all->by_addr, addr_key(a));

	if (!c) {
		c = must_alloc(sizeof(*c));
		(void)map_set(&all->by_addr, addr_key(a), c);
	}
	c->items = must_realloc(c->items, (c->count + 1) * sizeof(*c->items));
	c->items[c->count++] = s;
}

static void claim_remove(struct sandboxes *all, const struct sandbox *s,
			 const struct addr *a)
{
	struct address_claims *c = map_find(&all->by_addr, addr_key(a));
	unsigned i;

	for (i = 0; c && i < c->count; i++)
		if (c->items[i] == s)
			c->items[i--] = c->items[--c->count];
	if (!c || c->count)
		return;
	(void)map_take(&all->by_addr, addr_key(a));
	free(c->items);
	free(c);
}

struct sandbox *sandboxes_find(const struct sandboxes *all, struct span id)
{
	return map_find(&all->by_id, id);
}

const struct sandbox *sandboxes_conflict(const struct sandboxes *all,
					 const struct sandbox *s,
					 const struct addr **ret_addr)
{
	const struct address_claims *c;
	unsigned i, j;

	for (i = 0; i < s->addr_count; i++) {
		c = map_find(&all->by_addr, addr_key(&s->addrs[i]));
		for (j = 0; c && j < c->count; j++) {
			if (span_eq(c->items[j]->id, s->id))
				continue;
			*ret_addr = &s->addrs[i];
			return c->items[j];
		}
	}
	return NULL;
}

void sandboxes_remove(struct sandboxes *all, struct span id)
{
	struct sandbox *s = map_take(&all->by_id, id);
	unsigned i;

	if (!s)
		return;
	for (i = 0; i < s->addr_count; i++)
		claim_remove(all, s, &s->addrs[i]);
	sandbox_free(s);
}

void sandboxes_put(struct sandboxes *all, struct sandbox *s)
{
	unsigned i;

	sandboxes_remove(all, s->id);
	(void)map_set(&all->by_id, s->id, s);
	for (i = 0; i < s->addr_count; i++)
		claim_add(all, s, &s->addrs[i]);
}

static int id_order(const void *a, const void *b)
{
	const struct sandbox *const *x = a, *const *y = b;

	return strcmp((*x)->id.ptr, (*y)->id.ptr);
}

struct sandbox **sandboxes_sorted(const struct sandboxes *all,
				  unsigned *ret_count)
{
	struct sandbox **items =
		must_alloc((map_count(&all->by_id) + 1) * sizeof(*items));
	struct span key;
	size_t cursor = 0;
	struct sandbox *s;

	*ret_count = 0;
	while ((s = map_next(&all->by_id, &cursor, &key)))
		items[(*ret_count)++] = s;
	qsort(items, *ret_count, sizeof(*items), id_order);
	return items;
}
