/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - lay out the bytes of a snapshot (layout.h), section by section
 *
 * How it works: the index (compile_index.h) says which rules ask for which
 * target; then every section is written behind the one before it, and the
 * head, written last over its own place, says where they are. Terms, ports,
 * strings and texts gather in buffers of their own that become sections later;
 * terms that were seen before are found by what they say, tails of names by
 * what they are. The hash table is
 * tried with one seed after the other, then with more slots, until no chain is
 * longer than PROBE_MAX; a small one is filled to two thirds, because many are
 * small, a large one to half, because its chains grow long.
 */

#include "policy/compile.h"

#include <errno.h>

#include "policy/compile_index.h"
#include "policy/lookup.h"
#include "src/base/buf.h"
#include "src/base/err.h"

enum {
	SEEDS = 16,
	GROWTHS = 3, /* of the table by half, when no seed will do */
	SMALL_TABLE = 1024,
	V4_PREFIX = 96, /* under which IPv4 addresses are mapped */
};

struct compiler {
	const struct policy_rule **rules;
	uint32_t rule_count;
	const struct policy_model *model; /* NULL: overlay */
	struct index index;
	struct snapshot_head head;
	struct buf text, strings, ports, terms;
	struct map known_terms; /* what they say -> their item + 1 */
	struct snap_terms last; /* without lists; most rules have the same */
	uint32_t last_item;	/* + 1; 0: none yet */
	struct buf said;	/* by the terms or the host at hand */
	struct map tails;	/* from a name's first dot on -> host's place */
	uint32_t *notes;	/* of each rule */
	struct buf *out;
	int error; /* sticky */
};

static void put_into(struct compiler *c, struct buf *b, const void *bytes,
		     size_t len)
{
	if (!c->error)
		c->error = buf_put(b, span_of(bytes, len));
}

static void put(struct compiler *c, const void *bytes, size_t len)
{
	put_into(c, c->out, bytes, len);
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

	put_into(c, &c->text, s.ptr, s.len);
	return string;
}

/* -- terms ---------------------------------------------------------------- */

static unsigned count_labels(struct span name)
{
	unsigned labels = 1;
	size_t i;

	for (i = 0; i < name.len; i++)
		labels += name.ptr[i] == '.';
	return labels;
}

/* Sorted, they stand together: nothing of IPv6 begins where IPv4 is mapped. */
static bool cidr_is_v4(const struct cidr *c)
{
	struct addr a = { 0 };

	memcpy(a.ip, c->ip, sizeof(a.ip));
	return c->prefix >= V4_PREFIX && addr_is_v4(&a);
}

/* Kind of the target, for who looks at the verdict. */
static void mark_target(const struct policy_target *t,
			struct snap_terms *record)
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
		if (!t->cidr.prefix ||
		    (t->cidr.prefix == V4_PREFIX && cidr_is_v4(&t->cidr)))
			record->flags |= RULE_EVERYWHERE;
		return;
	}
}

static void say_strings(struct compiler *c, const struct span *items,
			unsigned count)
{
	uint16_t len;
	unsigned i;

	for (i = 0; i < count; i++) {
		len = (uint16_t)items[i].len;
		put_into(c, &c->said, &len, sizeof(len));
		put_into(c, &c->said, items[i].ptr, items[i].len);
	}
}

static void say_ports(struct compiler *c, const struct policy_rule *rule)
{
	struct snap_ports record;
	unsigned i;

	for (i = 0; i < rule->port_count; i++) {
		record.first = rule->ports[i].first;
		record.last = rule->ports[i].last;
		put_into(c, &c->said, &record, sizeof(record));
	}
}

