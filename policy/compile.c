/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - lay out the bytes of a snapshot (layout.h), section by section
 *
 * How it works: the index (compile_index.h) says which rules ask for which
 * target; then every section is written behind the one before it, and the
 * head, written last over its own place, says where they are. Ports, strings
 * and texts gather in buffers of their own that become sections later. The hash
 * table is tried with one seed after the other, then with more slots, until no
 * chain is longer than PROBE_MAX.
 */

#include "policy/compile.h"

#include <errno.h>

#include "policy/compile_index.h"
#include "policy/lookup.h"
#include "src/base/buf.h"
#include "src/base/err.h"

enum {
	SEEDS = 16,
	GROWTHS = 3,	     /* doublings of the table, when no seed will do */
	RULE_TEXT_MAX = 256, /* longer ones end in "..." */
};

struct compiler {
	const struct policy_rule **rules;
	uint32_t rule_count;
	const struct policy_model *model; /* NULL: overlay */
	struct index index;
	struct snapshot_head head;
	struct buf text, strings, ports;
	struct buf *out;
	struct span last_file; /* rules of a file stand together */
	struct snap_string last_file_at;
	int error; /* sticky */
};

static void put(struct compiler *c, const void *bytes, size_t len)
{
	if (!c->error)
		c->error = buf_put(c->out, span_of(bytes, len));
}

static void put_align(struct compiler *c, size_t align)
{
	static const char zeros[SNAPSHOT_ALIGN];

	put(c, zeros, (align - buf_len(c->out) % align) % align);
}

static void section_begin(struct compiler *c, enum snap_section_id id,
			  size_t count)
{
	put_align(c, SNAPSHOT_ALIGN);
	c->head.sections[id].at = (uint32_t)buf_len(c->out);
	c->head.sections[id].count = (uint32_t)count;
}

static struct snap_string put_text(struct compiler *c, struct span s)
{
	struct snap_string string = { (uint32_t)buf_len(&c->text),
				      (uint32_t)s.len };

	if (!c->error)
		c->error = buf_put(&c->text, s);
	return string;
}

static struct snap_string put_file(struct compiler *c, struct span file)
{
	if (!c->last_file.ptr || !span_eq(c->last_file, file))
		c->last_file_at = put_text(c, file);
	c->last_file = file;
	return c->last_file_at;
}

static void put_string(struct compiler *c, struct span s)
{
	uint16_t len = (uint16_t)s.len;

	if (!c->error)
		c->error = buf_put(&c->strings, span_of(&len, sizeof(len)));
	if (!c->error)
		c->error = buf_put(&c->strings, s);
}

static void put_ports(struct compiler *c, const struct policy_rule *rule)
{
	struct snap_ports record;
	unsigned i;

	for (i = 0; i < rule->port_count && !c->error; i++) {
		record.first = rule->ports[i].first;
		record.last = rule->ports[i].last;
		c->error = buf_put(&c->ports, span_of(&record, sizeof(record)));
	}
}

static unsigned count_labels(struct span name)
{
	unsigned labels = 1;
	size_t i;

	for (i = 0; i < name.len; i++)
		labels += name.ptr[i] == '.';
	return labels;
}

/* Kind of the target, for who looks at the verdict. */
static void mark_target(const struct policy_target *t, struct snap_rule *record)
{
	switch (t->kind) {
	case TARGET_NAME:
		record->flags |= RULE_EXACT;
		record->labels = (uint8_t)count_labels(t->name);
		return;
	case TARGET_WILDCARD:
		record->labels = (uint8_t)count_labels(t->name);
		return;
	case TARGET_ADDRESS:
		record->flags |= RULE_ADDRESS;
		if (t->cidr.prefix == 128)
			record->flags |= RULE_EXACT;
		return;
	}
}

