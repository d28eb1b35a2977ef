/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - an immutable, shared table from names to addresses
 *
 * How it works: one map per source, from the canonical name to a small heap
 * block of addresses. The reference count is atomic because the loops of the
 * gateway are threads; the maps are only read once a second holder exists.
 */

#include "gateway/dns/names.h"

#include <errno.h>
#include <stdatomic.h>

#include "src/base/err.h"
#include "src/base/map.h"
#include "src/wire/host.h"

struct names {
	atomic_uint refs;
	atomic_bool shared; /* no more names_add() */
	struct map maps[NAME_HOSTS + 1];
};

struct name_entry {
	unsigned count;
	struct addr addrs[];
};

static const char *const source_names[NAME_SOURCE_NUM] = {
	[NAME_SOURCE_NONE] = "none",
	[NAME_PIN] = "pin",
	[NAME_HOSTS] = "hosts",
	[NAME_DNS] = "dns",
};

static const char *const status_names[NAME_STATUS_NUM] = {
	[NAME_FAILED] = "failed",
	[NAME_OK] = "ok",
	[NAME_NXDOMAIN] = "nxdomain",
	[NAME_NODATA] = "nodata",
};

const char *name_source_name(enum name_source source)
{
	return (unsigned)source < NAME_SOURCE_NUM ? source_names[source]
						  : "unknown";
}

const char *name_status_name(enum name_status status)
{
	return (unsigned)status < NAME_STATUS_NUM ? status_names[status]
						  : "unknown";
}

struct names *names_new(void)
{
	struct names *n = must_alloc(sizeof(*n));

	atomic_init(&n->refs, 1);
	atomic_init(&n->shared, false);
	map_init(&n->maps[NAME_PIN]);
	map_init(&n->maps[NAME_HOSTS]);
	return n;
}

static bool entry_has(const struct name_entry *e, const struct addr *address)
{
	unsigned i;

	for (i = 0; e && i < e->count; i++)
		if (addr_eq_ip(&e->addrs[i], address))
			return true;
	return false;
}

/* The entry with one more address; e may be NULL. */
static struct name_entry *entry_grow(struct name_entry *e,
				     const struct addr *address)
{
	unsigned count = e ? e->count : 0;

	e = must_realloc(e, sizeof(*e) + (count + 1) * sizeof(e->addrs[0]));
	e->addrs[count] = *address;
	e->addrs[count].port = 0;
	e->count = count + 1;
	return e;
}

int names_add(struct names *n, enum name_source source, struct span host,
	      const struct addr *address)
{
	struct name_entry *e;
	struct host canon;

	must(!atomic_load_explicit(&n->shared, memory_order_relaxed));
	if (source != NAME_PIN && source != NAME_HOSTS)
		return -EINVAL;
	if (!host_canon(host, &canon) || !span_eq(host_span(&canon), host))
		return -EINVAL;

	e = map_find(&n->maps[source], host);
	if (entry_has(e, address))
		return 0;
	if (e ? e->count == NAME_ADDRS_MAX : names_count(n) == NAMES_MAX)
		return -ENOSPC;
	(void)map_set(&n->maps[source], host, entry_grow(e, address));
	return 0;
}

struct names *names_ref(struct names *n)
{
	atomic_store_explicit(&n->shared, true, memory_order_relaxed);
	atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
	return n;
}

static void entries_fini(struct map *m)
{
	struct name_entry *e;
	size_t cursor = 0;

	while ((e = map_next(m, &cursor, NULL)))
		free(e);
	map_fini(m);
}

struct names *names_unref(struct names *n)
{
	if (!n ||
	    atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
		return NULL;
	entries_fini(&n->maps[NAME_PIN]);
	entries_fini(&n->maps[NAME_HOSTS]);
	free(n);
	return NULL;
}

bool names_find(const struct names *n, struct span host,
		struct name_answer *ret)
{
	const struct name_entry *e;
	unsigned source;

	for (source = NAME_PIN; source <= NAME_HOSTS; source++) {
		e = map_find(&n->maps[source], host);
		if (!e)
			continue;
		*ret = (struct name_answer){
			.status = NAME_OK,
			.source = source,
			.addrs = e->addrs,
			.count = e->count,
		};
		return true;
	}
	return false;
}

size_t names_count(const struct names *n)
{
	return map_count(&n->maps[NAME_PIN]) + map_count(&n->maps[NAME_HOSTS]);
}
