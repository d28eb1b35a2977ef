/* SPDX-License-Identifier: Apache-2.0 */
/* config_pack.c - a configuration as bytes, from the supervisor to the roles
 *
 * How it works: the values in the order of the table, numbers in host order,
 * strings as length and bytes, lists as count and entries: both ends are one
 * build on one machine. That they are is looked at first: programs are replaced
 * under a supervisor that runs, and a role that ends then is started again from
 * the new file. So a role that never reads files needs no parser of
 * text either. The reader trusts the bytes for their meaning, which the parser
 * checked, but not for their lengths.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/err.h"
#include "src/role/config_value.h"
#include "src/role/msg.h"

/* Two programs with the same mean the same by a packed configuration and by
 * messages. */
struct build {
	char version[32];
	uint32_t keywords; /* of the table of the configuration */
	uint32_t messages;
};

static void build_fill(struct build *b)
{
	const struct config_keyword *keywords;
	unsigned count, i;

	*b = (struct build){ .messages = msg_layout() };
	(void)snprintf(b->version, sizeof(b->version), "%s", SALLYPORT_VERSION);
	keywords = config_keywords(&count);
	for (i = 0; i < count; i++)
		b->keywords = 31 * b->keywords + (uint32_t)keywords[i].offset +
			      (uint32_t)keywords[i].kind;
}

/* --- writing --- */

static int pack_bytes(struct buf *out, const void *bytes, size_t len)
{
	return buf_put(out, span_of(bytes, len));
}

static int pack_u32(struct buf *out, uint32_t value)
{
	return pack_bytes(out, &value, sizeof(value));
}

static int pack_string(struct buf *out, const char *s)
{
	struct span text = span_str(s);
	int r = pack_u32(out, (uint32_t)text.len);

	return r ? r : buf_put(out, text);
}

static int pack_strings(struct buf *out, const struct config_strings *s)
{
	int r = pack_u32(out, s->count);
	unsigned i;

	for (i = 0; !r && i < s->count; i++)
		r = pack_string(out, s->items[i]);
	return r;
}

static int pack_addrs(struct buf *out, const struct addr *addrs, unsigned count)
{
	int r = pack_u32(out, count);

	return r ? r : pack_bytes(out, addrs, count * sizeof(*addrs));
}

static int pack_pins(struct buf *out, const struct config *c)
{
	int r = pack_u32(out, c->pin_count);
	unsigned i;

	for (i = 0; !r && i < c->pin_count; i++) {
		r = pack_string(out, c->pins[i].name);
		if (!r)
			r = pack_addrs(out, c->pins[i].addrs,
				       c->pins[i].addr_count);
	}
	return r;
}

/* Bytes of a value that is kept in the struct itself; 0 for the others. */
static size_t flat_size(enum config_kind kind)
{
	switch (kind) {
	case CONFIG_LEVEL:
		return sizeof(enum log_level);
	case CONFIG_BOOL:
		return sizeof(bool);
	case CONFIG_U16:
		return sizeof(uint16_t);
	case CONFIG_U32:
		return sizeof(uint32_t);
	case CONFIG_ADDR_PORT:
		return sizeof(struct addr);
	case CONFIG_NET:
		return sizeof(struct cidr);
	case CONFIG_NONE:
	case CONFIG_PATH:
	case CONFIG_PATH_OR_NONE:
	case CONFIG_NAME:
	case CONFIG_USER:
	case CONFIG_HOST:
	case CONFIG_AUTHORITY:
	case CONFIG_URL:
	case CONFIG_INTERFACES:
	case CONFIG_PATHS:
	case CONFIG_BYPASSES:
	case CONFIG_ADDRS:
	case CONFIG_PINS:
	case CONFIG_KIND_NUM:
		break;
	}
	return 0;
}

static bool is_list_of_strings(enum config_kind kind)
{
	return kind == CONFIG_INTERFACES || kind == CONFIG_PATHS ||
	       kind == CONFIG_BYPASSES;
}

