/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - the bytes of a snapshot; for compile, snapshot, match, explain
 *
 * A snapshot is one block without pointers, in host order: a head, then
 * sections. Offsets count from the start of the block. Both ends are one
 * machine and one build, so the version changes with any change here.
 *
 *   head      struct snapshot_head
 *   slots     open-addressed hash table of host keys; each slot holds 8 bits of
 *             the hash and where the host's record is, in 32 bits where that
 *             will do, else in 64
 *   hosts     records of host keys, found through slots and notes: struct
 *             snap_host, name, padding, then two lists of rules: for the name
 *             itself, and for everything below it ("*.name")
 *   prefixes  struct snap_prefix, sorted by address, then length; each knows
 *             the prefix around it and its list
 *   keys      the addresses of the prefixes once more, close together, for the
 *             binary search
 *   lists     lists of rules of prefixes
 *   terms     struct snap_terms: everything of a rule but its target; equal
 *             ones are there once
 *   ports     struct snap_ports of terms with more than one range
 *   strings   methods and paths of terms: 16 bits of length, then the bytes
 *   notes     of each rule, by index: where its target is, in 16 bits where
 *             that will do, else in 32 (see snap_note())
 *   lines     of each rule: its line; none at all: that of the policy
 *   files     struct snap_file, in order of rules; none: that of the policy
 *   text      bytes that files and the head point into
 *
 * A list is an array of struct snap_rule with ascending indices. A rule has
 * one target, so it stands in one list, and right there: a decision touches a
 * slot, a record, terms that most rules share, and hardly more, because each
 * further place would cost as much as all of the arithmetic. A node has
 * thousands of policies of some hundred rules, most of them "allow NAME": such
 * a rule takes as much as its name, or what is its own of it, and some 20
 * bytes. What people read of it is put
 * together when they ask.
 *
 * Neither the policy's name nor its generation are in here: two policies that
 * say the same are the same bytes, and are kept once.
 */
#pragma once

#include <assert.h>

#include "policy/limits.h"
#include "policy/policy.h"

enum {
	SNAPSHOT_MAGIC = 0x53504f4c, /* "LOPS" */
	SNAPSHOT_VERSION = 5,
	SNAPSHOT_MAX_BYTES = 1024 * 1024 * 1024,
	SNAPSHOT_ALIGN = 16,

	/* A search of the table looks at no more slots than this. */
	PROBE_MAX = 64,

	NAME_LABELS_MAX = 127, /* of a name of 253 bytes */
	PREFIX_LENGTHS = 129,
	NO_PREFIX = UINT32_MAX,
	NO_RULE = UINT32_MAX,

	/* Places in hosts are counted in fours. */
	HOST_UNIT = 4,
	/* A narrow slot has so many bits of place. */
	SLOT_PLACE_BITS = 24,
};

/* A note: the prefix's index with the uppermost bit (here of 32, in the section
 * perhaps of 16), or the place of the host. */
#define NOTE_PREFIX	  UINT32_C(0x80000000)
#define NOTE_PREFIX_SHORT 0x8000

struct snap_section {
	uint32_t at;	/* from the start of the block */
	uint32_t count; /* of items; bytes for hosts, strings, text */
};

struct snap_string {
	uint32_t at, len; /* in the text section */
};

enum snap_section_id {
	SECTION_SLOTS,
	SECTION_HOSTS,
	SECTION_PREFIXES,
	SECTION_KEYS,
	SECTION_LISTS,
	SECTION_TERMS,
	SECTION_PORTS,
	SECTION_STRINGS,
	SECTION_NOTES,
	SECTION_LINES,
	SECTION_FILES,
	SECTION_TEXT,
	SECTION_NUM,
};

struct snapshot_head {
	uint32_t magic, version;
	uint64_t seed;		  /* of the hash table */
	uint64_t below[2];	  /* bit n: some "*.name" has n labels */
	uint32_t v4_at, v4_count; /* the prefixes of IPv4, a run of them */
	uint32_t size;		  /* of the block */
	uint32_t slot_count;
	uint32_t deny_count; /* overlay: rules before this one deny; else 0 */
	uint32_t line;	     /* where the policy was written */
	uint8_t is_overlay;
	uint8_t default_action; /* enum verdict_kind */
	uint8_t address_denies; /* some rule denies an address */
	uint8_t looks_inside;	/* at requests to some name */
	uint8_t wide;		/* slots have 64 bits */
	uint8_t short_notes;	/* notes have 16 bits */
	uint8_t unused[2];
	struct policy_limits limits; /* said by the policy; else UNSAID */
	struct snap_string file;
	struct snap_section sections[SECTION_NUM];
};

enum snap_host_flags {
	HOST_INSPECT = 1, /* the inspect list has the name */
	HOST_PASSTHROUGH = 2,
	HOST_BELOW_INSPECT = 4, /* ... has "*.name" */
	HOST_BELOW_PASSTHROUGH = 8,
	HOST_FLAGS = 15,
	/* One rule, for everything below; without this and the next: one rule,
	 * for the name itself. */
	HOST_ONE_BELOW = 16,
	/* The lengths of both lists stand before them, 32 bits each. */
	HOST_COUNTED = 32,
	/* The name ends as another's does: see struct snap_tail. */
	HOST_TAILED = 64,
};

struct snap_host {
	uint8_t flags, name_len;
	char name[]; /* or a struct snap_tail */
};

/* Of a name only its head, of head_len bytes, is here; the rest are the last
 * bytes of the name of the host at place `from`, which is there as a whole. */
struct snap_tail {
	uint16_t from;
	uint8_t head_len;
	char head[];
};

struct snap_key {
	unsigned __int128 ip; /* an address as one number */
};

