/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.c - one setter per kind of configuration value
 *
 * How it works: a kind is a row {name, set}. A setter checks the node
 * completely before it replaces what the field holds, so that a refused value
 * leaves a struct that config_free() can still free. Defaults are text and go
 * through config_value_default(), which trusts them: they are ours.
 */

#include "src/role/config_value.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "src/base/chars.h"
#include "src/base/err.h"
#include "src/base/map.h"
#include "src/text/doc.h"
#include "src/wire/host.h"

enum {
	PATH_BYTES_MAX = 1024,
	NAME_BYTES_MAX = 255,
	URL_BYTES_MAX = 2048,
	USER_BYTES_MAX = 32,
	PIN_ADDRS_MAX = 16,
	DNS_PORT = 53,
};

typedef int value_set_fn(const struct config_keyword *k, struct config *c,
			 const struct doc_node *n, struct diag *d);

static char *dup_span(struct span s)
{
	char *text = must_alloc(s.len + 1);

	if (s.len)
		memcpy(text, s.ptr, s.len);
	return text;
}

static void string_replace(char **field, struct span s)
{
	free(*field);
	*field = dup_span(s);
}

/* --- what text is acceptable --- */

static bool is_printable(struct span s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
			return false;
	return true;
}

/* Absolute, and no ".." that a reader of the file could overlook. */
static bool is_path(struct span s)
{
	struct span rest = s, part;

	if (s.len < 2 || s.len > PATH_BYTES_MAX || s.ptr[0] != '/' ||
	    !is_printable(s))
		return false;
	while (rest.len) {
		part = span_cut(&rest, '/');
		if (span_eq(part, SPAN("..")))
			return false;
	}
	return true;
}

static bool is_path_or_none(struct span s)
{
	return !s.len || is_path(s);
}

static bool is_name(struct span s)
{
	return s.len <= NAME_BYTES_MAX && is_printable(s) &&
	       span_find(s, '/') == s.len && !span_starts(s, SPAN("."));
}

static bool all_of(struct span s, const char *extra)
{
	size_t i;
	char c;

	for (i = 0; i < s.len; i++) {
		c = s.ptr[i];
		if (!char_is_alnum(c) && !(c && strchr(extra, c)))
			return false;
	}
	return true;
}

static bool is_user(struct span s)
{
	return s.len <= USER_BYTES_MAX && all_of(s, "_.-") &&
	       !span_starts(s, SPAN("-"));
}

/* A name or a prefix and "*". "*" alone would take lo and the uplink. */
static bool is_interface(struct span s)
{
	bool is_prefix = s.len && s.ptr[s.len - 1] == '*';
	struct span name = span_of(s.ptr, s.len - is_prefix);

	return name.len > 0 && s.len < IFNAMSIZ && all_of(name, "_.-") &&
	       !(span_eq(name, SPAN("lo")) || span_eq(name, SPAN("l")));
}

static bool is_authority(struct span s)
{
	struct authority a;

	return !s.len || (authority_parse(s, 0, &a) && a.port_given);
}

/* The authority with or without a port; no user in it: what is secret does not
 * belong there, and nobody would see it sent. */
static bool is_url(struct span s)
{
	struct span rest = s;
	struct authority a;

	if (!s.len)
		return true;
	if (s.len > URL_BYTES_MAX || !is_printable(s) ||
	    span_find(s, ' ') != s.len || span_find(s, '#') != s.len)
		return false;
	if (span_starts(s, SPAN("http://")))
		rest = span_from(s, 7);
	else if (span_starts(s, SPAN("https://")))
		rest = span_from(s, 8);
	else
		return false;
	rest = span_cut(&rest, '/');
	return authority_parse(span_cut(&rest, '?'), 443, &a);
}

static bool is_bypass(struct span s)
{
	struct cidr net;
	struct host name;

	return cidr_parse(s, &net) ||
	       host_canon(span_from(s, span_starts(s, SPAN("."))), &name);
}

