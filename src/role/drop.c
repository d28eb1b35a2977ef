/* SPDX-License-Identifier: Apache-2.0 */
/* drop.c - the text of the chains that count, tell and drop
 *
 * How it works: a set keyed by interface has a bucket for each, so the limit of
 * one sandbox is not another's. Ports of a bridge are one interface to IP: there
 * the hardware address, to which the lock holds each, is in the key. Where the
 * set is full nothing is told, and the packet is dropped and counted all the
 * same.
 */

#include "src/role/drop.h"

#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/role/config.h"
#include "src/role/nft.h"

enum { TELLING_MAX = 4096, PROBE_BYTES_MAX = 2048, NAME_SIZE = 32 };

static const char *const names[] = {
#define DROP_NAME(id, name) [DROP_##id] = name,
	DROP_REASONS(DROP_NAME)
#undef DROP_NAME
};
_Static_assert(ARRAY_LEN(names) == DROP_NUM, "a name per reason");

const char *drop_name(enum drop_reason reason)
{
	must(reason < DROP_NUM);
	return names[reason];
}

enum drop_reason drop_find(struct span name)
{
	unsigned i;

	for (i = 0; i < DROP_NUM; i++)
		if (span_eq(name, span_str(names[i])))
			break;
	return (enum drop_reason)i;
}

static int put_set(struct buf *out, const char *name, const char *type)
{
	return buf_putf(out,
			"\tset %s {\n"
			"\t\ttype %s\n"
			"\t\tsize %d\n"
			"\t\tflags dynamic,timeout\n"
			"\t\ttimeout 1m\n"
			"\t}\n",
			name, type, TELLING_MAX);
}

int drop_put_objects(struct buf *out, const enum drop_reason *reasons,
		     enum drop_telling telling)
{
	char name[NAME_SIZE];
	int r = 0;

	for (; !r && *reasons != DROP_NUM; reasons++) {
		r = buf_putf(out, "\tcounter " DROP_PREFIX "%s { }\n",
			     names[*reasons]);
		(void)snprintf(name, sizeof(name), "tell_%s", names[*reasons]);
		if (!r && telling != DROP_TELL_NOTHING)
			r = put_set(out, name, "iface_index");
		(void)snprintf(name, sizeof(name), "tell_each_%s",
			       names[*reasons]);
		if (!r && telling == DROP_TELL_BY_STATION)
			r = put_set(out, name, "iface_index . ether_addr");
	}
	return r;
}

/* The rest of a line that begins with what is told of. */
static int put_tell(struct buf *out, const struct config *config,
		    const char *set, const char *key, const char *name)
{
	return buf_putf(out,
			"add @%s_%s { %s limit rate %d/second burst %d packets "
			"} log prefix \"%s\" group %u snaplen %d\n",
			set, name, key, DROP_TELL_PER_SECOND, DROP_TELL_BURST,
			name, config->log_group, DROP_TELL_BYTES);
}

static int put_telling(struct buf *out, const struct config *config,
		       const char *name, enum drop_telling telling)
{
	int r = 0;

	switch (telling) {
	case DROP_TELL_NOTHING:
		return 0;
	case DROP_TELL_BY_STATION:
		r = buf_put_str(out, "\t\tmeta iiftype ether ");
		if (!r)
			r = put_tell(out, config, "tell_each",
				     "iif . ether saddr", name);
		if (!r)
			r = buf_put_str(out, "\t\tmeta iiftype != ether ");
		break;
	case DROP_TELL_BY_DEVICE:
		r = buf_put_str(out, "\t\t");
		break;
	}
	return r ? r : put_tell(out, config, "tell", "iif", name);
}

int drop_put_chains(struct buf *out, const struct config *config,
		    const enum drop_reason *reasons, enum drop_telling telling)
{
	int r = 0;

	for (; !r && *reasons != DROP_NUM; reasons++) {
		r = buf_putf(out, "\tchain " DROP_PREFIX "%s {\n",
			     names[*reasons]);
		if (!r)
			r = put_telling(out, config, names[*reasons], telling);
		if (!r)
			r = buf_putf(out,
				     "\t\tcounter name \"" DROP_PREFIX
				     "%s\" drop\n\t}\n",
				     names[*reasons]);
	}
	return r;
}

bool drop_may_tell(const struct config *config)
{
	static const struct {
		const char *name;
		enum drop_telling telling;
	} families[] = { { "inet", DROP_TELL_BY_STATION },
			 { "netdev", DROP_TELL_BY_DEVICE },
			 { "arp", DROP_TELL_BY_DEVICE },
			 { "bridge", DROP_TELL_BY_DEVICE } };
	static const enum drop_reason one[] = { DROP_PROTOCOL, DROP_NUM };
	struct buf script = BUF_INIT(PROBE_BYTES_MAX);
	bool may = true;
	unsigned i;
	int r;

	for (i = 0; may && i < ARRAY_LEN(families); i++) {
		buf_clear(&script);
		r = buf_putf(&script, "table %s sallyport_probe {\n",
			     families[i].name);
		if (!r)
			r = drop_put_objects(&script, one, families[i].telling);
		if (!r)
			r = drop_put_chains(&script, config, one,
					    families[i].telling);
		if (!r)
			r = buf_put_str(&script, "}\n");
		may = !r && nft_would(buf_peek(&script));
	}
	buf_fini(&script);
	return may;
}