struct snap_prefix {
	uint32_t parent;    /* index of the prefix around it, or NO_PREFIX */
	uint32_t at, count; /* in the lists section */
	uint32_t length;
};

enum snap_rule_flags {
	RULE_ADDRESS = 1,     /* the target is an address or a prefix */
	RULE_CONSTRAINED = 2, /* has methods or paths */
	RULE_EXACT = 4,	      /* the target is one host or one address */
	RULE_LISTS = 8,	      /* has ports, methods or paths */
	RULE_EVERYWHERE = 16, /* the target is all of IPv4 or of IPv6 */
};

struct snap_rule {
	uint32_t index; /* in its policy, or in both overlays together */
	uint32_t terms; /* item of terms */
};

struct snap_terms {
	uint8_t action;	  /* enum verdict_kind */
	uint8_t protocol; /* enum policy_protocol */
	uint8_t flags;	  /* enum snap_rule_flags */
	uint8_t labels;	  /* of a target that is a name, without "*." */
	uint16_t port_first, port_last; /* of the only range */
	uint16_t port_count, method_count, path_count, unused;
	uint32_t ports_at;   /* item of ports, when port_count > 1 */
	uint32_t strings_at; /* byte of strings: methods, then paths */
};

struct snap_ports {
	uint16_t first, last;
};

/* Rules from first_rule on, up to that of the next, were written there. */
struct snap_file {
	uint32_t first_rule;
	struct snap_string name;
};

static_assert(sizeof(struct snapshot_head) == 208, "no padding");
static_assert(sizeof(struct snap_rule) == 8, "eight to a cache line");
static_assert(sizeof(struct snap_terms) == 24, "no padding");
static_assert(offsetof(struct snap_host, name) == 2, "no padding");

/* The lists of a host. */
struct snap_lists {
	const struct snap_rule *at; /* for the name, then for below it */
	uint32_t self_count, below_count;
};

static inline const struct snap_tail *snap_host_tail(
	const struct snap_host *host)
{
	return (const void *)host->name;
}

/* What stands behind the name begins here, from the record's start. */
static inline uint32_t snap_host_end(const struct snap_host *host)
{
	uint32_t len = host->name_len;

	if (host->flags & HOST_TAILED)
		len = (uint32_t)offsetof(struct snap_tail, head) +
		      snap_host_tail(host)->head_len;
	return ((uint32_t)offsetof(struct snap_host, name) + len + 3) & ~3u;
}

static inline struct snap_lists snap_host_lists(const struct snap_host *host)
{
	const uint32_t *end =
		(const void *)((const char *)host + snap_host_end(host));
	bool below = host->flags & HOST_ONE_BELOW;

	if (host->flags & HOST_COUNTED)
		return (struct snap_lists){ (const void *)(end + 2), end[0],
					    end[1] };
	return (struct snap_lists){ (const void *)end, !below, below };
}

static inline const void *snap_at(const struct snapshot_head *h,
				  enum snap_section_id id)
{
	return (const char *)h + h->sections[id].at;
}

static inline const struct snap_host *snap_host_at(
	const struct snapshot_head *h, uint32_t place)
{
	return (const void *)((const char *)snap_at(h, SECTION_HOSTS) +
			      (size_t)place * HOST_UNIT);
}

/* The name in its two parts; the second is empty where the first is all. */
static inline void snap_host_name(const struct snapshot_head *h,
				  const struct snap_host *host,
				  struct span ret[2])
{
	const struct snap_tail *tail = snap_host_tail(host);
	const struct snap_host *from;
	uint8_t rest;

	ret[0] = span_of(host->name, host->name_len);
	ret[1] = SPAN("");
	if (!(host->flags & HOST_TAILED))
		return;
	from = snap_host_at(h, tail->from);
	rest = (uint8_t)(host->name_len - tail->head_len);
	ret[0] = span_of(tail->head, tail->head_len);
	ret[1] = span_of(from->name + from->name_len - rest, rest);
}

/* Slot i: its 8 bits of hash, and a place in hosts; 0: it is empty (no host's
 * record stands at 0). */
static inline uint32_t snap_slot(const struct snapshot_head *h, uint32_t i,
				 uint8_t *ret_tag)
{
	const void *slots = snap_at(h, SECTION_SLOTS);
	uint32_t narrow;
	uint64_t wide;

	if (h->wide) {
		wide = ((const uint64_t *)slots)[i];
		*ret_tag = (uint8_t)(wide >> 32);
		return (uint32_t)wide;
	}
	narrow = ((const uint32_t *)slots)[i];
	*ret_tag = (uint8_t)(narrow >> SLOT_PLACE_BITS);
	return narrow & ((UINT32_C(1) << SLOT_PLACE_BITS) - 1);
}

static inline const struct snap_terms *snap_terms_of(
	const struct snapshot_head *h, const struct snap_rule *rule)
{
	return (const struct snap_terms *)snap_at(h, SECTION_TERMS) +
	       rule->terms;
}

/* The note of a rule: a place in hosts, or a prefix and NOTE_PREFIX. */
static inline uint32_t snap_note(const struct snapshot_head *h, uint32_t index)
{
	const void *notes = snap_at(h, SECTION_NOTES);
	uint16_t note;

	if (!h->short_notes)
		return ((const uint32_t *)notes)[index];
	note = ((const uint16_t *)notes)[index];
	return note & NOTE_PREFIX_SHORT
		       ? NOTE_PREFIX | (note & (NOTE_PREFIX_SHORT - 1u))
		       : note;
}

static inline struct span snap_text(const struct snapshot_head *h,
				    struct snap_string s)
{
	return span_of((const char *)snap_at(h, SECTION_TEXT) + s.at, s.len);
}