static bool text_is_valid(enum config_kind kind, struct span s)
{
	switch (kind) {
	case CONFIG_PATH:
	case CONFIG_PATHS:
		return is_path(s);
	case CONFIG_PATH_OR_NONE:
		return is_path_or_none(s);
	case CONFIG_NAME:
		return is_name(s);
	case CONFIG_USER:
		return is_user(s);
	case CONFIG_INTERFACES:
		return is_interface(s);
	case CONFIG_AUTHORITY:
		return is_authority(s);
	case CONFIG_URL:
		return is_url(s);
	case CONFIG_BYPASSES:
		return is_bypass(s);
	case CONFIG_NONE:
	case CONFIG_HOST:
	case CONFIG_LEVEL:
	case CONFIG_BOOL:
	case CONFIG_U16:
	case CONFIG_U32:
	case CONFIG_ADDR_PORT:
	case CONFIG_NET:
	case CONFIG_ADDRS:
	case CONFIG_PINS:
	case CONFIG_KIND_NUM:
		break;
	}
	return false;
}

/* --- setters --- */

/* What a person calls this kind, or an entry of it. */
static const char *expected(enum config_kind kind);

static int get_text(enum config_kind kind, const struct doc_node *n,
		    struct span *ret, struct diag *d)
{
	struct span text;
	int r = doc_get_string(n, &text, d);

	if (r)
		return r;
	if (!text_is_valid(kind, text))
		return doc_found_value(n, expected(kind), d);
	*ret = text;
	return 0;
}

static int set_string(const struct config_keyword *k, struct config *c,
		      const struct doc_node *n, struct diag *d)
{
	struct span text;
	int r;

	r = get_text(k->kind, n, &text, d);
	if (r)
		return r;
	string_replace(config_field(k, c), text);
	return 0;
}

static int set_host(const struct config_keyword *k, struct config *c,
		    const struct doc_node *n, struct diag *d)
{
	struct host host = { 0 };
	struct span text;
	int r = doc_get_string(n, &text, d);

	if (r)
		return r;
	if (text.len && !host_canon(text, &host))
		return doc_found_value(n, expected(k->kind), d);
	string_replace(config_field(k, c), host_span(&host));
	return 0;
}

static int set_level(const struct config_keyword *k, struct config *c,
		     const struct doc_node *n, struct diag *d)
{
	enum log_level level;
	struct span text;
	int r = doc_get_string(n, &text, d);

	if (r)
		return r;
	if (!log_level_parse(text, &level))
		return doc_found_value(n, expected(k->kind), d);
	*(enum log_level *)config_field(k, c) = level;
	return 0;
}

static int set_bool(const struct config_keyword *k, struct config *c,
		    const struct doc_node *n, struct diag *d)
{
	return doc_get_bool(n, config_field(k, c), d);
}

static int set_number(const struct config_keyword *k, struct config *c,
		      const struct doc_node *n, struct diag *d)
{
	uint64_t value;
	int r = doc_get_u64(n, k->min, k->max, &value, d);

	if (r)
		return r;
	if (k->kind == CONFIG_U16)
		*(uint16_t *)config_field(k, c) = (uint16_t)value;
	else
		*(uint32_t *)config_field(k, c) = (uint32_t)value;
	return 0;
}

static int check_count(const struct doc_node *n, uint64_t min, uint64_t max,
		       struct diag *d)
{
	if (n->count >= min && n->count <= max)
		return 0;
	return diag_set(d, n->line, n->col,
			"found %u entries, expected %llu to %llu", n->count,
			(unsigned long long)min, (unsigned long long)max);
}