/* What was said: the counts, the ports, the strings. */
static void terms_add(struct compiler *c, struct snap_terms t)
{
	struct span said = buf_peek(&c->said);
	struct span ports = span_from(said, sizeof(t));
	struct span strings;

	ports.len = t.port_count * sizeof(struct snap_ports);
	strings = span_from(said, sizeof(t) + ports.len);
	if (t.port_count == 1) {
		memcpy(&t.port_first, ports.ptr, sizeof(struct snap_ports));
	} else {
		t.ports_at = (uint32_t)(buf_len(&c->ports) /
					sizeof(struct snap_ports));
		put_into(c, &c->ports, ports.ptr, ports.len);
	}
	t.strings_at = (uint32_t)buf_len(&c->strings);
	put_into(c, &c->strings, strings.ptr, strings.len);
	put_into(c, &c->terms, &t, sizeof(t));
}

/* The item of the rule's terms. */
static uint32_t terms_of(struct compiler *c, const struct policy_rule *rule)
{
	struct snap_terms terms = {
		.action = (uint8_t)rule->action,
		.protocol = (uint8_t)rule->protocol,
		.port_count = (uint16_t)rule->port_count,
		.method_count = (uint16_t)rule->method_count,
		.path_count = (uint16_t)rule->path_count,
	};
	uintptr_t item;

	mark_target(&rule->target, &terms);
	if (policy_rule_is_constrained(rule))
		terms.flags |= RULE_CONSTRAINED;
	if (terms.flags & RULE_CONSTRAINED && !(terms.flags & RULE_ADDRESS))
		c->head.looks_inside = 1;
	if (rule->port_count || policy_rule_is_constrained(rule))
		terms.flags |= RULE_LISTS;
	if (terms.flags & RULE_ADDRESS && rule->action == VERDICT_DENY)
		c->head.address_denies = 1;
	if (c->last_item && !memcmp(&terms, &c->last, sizeof(terms)))
		return c->last_item - 1;
	buf_clear(&c->said);
	put_into(c, &c->said, &terms, sizeof(terms));
	say_ports(c, rule);
	say_strings(c, rule->methods, rule->method_count);
	say_strings(c, rule->paths, rule->path_count);
	if (c->error)
		return 0;
	item = (uintptr_t)map_find(&c->known_terms, buf_peek(&c->said));
	if (!item) {
		terms_add(c, terms);
		item = buf_len(&c->terms) / sizeof(terms);
		(void)map_set(&c->known_terms, buf_peek(&c->said),
			      (void *)item);
	}
	if (!(terms.flags & RULE_LISTS)) {
		c->last = terms;
		c->last_item = (uint32_t)item;
	}
	return (uint32_t)item - 1;
}

/* -- rules ---------------------------------------------------------------- */

static void put_rule(struct compiler *c, uint32_t index, uint32_t note)
{
	const struct snap_rule record = {
		.index = index,
		.terms = terms_of(c, c->rules[index]),
	};

	c->notes[index] = note;
	put(c, &record, sizeof(record));
}

static void put_list(struct compiler *c, const struct rule_list *l,
		     uint32_t note)
{
	uint32_t rule = l->first, i;

	for (i = 0; i < l->count; i++, rule = c->index.next[rule])
		put_rule(c, rule, note);
}

/* The name, or its head where its tail is there already. Sets *ret_flags. */
static void name_of(struct compiler *c, struct span name, uint32_t place,
		    struct buf *ret, uint8_t *ret_flags)
{
	struct span tail = span_from(name, span_find(name, '.'));
	uint8_t head_len = (uint8_t)(name.len - tail.len);
	uintptr_t from = 0;
	uint16_t at;

	if (tail.len > offsetof(struct snap_tail, head))
		from = (uintptr_t)map_find(&c->tails, tail);
	if (from) {
		*ret_flags |= HOST_TAILED;
		at = (uint16_t)from;
		put_into(c, ret, &at, sizeof(at));
		put_into(c, ret, &head_len, sizeof(head_len));
		put_into(c, ret, name.ptr, head_len);
		return;
	}
	put_into(c, ret, name.ptr, name.len);
	if (tail.len && place <= UINT16_MAX && !c->error)
		(void)map_set(&c->tails, tail, (void *)(uintptr_t)place);
}

