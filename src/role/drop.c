/* SPDX-License-Identifier: Apache-2.0 */
/* drop.c - the text of the chains that count, tell and drop
 *
 * How it works: a set keyed by interface has a bucket for each, so the limit of
 * one sandbox is not another's. Where the set is full nothing is told, and the
 * packet is dropped and counted all the same.
 */

#include "src/role/drop.h"

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/role/config.h"
#include "src/role/nft.h"

enum { TELLING_MAX = 4096, PROBE_BYTES_MAX = 2048 };

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

int drop_put_objects(struct buf *out, const enum drop_reason *reasons,
		     bool tells)
{
	int r = 0;

	for (; !r && *reasons != DROP_NUM; reasons++) {
		r = buf_putf(out, "\tcounter " DROP_PREFIX "%s { }\n",
			     names[*reasons]);
		if (!r && tells)
			r = buf_putf(out,
				     "\tset tell_%s {\n"
				     "\t\ttype iface_index\n"
				     "\t\tsize %d\n"
				     "\t\tflags dynamic,timeout\n"
				     "\t\ttimeout 1m\n"
				     "\t}\n",
				     names[*reasons], TELLING_MAX);
	}
	return r;
}

int drop_put_chains(struct buf *out, const struct config *config,
		    const enum drop_reason *reasons, bool tells)
{
	int r = 0;

	for (; !r && *reasons != DROP_NUM; reasons++) {
		r = buf_putf(out, "\tchain " DROP_PREFIX "%s {\n",
			     names[*reasons]);
		if (!r && tells)
			r = buf_putf(out,
				     "\t\tadd @tell_%s { iif limit rate "
				     "%d/second burst %d packets } log prefix "
				     "\"%s\" group %u snaplen %d\n",
				     names[*reasons], DROP_TELL_PER_SECOND,
				     DROP_TELL_BURST, names[*reasons],
				     config->log_group, DROP_TELL_BYTES);
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
	static const char *const families[] = { "inet", "netdev", "arp",
						"bridge" };
	static const enum drop_reason one[] = { DROP_PROTOCOL, DROP_NUM };
	struct buf script = BUF_INIT(PROBE_BYTES_MAX);
	bool may = true;
	unsigned i;
	int r;

	for (i = 0; may && i < ARRAY_LEN(families); i++) {
		buf_clear(&script);
		r = buf_putf(&script, "table %s sallyport_probe {\n",
			     families[i]);
		if (!r)
			r = drop_put_objects(&script, one, true);
		if (!r)
			r = drop_put_chains(&script, config, one, true);
		if (!r)
			r = buf_put_str(&script, "}\n");
		may = !r && nft_would(buf_peek(&script));
	}
	buf_fini(&script);
	return may;
}