static int set_strings(const struct config_keyword *k, struct config *c,
		       const struct doc_node *n, struct diag *d)
{
	struct config_strings *field = config_field(k, c);
	struct span text;
	int r;

	r = doc_expect(n, DOC_LIST, d);
	if (!r)
		r = check_count(n, k->min, k->max, d);
	if (r)
		return r;

	config_strings_fini(field);
	field->items = must_alloc(n->count * sizeof(char *) + 1);
	doc_for_each(item, n)
	{
		r = get_text(k->kind, item, &text, d);
		if (r)
			return r;
		field->items[field->count++] = dup_span(text);
	}
	return 0;
}

static int set_addr_port(const struct config_keyword *k, struct config *c,
			 const struct doc_node *n, struct diag *d)
{
	struct span text;
	struct addr addr;
	int r = doc_get_string(n, &text, d);

	if (r)
		return r;
	if (!addr_parse_port(text, 0, &addr) || !addr.port)
		return doc_found_value(n, expected(k->kind), d);
	*(struct addr *)config_field(k, c) = addr;
	return 0;
}

static int set_net(const struct config_keyword *k, struct config *c,
		   const struct doc_node *n, struct diag *d)
{
	struct span text;
	int r = doc_get_string(n, &text, d);

	if (!r && (span_find(text, '/') == text.len ||
		   !cidr_parse(text, config_field(k, c))))
		r = doc_found_value(n, expected(k->kind), d);
	return r;
}

static int set_addrs(const struct config_keyword *k, struct config *c,
		     const struct doc_node *n, struct diag *d)
{
	CLEANUP_FREE struct addr *addrs = NULL;
	struct span text;
	unsigned count = 0;
	int r;

	r = doc_expect(n, DOC_LIST, d);
	if (!r)
		r = check_count(n, k->min, k->max, d);
	if (r)
		return r;

	addrs = must_alloc((n->count + 1) * sizeof(*addrs));
	doc_for_each(item, n)
	{
		r = doc_get_string(item, &text, d);
		if (r)
			return r;
		if (!addr_parse_port(text, DNS_PORT, &addrs[count++]))
			return doc_found_value(item, expected(k->kind), d);
	}
	free(c->dns_upstreams);
	c->dns_upstreams = take_ptr(addrs);
	c->dns_upstream_count = count;
	return 0;
}

static int pin_set(struct config_pin *pin, const struct doc_node *n,
		   struct diag *d)
{
	struct span text;
	int r;

	r = doc_expect(n, DOC_LIST, d);
	if (!r)
		r = check_count(n, 1, PIN_ADDRS_MAX, d);
	if (r)
		return r;

	pin->addrs = must_alloc(n->count * sizeof(*pin->addrs));
	doc_for_each(item, n)
	{
		r = doc_get_string(item, &text, d);
		if (r)
			return r;
		if (!addr_parse(text, &pin->addrs[pin->addr_count]))
			return doc_found_value(item, "an IP address", d);
		pin->addr_count++;
	}
	return 0;
}

/* Two spellings of one name would leave it open which pin counts. */
static int pins_fill(struct config *c, const struct doc_node *n,
		     struct map *seen, struct diag *d)
{
	struct config_pin *pin;
	struct host host;
	int r;

	doc_for_each(item, n)
	{
		if (!host_canon(item->key, &host))
			return diag_set(d, item->key_line, item->key_col,
					"found a pin that is no host name, "
					"expected e.g. \"api.example.com\"");
		if (map_set(seen, host_span(&host), seen))
			return diag_set(d, item->key_line, item->key_col,
					"found \"%s\" a second time, "
					"expected one pin per name",
					host.text);
		pin = &c->pins[c->pin_count++];
		pin->name = dup_span(host_span(&host));
		r = pin_set(pin, item, d);
		if (r)
			return r;
	}
	return 0;
}

static int set_pins(const struct config_keyword *k, struct config *c,
		    const struct doc_node *n, struct diag *d)
{
	struct map seen;
	int r;

	r = doc_expect(n, DOC_MAP, d);
	if (!r)
		r = check_count(n, k->min, k->max, d);
	if (r)
		return r;

	config_pins_fini(c);
	c->pins = must_alloc((n->count + 1) * sizeof(*c->pins));
	map_init(&seen);
	r = pins_fill(c, n, &seen, d);
	map_fini(&seen);
	return r;
}