static void put_host(struct compiler *c, struct index_host *host)
{
	const uint32_t counts[] = { host->self.count, host->below.count };
	struct snap_host record = {
		.flags = host->flags,
		.name_len = (uint8_t)host->name.len,
	};
	unsigned labels = count_labels(host->name);
	bool single = counts[0] + counts[1] == 1;

	if (!single)
		record.flags |= HOST_COUNTED;
	else if (counts[1])
		record.flags |= HOST_ONE_BELOW;
	put_align(c, HOST_UNIT);
	host->place = (uint32_t)(buf_len(c->out) -
				 c->head.sections[SECTION_HOSTS].at) /
		      HOST_UNIT;
	buf_clear(&c->said);
	name_of(c, host->name, host->place, &c->said, &record.flags);
	put(c, &record, offsetof(struct snap_host, name));
	put(c, buf_peek(&c->said).ptr, buf_len(&c->said));
	put_align(c, HOST_UNIT);
	if (!single)
		put(c, counts, sizeof(counts));
	put_list(c, &host->self, host->place);
	put_list(c, &host->below, host->place);
	if (host->below.count ||
	    host->flags & (HOST_BELOW_INSPECT | HOST_BELOW_PASSTHROUGH))
		c->head.below[labels / 64] |= UINT64_C(1) << labels % 64;
}