static int pack_value(struct buf *out, const struct config_keyword *k,
		      const struct config *c)
{
	const void *field = config_field(k, c);

	if (flat_size(k->kind))
		return pack_bytes(out, field, flat_size(k->kind));
	if (is_list_of_strings(k->kind))
		return pack_strings(out, field);
	if (k->kind == CONFIG_ADDRS)
		return pack_addrs(out, c->dns_upstreams, c->dns_upstream_count);
	if (k->kind == CONFIG_PINS)
		return pack_pins(out, c);
	return pack_string(out, *(char *const *)field);
}

int config_pack(const struct config *c, struct buf *out)
{
	const struct config_keyword *keywords;
	struct build build;
	unsigned count, i;
	int r;

	build_fill(&build);
	r = pack_bytes(out, &build, sizeof(build));
	keywords = config_keywords(&count);
	for (i = 0; !r && i < count; i++)
		r = pack_value(out, &keywords[i], c);
	return r;
}

/* --- reading; false: the bytes end too early --- */

static bool take_bytes(struct span *in, void *to, size_t len)
{
	if (in->len < len)
		return false;
	if (len)
		memcpy(to, in->ptr, len);
	*in = span_from(*in, len);
	return true;
}

/* A count of things of at least `each` bytes, of which so many are there. */
static bool take_count(struct span *in, size_t each, uint32_t *ret)
{
	return take_bytes(in, ret, sizeof(*ret)) && *ret <= in->len / each;
}

static bool take_string(struct span *in, char **ret)
{
	uint32_t len;

	if (!take_count(in, 1, &len))
		return false;
	*ret = must_alloc((size_t)len + 1);
	return take_bytes(in, *ret, len);
}

static bool take_strings(struct span *in, struct config_strings *s)
{
	uint32_t count;

	if (!take_count(in, sizeof(uint32_t), &count))
		return false;
	s->items = must_alloc(((size_t)count + 1) * sizeof(char *));
	while (s->count < count)
		if (!take_string(in, &s->items[s->count++]))
			return false;
	return true;
}

static bool take_addrs(struct span *in, struct addr **ret, unsigned *ret_count)
{
	uint32_t count;

	if (!take_count(in, sizeof(struct addr), &count))
		return false;
	*ret = must_alloc(((size_t)count + 1) * sizeof(struct addr));
	*ret_count = count;
	return take_bytes(in, *ret, count * sizeof(struct addr));
}

static bool take_pins(struct span *in, struct config *c)
{
	struct config_pin *pin;
	uint32_t count;

	if (!take_count(in, 2 * sizeof(uint32_t), &count))
		return false;
	c->pins = must_alloc(((size_t)count + 1) * sizeof(*c->pins));
	while (c->pin_count < count) {
		pin = &c->pins[c->pin_count++];
		if (!take_string(in, &pin->name) ||
		    !take_addrs(in, &pin->addrs, &pin->addr_count))
			return false;
	}
	return true;
}

static bool take_value(struct span *in, const struct config_keyword *k,
		       struct config *c)
{
	void *field = config_field(k, c);

	if (flat_size(k->kind))
		return take_bytes(in, field, flat_size(k->kind));
	if (is_list_of_strings(k->kind))
		return take_strings(in, field);
	if (k->kind == CONFIG_ADDRS)
		return take_addrs(in, &c->dns_upstreams,
				  &c->dns_upstream_count);
	if (k->kind == CONFIG_PINS)
		return take_pins(in, c);
	return take_string(in, field);
}

int config_unpack(struct span bytes, struct config **ret)
{
	const struct config_keyword *keywords;
	struct build ours, theirs;
	struct config *c;
	bool whole = true;
	unsigned count, i;

	build_fill(&ours);
	if (!take_bytes(&bytes, &theirs, sizeof(theirs)))
		return err_origin(-EPROTO);
	if (memcmp(&ours, &theirs, sizeof(ours)) != 0)
		return CONFIG_OTHER_BUILD;
	c = must_alloc(sizeof(*c));
	keywords = config_keywords(&count);
	for (i = 0; whole && i < count; i++)
		whole = take_value(&bytes, &keywords[i], c);
	if (!whole || bytes.len) {
		config_free(c);
		return err_origin(-EPROTO);
	}
	*ret = c;
	return 0;
}
