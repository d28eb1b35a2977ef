/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - the bytes of a snapshot; for compile, snapshot, match, explain
 *
 * A snapshot is one block without pointers, in host order: a head, then
 * sections. Offsets count from the start of the block. Both ends are one
 * machine and one build, so the version changes with any change here.
 *
 *   head      struct snapshot_head
 *   slots     open-addressed hash table of host keys; each slot holds 32 bits
 *             of the hash and where the host's record is
 *   hosts     records of host keys, found through slots only: struct snap_host,
 *             name, padding, then two lists of rules: for the name itself, and
 *             for everything below it ("*.name")
 *   prefixes  struct snap_prefix, sorted by address, then length; each knows
 *             the prefix around it and its list
 *   keys      the addresses of the prefixes once more, close together, for the
 *             binary search
 *   lists     lists of rules of prefixes
 *   ports     struct snap_ports of rules with more than one range
 *   strings   methods and paths of rules: 16 bits of length, then the bytes
 *   notes     struct snap_note of each rule, by index: what people read
 *   text      bytes that notes and the head point into
 *
 * A list is an array of struct snap_rule with ascending indices. A rule has
 * one target, so it stands in one list, and right there: a decision touches a
 * slot, a record, and hardly more, because each further place would cost as
 * much as all of the arithmetic.
 */
#pragma once

#include <assert.h>

#include "policy/limits.h"
#include "policy/policy.h"

enum {
	SNAPSHOT_MAGIC = 0x53504f4c, /* "LOPS" */
	SNAPSHOT_VERSION = 4,
	SNAPSHOT_MAX_BYTES = 1024 * 1024 * 1024,
	SNAPSHOT_ALIGN = 16,

	/* A search of the table looks at no more slots than this. */
	PROBE_MAX = 64,

	NAME_LABELS_MAX = 127, /* of a name of 253 bytes */
	PREFIX_LENGTHS = 129,
	NO_PREFIX = UINT32_MAX,
	NO_RULE = UINT32_MAX,
};

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
	SECTION_PORTS,
	SECTION_STRINGS,
	SECTION_NOTES,
	SECTION_TEXT,
	SECTION_NUM,
};

struct snapshot_head {
	uint32_t magic, version;
	uint64_t generation;
	uint64_t seed;		  /* of the hash table */
	uint64_t below[2];	  /* bit n: some "*.name" has n labels */
	uint32_t v4_at, v4_count; /* the prefixes of IPv4, a run of them */
	uint32_t size;		  /* of the block */
	uint32_t slot_mask;	  /* slots - 1; slots are a power of two */
	uint32_t deny_count; /* overlay: rules before this one deny; else 0 */
	uint32_t line;	     /* where the policy was written */
	uint8_t is_overlay;
	uint8_t default_action; /* enum verdict_kind */
	uint8_t address_denies; /* some rule denies an address */
	uint8_t looks_inside;	/* at requests to some name */
	uint8_t unused[4];
	struct policy_limits limits; /* said by the policy; else UNSAID */
	struct snap_string name, file;
	struct snap_section sections[SECTION_NUM];
};

/* at 0: empty (a host record never stands at offset 0 of its section). */
struct snap_slot {
	uint32_t tag; /* high half of the hash */
	uint32_t at;  /* in the hosts section, a multiple of 8 */
};

enum snap_host_flags {
	HOST_INSPECT = 1, /* the inspect list has the name */
	HOST_PASSTHROUGH = 2,
	HOST_BELOW_INSPECT = 4, /* ... has "*.name" */
	HOST_BELOW_PASSTHROUGH = 8,
};

struct snap_host {
	uint32_t self_count, below_count; /* of rules */
	uint8_t flags, name_len;
	char name[];
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
};

struct snap_rule {
	uint32_t index;	  /* in its policy, or in both overlays together */
	uint8_t action;	  /* enum verdict_kind */
	uint8_t protocol; /* enum policy_protocol */
	uint8_t flags;
	uint8_t labels; /* of a target that is a name, without "*." */
	uint16_t port_first, port_last; /* of the only range */
	uint16_t port_count, method_count, path_count, unused2;
	uint32_t ports_at;   /* item of ports, when port_count > 1 */
	uint32_t strings_at; /* byte of strings: methods, then paths */
};

struct snap_ports {
	uint16_t first, last;
};

struct snap_note {
	struct snap_string text, file;
	uint32_t line;
};

static_assert(sizeof(struct snapshot_head) == 200, "no padding");
static_assert(sizeof(struct snap_slot) == 8, "eight to a cache line");
static_assert(sizeof(struct snap_rule) == 28, "no padding");
static_assert(offsetof(struct snap_host, name) == 10, "no padding");

/* Where the first list of a host record begins, from the record's start. */
static inline uint32_t snap_host_lists(uint32_t name_len)
{
	return ((uint32_t)offsetof(struct snap_host, name) + name_len + 3) &
	       ~3u;
}

static inline const void *snap_at(const struct snapshot_head *h,
				  enum snap_section_id id)
{
	return (const char *)h + h->sections[id].at;
}

static inline struct span snap_text(const struct snapshot_head *h,
				    struct snap_string s)
{
	return span_of((const char *)snap_at(h, SECTION_TEXT) + s.at, s.len);
}