static void put_hosts(struct compiler *c)
{
	static const char nobody[HOST_UNIT]; /* place 0 is an empty slot */
	uint32_t i;

	section_begin(c, SECTION_HOSTS, 0);
	put(c, nobody, sizeof(nobody));
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

static uint32_t slots_wanted(uint32_t hosts)
{
	return hosts <= SMALL_TABLE ? hosts + hosts / 2 + 4 : 2 * hosts;
}

static void put_table(struct compiler *c, const uint64_t *slots)
{
	uint32_t i, narrow;

	c->head.wide = c->head.sections[SECTION_HOSTS].count / HOST_UNIT >>
			       SLOT_PLACE_BITS !=
		       0;
	section_begin(c, SECTION_SLOTS, c->head.slot_count);
	if (c->head.wide) {
		put(c, slots, (size_t)c->head.slot_count * sizeof(*slots));
		return;
	}
	for (i = 0; i < c->head.slot_count; i++) {
		narrow = (uint32_t)(slots[i] >> 32 << SLOT_PLACE_BITS |
				    (uint32_t)slots[i]);
		put(c, &narrow, sizeof(narrow));
	}
}

static void put_slots(struct compiler *c)
{
	CLEANUP_FREE uint64_t *slots = NULL;
	uint32_t count = slots_wanted(c->index.host_count), tries;

	slots = must_alloc((size_t)count * sizeof(*slots) << GROWTHS);
	for (tries = 1;; tries++) {
		if (index_fill_slots(&c->index, c->head.seed, slots, count))
			break;
		if (tries == SEEDS * (GROWTHS + 1)) {
			c->error = c->error ? c->error : -E2BIG;
			return;
		}
		count += tries % SEEDS ? 0 : count / 2;
		c->head.seed = next_seed(c->head.seed);
	}
	c->head.slot_count = count;
	put_table(c, slots);
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
		put_list(c, &x->prefixes[i].rules, NOTE_PREFIX | i);
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

/* Places and prefixes count up to these sections' items. */
static void put_notes(struct compiler *c)
{
	const struct snap_section *s = c->head.sections;
	uint32_t places = s[SECTION_HOSTS].count / HOST_UNIT, i, note;
	uint16_t narrow;

	c->head.short_notes = places < NOTE_PREFIX_SHORT &&
			      s[SECTION_PREFIXES].count < NOTE_PREFIX_SHORT;
	section_begin(c, SECTION_NOTES, c->rule_count);
	for (i = 0; i < c->rule_count; i++) {
		note = c->notes[i];
		narrow =
			(uint16_t)(note & NOTE_PREFIX ? NOTE_PREFIX_SHORT | note
						      : note);
		if (c->head.short_notes)
			put(c, &narrow, sizeof(narrow));
		else
			put(c, &note, sizeof(note));
	}
}

/* Nothing where every line is the policy's. */
static void put_lines(struct compiler *c)
{
	uint32_t i, other = 0;

	for (i = 0; i < c->rule_count; i++)
		other += c->rules[i]->line != c->head.line;
	section_begin(c, SECTION_LINES, other ? c->rule_count : 0);
	for (i = 0; other && i < c->rule_count; i++)
		put(c, &c->rules[i]->line, sizeof(c->rules[i]->line));
}

/* Rules of a file stand together; last: the policy's. */
static void put_files(struct compiler *c, struct span last)
{
	struct snap_file record;
	uint32_t i, count = 0;

	section_begin(c, SECTION_FILES, 0);
	for (i = 0; i < c->rule_count; i++) {
		if (span_eq(c->rules[i]->file, last))
			continue;
		last = c->rules[i]->file;
		record.first_rule = i;
		record.name = put_text(c, last);
		put(c, &record, sizeof(record));
		count++;
	}
	c->head.sections[SECTION_FILES].count = count;
}

static void put_head(struct compiler *c)
{
	c->head.size = (uint32_t)buf_len(c->out);
	if (!c->error)
		memcpy((char *)buf_peek(c->out).ptr, &c->head, sizeof(c->head));
}

static void compiler_init(struct compiler *c, struct buf *out)
{
	must(!buf_len(out));
	c->out = out;
	buf_init(&c->text, SNAPSHOT_MAX_BYTES);
	buf_init(&c->strings, SNAPSHOT_MAX_BYTES);
	buf_init(&c->ports, SNAPSHOT_MAX_BYTES);
	buf_init(&c->terms, SNAPSHOT_MAX_BYTES);
	buf_init(&c->said, SNAPSHOT_MAX_BYTES);
	map_init(&c->known_terms);
	map_init(&c->tails);
	c->notes = must_alloc(MAX(c->rule_count, 1u) * sizeof(*c->notes));
	index_init(&c->index, c->rules, c->rule_count, c->model);
	c->head.magic = SNAPSHOT_MAGIC;
	c->head.version = SNAPSHOT_VERSION;
}

static void compiler_fini(struct compiler *c)
{
	index_fini(&c->index);
	buf_fini(&c->text);
	buf_fini(&c->strings);
	buf_fini(&c->ports);
	buf_fini(&c->terms);
	buf_fini(&c->said);
	map_fini(&c->known_terms);
	map_fini(&c->tails);
	free(c->notes);
	free(c->rules);
}

static int compile(struct compiler *c, struct span file, struct buf *out)
{
	compiler_init(c, out);
	put(c, &c->head, sizeof(c->head));
	put_hosts(c);
	put_slots(c);
	put_prefixes(c);
	put_gathered(c, SECTION_TERMS, &c->terms, sizeof(struct snap_terms));
	put_gathered(c, SECTION_PORTS, &c->ports, sizeof(struct snap_ports));
	put_gathered(c, SECTION_STRINGS, &c->strings, 1);
	put_notes(c);
	put_lines(c);
	put_files(c, file);
	c->head.file = put_text(c, file);
	put_gathered(c, SECTION_TEXT, &c->text, 1);
	if (!c->error && buf_len(out) > SNAPSHOT_MAX_BYTES)
		c->error = -E2BIG;
	put_head(c);
	if (c->error)
		buf_clear(out);
	compiler_fini(c);
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

int policy_compile(const struct policy_model *m, struct buf *out)
{
	struct compiler c = { .model = m };

	take_rules(&c, m->rules, m->rule_count);
	c.head.default_action = (uint8_t)m->default_action;
	c.head.looks_inside = m->inspect_count > 0;
	c.head.line = m->line;
	c.head.limits = m->limits;
	return compile(&c, m->file, out);
}

int policy_compile_overlay(const struct policy_set *set, struct buf *out)
{
	struct compiler c = { 0 };

	take_rules(&c, set->deny, set->deny_count);
	take_rules(&c, set->allow, set->allow_count);
	c.head.is_overlay = 1;
	policy_limits_init(&c.head.limits);
	c.head.deny_count = set->deny_count;
	return compile(&c, SPAN(""), out);
}