static const struct {
	const char *name;
	value_set_fn *set;
} kinds[CONFIG_KIND_NUM] = {
	[CONFIG_NONE] = { "nothing", NULL },
	[CONFIG_PATH] = { "an absolute path", set_string },
	[CONFIG_PATH_OR_NONE] = { "an absolute path or \"\"", set_string },
	[CONFIG_NAME] = { "a file name without folders", set_string },
	[CONFIG_USER] = { "an account name or \"\"", set_string },
	[CONFIG_HOST] = { "a host name or \"\"", set_host },
	[CONFIG_AUTHORITY] = { "host:port, ip:port or \"\"", set_string },
	[CONFIG_URL] = { "a URL of http or https, or \"\"", set_string },
	[CONFIG_LEVEL] = { "error, warn, info or debug", set_level },
	[CONFIG_BOOL] = { "true or false", set_bool },
	[CONFIG_U16] = { "a number", set_number },
	[CONFIG_U32] = { "a number", set_number },
	[CONFIG_INTERFACES] = { "an interface name, or its beginning and *",
				set_strings },
	[CONFIG_PATHS] = { "an absolute path", set_strings },
	[CONFIG_BYPASSES] = { "a network, an address or a name", set_strings },
	[CONFIG_ADDR_PORT] = { "ip:port", set_addr_port },
	[CONFIG_NET] = { "a network such as 10.0.0.0/16", set_net },
	[CONFIG_ADDRS] = { "ip or ip:port", set_addrs },
	[CONFIG_PINS] = { "a map of names to lists of addresses", set_pins },
};
static_assert(CONFIG_KIND_NUM == 19, "kinds has one row per kind");

static const char *expected(enum config_kind kind)
{
	return kinds[kind].name;
}

void config_value_default(const struct config_keyword *k, struct config *c)
{
	struct span text = span_str(k->fallback);
	struct config_strings *strings;
	uint64_t number;

	switch (k->kind) {
	case CONFIG_PATH:
	case CONFIG_PATH_OR_NONE:
	case CONFIG_NAME:
	case CONFIG_USER:
	case CONFIG_HOST:
	case CONFIG_AUTHORITY:
	case CONFIG_URL:
		string_replace(config_field(k, c), text);
		return;
	case CONFIG_LEVEL:
		must(log_level_parse(text, config_field(k, c)));
		return;
	case CONFIG_BOOL:
		*(bool *)config_field(k, c) = span_eq(text, SPAN("true"));
		return;
	case CONFIG_U16:
		must(span_parse_u64(text, &number));
		*(uint16_t *)config_field(k, c) = (uint16_t)number;
		return;
	case CONFIG_U32:
		must(span_parse_u64(text, &number));
		*(uint32_t *)config_field(k, c) = (uint32_t)number;
		return;
	case CONFIG_INTERFACES:
		strings = config_field(k, c);
		strings->items = must_alloc(sizeof(char *));
		strings->items[strings->count++] = dup_span(text);
		return;
	case CONFIG_NET:
		must(cidr_parse(text, config_field(k, c)));
		return;
	case CONFIG_PATHS:
	case CONFIG_BYPASSES:
	case CONFIG_ADDR_PORT:
	case CONFIG_ADDRS:
	case CONFIG_PINS:
		return; /* none, which is what zeroed memory says */
	case CONFIG_NONE:
	case CONFIG_KIND_NUM:
		break;
	}
	must(!"a keyword of no kind");
}

int config_value_set(const struct config_keyword *k, struct config *c,
		     const struct doc_node *n, struct diag *d)
{
	return kinds[k->kind].set(k, c, n, d);
}