static void put_rule(struct compiler *c, uint32_t index)
{
	const struct policy_rule *rule = c->rules[index];
	struct snap_rule record = {
		.index = index,
		.action = (uint8_t)rule->action,
		.protocol = (uint8_t)rule->protocol,
		.port_count = (uint16_t)rule->port_count,
		.method_count = (uint16_t)rule->method_count,
		.path_count = (uint16_t)rule->path_count,
		.strings_at = (uint32_t)buf_len(&c->strings),
	};
	unsigned i;

	mark_target(&rule->target, &record);
	if (policy_rule_is_constrained(rule))
		record.flags |= RULE_CONSTRAINED;
	if (record.flags & RULE_CONSTRAINED && !(record.flags & RULE_ADDRESS))
		c->head.looks_inside = 1;
	if (record.flags & RULE_ADDRESS && rule->action == VERDICT_DENY)
		c->head.address_denies = 1;
	if (rule->port_count == 1) {
		record.port_first = rule->ports[0].first;
		record.port_last = rule->ports[0].last;
	} else {
		record.ports_at = (uint32_t)(buf_len(&c->ports) /
					     sizeof(struct snap_ports));
		put_ports(c, rule);
	}
	for (i = 0; i < rule->method_count; i++)
		put_string(c, rule->methods[i]);
	for (i = 0; i < rule->path_count; i++)
		put_string(c, rule->paths[i]);
	put(c, &record, sizeof(record));
}

static void put_list(struct compiler *c, const struct rule_list *l)
{
	uint32_t rule = l->first, i;

	for (i = 0; i < l->count; i++, rule = c->index.next[rule])
		put_rule(c, rule);
}

static void put_host(struct compiler *c, struct index_host *host)
{
	const struct snap_host record = {
		.self_count = host->self.count,
		.below_count = host->below.count,
		.flags = host->flags,
		.name_len = (uint8_t)host->name.len,
	};
	unsigned labels = count_labels(host->name);

	put_align(c, 8);
	host->at =
		(uint32_t)buf_len(c->out) - c->head.sections[SECTION_HOSTS].at;
	put(c, &record, offsetof(struct snap_host, name));
	put(c, host->name.ptr, host->name.len);
	put_align(c, 4);
	put_list(c, &host->self);
	put_list(c, &host->below);
	if (host->below.count ||
	    host->flags & (HOST_BELOW_INSPECT | HOST_BELOW_PASSTHROUGH))
		c->head.below[labels / 64] |= UINT64_C(1) << labels % 64;
}

static void put_hosts(struct compiler *c)
{
	uint32_t i;

	section_begin(c, SECTION_HOSTS, 0);
	/* so that no record stands at 0, which means an empty slot */
	put(c, &c->head.seed, sizeof(c->head.seed));
	for (i = 0; i < c->index.host_count; i++)
		put_host(c, &c->index.hosts[i]);
	c->head.sections[SECTION_HOSTS].count =
		(uint32_t)buf_len(c->out) - c->head.sections[SECTION_HOSTS].at;
}

/* Any sequence of different numbers will do. */
static uint64_t next_seed(uint64_t seed)
{
	return snap_hash_end(seed + 1, 0x5a11);
}

static void put_slots(struct compiler *c)
{
	CLEANUP_FREE struct snap_slot *slots = NULL;
	uint32_t count = 8, tries;

	while (count < 2 * c->index.host_count)
		count *= 2;
	slots = must_alloc((size_t)count * sizeof(*slots) << GROWTHS);
	for (tries = 1;; tries++) {
		if (index_fill_slots(&c->index, c->head.seed, slots, count))
			break;
		if (tries == SEEDS * (GROWTHS + 1)) {
			c->error = c->error ? c->error : -E2BIG;
			return;
		}
		count *= tries % SEEDS ? 1 : 2;
		c->head.seed = next_seed(c->head.seed);
	}
	c->head.slot_mask = count - 1;
	section_begin(c, SECTION_SLOTS, count);
	put(c, slots, (size_t)count * sizeof(*slots));
}

/* Sorted, they stand together: nothing of IPv6 begins where IPv4 is mapped. */
static bool cidr_is_v4(const struct cidr *c)
{
	struct addr a = { 0 };

	memcpy(a.ip, c->ip, sizeof(a.ip));
	return c->prefix >= 96 && addr_is_v4(&a);
}

