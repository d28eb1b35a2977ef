/* SPDX-License-Identifier: Apache-2.0 */
/* drops.c - the packet log and the counters, made to one account
 *
 * How it works: the log tells of single packets, the counters of all. Every
 * LOOK_MS the counters are read. What they have grown by is explained by the
 * log when it told of that reason in this time or the time before; if it did
 * not, a message gives the number. Counters and log are read one after the
 * other, so a number waits for one more look before it is told.
 *
 * The kernel says nothing of a packet that finds its queue full. It counts what
 * it gives to the queue, we count what comes; the difference is what was lost,
 * but for packets that are on their way at the moment of the look: the smallest
 * difference of some looks counts.
 */

#include "src/queue/drops.h"

#include <errno.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/io/loop.h"
#include "src/queue/nflog.h"
#include "src/queue/tally.h"
#include "src/role/config.h"
#include "src/wire/packet.h"

enum {
	LOOK_MS = 1000,
	LOOKS = 3,		  /* that a difference must outlast */
	MESSAGES_PER_LOOK = 2000, /* single packets told of, at most */
};

struct drops {
	struct loop *loop;
	struct nflog *nflog; /* NULL: nothing is told */
	struct tally *tally; /* NULL: nothing is counted */
	struct timer look;
	const struct drops_ops *ops;
	void *ctx;
	struct msg_drops sums, said;
	struct tally_sums seen;
	uint64_t waiting[DROP_NUM]; /* counted, not explained */
	bool told[DROP_NUM], told_before[DROP_NUM];
	unsigned messages; /* since the last look */
	uint64_t received; /* from the queue */
	uint64_t missing[LOOKS];
	uint64_t reported; /* of those that were missing */
	unsigned looks;
};

/* --- single packets --- */

static void message_send(struct drops *d, const struct msg_drop *m)
{
	if (d->messages == MESSAGES_PER_LOOK)
		return;
	d->messages++;
	d->ops->drop(d->ctx, m);
}

static void on_logged(void *ctx, const struct nflog_packet *p)
{
	enum drop_reason reason = drop_find(p->prefix);
	struct packet_flow flow;
	struct drops *d = ctx;
	struct msg_drop m = {
		.count = 1,
		.ifindex = p->ifindex,
		.reason = reason,
		.ethertype = p->ethertype,
	};

	if (reason == DROP_NUM)
		return; /* another program writes to the group, too */
	packet_sketch(p->bytes, p->ethertype, &flow);
	memcpy(m.source, flow.source.ip, sizeof(m.source));
	memcpy(m.destination, flow.destination.ip, sizeof(m.destination));
	m.source_port = flow.source.port;
	m.port = flow.destination.port;
	m.protocol = flow.protocol;
	m.icmp_type = flow.icmp_type;
	m.icmp_code = flow.icmp_code;
	d->told[reason] = true;
	message_send(d, &m);
}

void drops_put(struct drops *d, enum drop_reason reason, uint32_t ifindex,
	       const struct msg_flow *flow)
{
	struct msg_drop m = {
		.count = 1,
		.ifindex = ifindex,
		.reason = reason,
	};
	struct addr client = { 0 };

	d->sums.of[reason]++;
	if (flow) {
		memcpy(client.ip, flow->client, sizeof(client.ip));
		m.ethertype =
			addr_is_v4(&client) ? ETHERTYPE_IP : ETHERTYPE_IPV6;
		memcpy(m.source, flow->client, sizeof(m.source));
		memcpy(m.destination, flow->destination, sizeof(m.destination));
		m.source_port = flow->client_port;
		m.port = flow->port;
		m.protocol = flow->protocol;
		m.icmp_type = flow->icmp_type;
		m.icmp_code = flow->icmp_code;
	}
	message_send(d, &m);
}

void drops_repeat(struct drops *d)
{
	d->said = (struct msg_drops){ 0 };
}

void drops_received(struct drops *d)
{
	d->received++;
}

/* --- counters --- */

static void number_tell(struct drops *d, enum drop_reason reason,
			uint64_t count)
{
	const struct msg_drop m = { .count = count, .reason = reason };

	d->ops->drop(d->ctx, &m);
}

static void explain(struct drops *d, enum drop_reason reason, uint64_t grown)
{
	bool told = d->told[reason] || d->told_before[reason];

	d->sums.of[reason] += grown;
	if (!told && d->waiting[reason])
		number_tell(d, reason, d->waiting[reason]);
	d->waiting[reason] = told ? 0 : grown;
	d->told_before[reason] = d->told[reason];
	d->told[reason] = false;
}

static void look_for_missing(struct drops *d, const struct tally_sums *now)
{
	uint64_t came = d->received + now->unqueued, least = UINT64_MAX;
	unsigned i;

	d->missing[d->looks++ % LOOKS] =
		now->queued > came ? now->queued - came : 0;
	for (i = 0; i < LOOKS; i++)
		least = MIN(least, d->missing[i]);
	if (least > d->reported) {
		d->sums.of[DROP_QUEUE_FULL] += least - d->reported;
		number_tell(d, DROP_QUEUE_FULL, least - d->reported);
	}
	d->reported = least;
}

static void on_look(struct timer *t)
{
	struct drops *d = container_of(t, struct drops, look);
	struct tally_sums now = d->seen;
	unsigned i;

	timer_start(t, LOOK_MS);
	d->messages = 0;
	(void)tally_read(d->tally, &now);
	for (i = 0; i < DROP_NUM; i++)
		explain(d, (enum drop_reason)i,
			now.dropped[i] - d->seen.dropped[i]);
	look_for_missing(d, &now);
	d->seen = now;
	if (!memcmp(&d->sums, &d->said, sizeof(d->said)))
		return;
	d->said = d->sums;
	d->ops->sums(d->ctx, &d->sums);
}

/* --- life --- */

struct drops *drops_open(const struct config *config)
{
	struct drops *d = must_alloc(sizeof(*d));
	int r = nflog_open(config->log_group, &d->nflog);

	if (r == -EPERM)
		log_warn(
			"could not take packet log group %u: another program "
			"reads it (see logGroup); dropped packets are recorded "
			"without addresses",
			config->log_group);
	else if (r)
		log_warn("could not take packet log group %u: %s; dropped "
			 "packets are recorded without addresses",
			 config->log_group, err_text(r));
	d->sums.told = !r;
	r = tally_open(&d->tally);
	if (r)
		log_warn("could not read the counters of our rules: %s",
			 err_text(r));
	return d;
}

int drops_start(struct drops *d, struct loop *loop, const struct drops_ops *ops,
		void *ctx)
{
	int r = 0;

	d->loop = loop;
	d->ops = ops;
	d->ctx = ctx;
	timer_init(&d->look, loop, on_look);
	if (d->tally)
		timer_start(&d->look, LOOK_MS);
	if (d->nflog)
		r = nflog_start(d->nflog, loop, on_logged, d);
	return r;
}

struct drops *drops_free(struct drops *d)
{
	if (!d)
		return NULL;
	if (d->loop)
		timer_stop(&d->look);
	d->nflog = nflog_free(d->nflog);
	d->tally = tally_free(d->tally);
	free(d);
	return NULL;
}