static void put_prefixes(struct compiler *c)
{
	const struct index *x = &c->index;
	struct snap_prefix record;
	struct snap_key key;
	uint32_t i, at = 0;

	section_begin(c, SECTION_PREFIXES, x->prefix_count);
	for (i = 0; i < x->prefix_count; i++) {
		record = (struct snap_prefix){
			.parent = x->prefixes[i].parent,
			.at = at,
			.count = x->prefixes[i].rules.count,
			.length = x->prefixes[i].cidr.prefix,
		};
		at += record.count;
		if (cidr_is_v4(&x->prefixes[i].cidr)) {
			c->head.v4_at = c->head.v4_count ? c->head.v4_at : i;
			c->head.v4_count++;
		}
		put(c, &record, sizeof(record));
	}
	section_begin(c, SECTION_LISTS, at);
	for (i = 0; i < x->prefix_count; i++)
		put_list(c, &x->prefixes[i].rules);
	section_begin(c, SECTION_KEYS, x->prefix_count);
	for (i = 0; i < x->prefix_count; i++) {
		key = snap_key_of(x->prefixes[i].cidr.ip);
		put(c, &key, sizeof(key));
	}
}

/* What gathered in a buffer while the lists were written. */
static void put_gathered(struct compiler *c, enum snap_section_id id,
			 const struct buf *b, size_t item)
{
	section_begin(c, id, buf_len(b) / item);
	put(c, buf_peek(b).ptr, buf_len(b));
}

static void put_notes(struct compiler *c)
{
	char text[RULE_TEXT_MAX];
	struct snap_note note;
	uint32_t i;

	section_begin(c, SECTION_NOTES, c->rule_count);
	for (i = 0; i < c->rule_count; i++) {
		policy_rule_text(c->rules[i], text, sizeof(text));
		note.text = put_text(c, span_str(text));
		note.file = put_file(c, c->rules[i]->file);
		note.line = c->rules[i]->line;
		put(c, &note, sizeof(note));
	}
}

static void put_head(struct compiler *c)
{
	c->head.size = (uint32_t)buf_len(c->out);
	if (!c->error)
		memcpy((char *)buf_peek(c->out).ptr, &c->head, sizeof(c->head));
}

static int compile(struct compiler *c, struct span name, struct span file,
		   struct buf *out)
{
	must(!buf_len(out));

	c->out = out;
	buf_init(&c->text, SNAPSHOT_MAX_BYTES);
	buf_init(&c->strings, SNAPSHOT_MAX_BYTES);
	buf_init(&c->ports, SNAPSHOT_MAX_BYTES);
	c->head.magic = SNAPSHOT_MAGIC;
	c->head.version = SNAPSHOT_VERSION;
	index_init(&c->index, c->rules, c->rule_count, c->model);

	put(c, &c->head, sizeof(c->head));
	put_hosts(c);
	put_slots(c);
	put_prefixes(c);
	put_gathered(c, SECTION_PORTS, &c->ports, sizeof(struct snap_ports));
	put_gathered(c, SECTION_STRINGS, &c->strings, 1);
	put_notes(c);
	c->head.name = put_text(c, name);
	c->head.file = put_file(c, file);
	put_gathered(c, SECTION_TEXT, &c->text, 1);
	if (!c->error && buf_len(out) > SNAPSHOT_MAX_BYTES)
		c->error = -E2BIG;
	put_head(c);
	if (c->error)
		buf_clear(out);

	index_fini(&c->index);
	buf_fini(&c->text);
	buf_fini(&c->strings);
	buf_fini(&c->ports);
	free(c->rules);
	return c->error;
}

static void take_rules(struct compiler *c, const struct policy_rule *rules,
		       unsigned count)
{
	unsigned i;

	c->rules = must_realloc(c->rules, (c->rule_count + count + 1) *
						  sizeof(*c->rules));
	for (i = 0; i < count; i++)
		c->rules[c->rule_count++] = &rules[i];
}

int policy_compile(const struct policy_model *m, uint64_t generation,
		   struct buf *out)
{
	struct compiler c = { .model = m };

	take_rules(&c, m->rules, m->rule_count);
	c.head.generation = generation;
	c.head.default_action = (uint8_t)m->default_action;
	c.head.looks_inside = m->inspect_count > 0;
	c.head.line = m->line;
	c.head.limits = m->limits;
	return compile(&c, m->name, m->file, out);
}

int policy_compile_overlay(const struct policy_set *set, uint64_t generation,
			   struct buf *out)
{
	struct compiler c = { 0 };

	take_rules(&c, set->deny, set->deny_count);
	take_rules(&c, set->allow, set->allow_count);
	c.head.generation = generation;
	c.head.is_overlay = 1;
	policy_limits_init(&c.head.limits);
	c.head.deny_count = set->deny_count;
	return compile(&c, SPAN("operator"), SPAN(""), out);
}
