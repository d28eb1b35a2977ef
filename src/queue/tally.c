/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - named counters of nf_tables, listed and summed up
 *
 * How it works: the kernel lists the counters of all families that belong to a
 * table of a given name; there are a few dozen. Of each its last value is kept,
 * and what it has grown by is added to the sums. One that is smaller than
 * before has begun anew.
 */

#include "src/queue/tally.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/span.h"

enum {
	MESSAGE_BYTES = 256,
	RECEIVE_BYTES = 32 * 1024,
	READS_MAX = 256, /* of one list */
	QUEUED = DROP_NUM,
	UNQUEUED,
	COUNTER_NUM,
	FAMILIES = NFPROTO_BRIDGE + 1, /* of those that our tables are in */
};

static const char *const tables[] = { "sallyport", "sallyport_lock" };

struct tally {
	struct mnl_socket *socket;
	struct tally_sums sums;
	bool begun; /* there are last values */
	uint64_t last[ARRAY_LEN(tables)][FAMILIES][COUNTER_NUM];
	size_t table; /* that is being listed */
	uint32_t sequence;
	_Alignas(struct nlmsghdr) char bytes[RECEIVE_BYTES];
};

static unsigned counter_find(struct span name)
{
	if (span_eq(name, SPAN(DROP_COUNTER_QUEUED)))
		return QUEUED;
	if (span_eq(name, SPAN(DROP_COUNTER_UNQUEUED)))
		return UNQUEUED;
	if (span_starts(name, SPAN(DROP_PREFIX)) &&
	    drop_find(span_from(name, strlen(DROP_PREFIX))) != DROP_NUM)
		return drop_find(span_from(name, strlen(DROP_PREFIX)));
	return COUNTER_NUM;
}

static uint64_t *sum_of(struct tally *t, unsigned counter)
{
	if (counter == QUEUED)
		return &t->sums.queued;
	if (counter == UNQUEUED)
		return &t->sums.unqueued;
	return &t->sums.dropped[counter];
}

static void counter_take(struct tally *t, unsigned family, unsigned counter,
			 uint64_t value)
{
	uint64_t *last = &t->last[t->table][family][counter];

	if (t->begun)
		*sum_of(t, counter) += value < *last ? value : value - *last;
	*last = value;
}

static uint64_t packets_of(const struct nlattr *data)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, data)
	{
		if (mnl_attr_get_type(a) == NFTA_COUNTER_PACKETS &&
		    mnl_attr_get_payload_len(a) == sizeof(uint64_t))
			return be64toh(mnl_attr_get_u64(a));
	}
	return 0;
}

static int on_object(const struct nlmsghdr *m, void *ctx)
{
	const struct nlattr *a, *name = NULL, *data = NULL;
	const struct nfgenmsg *body = mnl_nlmsg_get_payload(m);
	struct tally *t = ctx;
	struct span text;
	unsigned counter;

	if (m->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ) ||
	    m->nlmsg_len < NLMSG_LENGTH(sizeof(*body)) ||
	    body->nfgen_family >= FAMILIES)
		return MNL_CB_OK;
	mnl_attr_for_each(a, m, sizeof(*body))
	{
		if (mnl_attr_get_type(a) == NFTA_OBJ_NAME)
			name = a;
		else if (mnl_attr_get_type(a) == NFTA_OBJ_DATA)
			data = a;
	}
	if (!name || !data)
		return MNL_CB_OK;
	text = span_of(mnl_attr_get_payload(name),
		       mnl_attr_get_payload_len(name));
	text.len = span_find(text, '\0');
	counter = counter_find(text);
	if (counter != COUNTER_NUM)
		counter_take(t, body->nfgen_family, counter, packets_of(data));
	return MNL_CB_OK;
}

static int list_ask(struct tally *t, const char *table)
{
	_Alignas(struct nlmsghdr) char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m = mnl_nlmsg_put_header(bytes);
	struct nfgenmsg *body;

	m->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
	m->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	m->nlmsg_seq = ++t->sequence;
	body = mnl_nlmsg_put_extra_header(m, sizeof(*body));
	body->nfgen_family = NFPROTO_UNSPEC;
	body->version = NFNETLINK_V0;
	mnl_attr_put_strz(m, NFTA_OBJ_TABLE, table);
	mnl_attr_put_u32(m, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	return mnl_socket_sendto(t->socket, m, m->nlmsg_len) < 0 ? -errno : 0;
}

/* What comes of a list that is of no use any more: else it would be taken for
 * the answer to the next question. */
static void list_skip(const struct tally *t)
{
	int fd = mnl_socket_get_fd(t->socket);
	char bytes[MESSAGE_BYTES];
	unsigned i;

	for (i = 0; i < READS_MAX; i++)
		if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
			break;
}

/* What an interrupted list leaves out is there the next time. */
static int list_read(struct tally *t)
{
	ssize_t len;
	unsigned i;
	int r;

	for (i = 0; i < READS_MAX; i++) {
		len = mnl_socket_recvfrom(t->socket, t->bytes,
					  sizeof(t->bytes));
		if (len < 0)
			return -errno;
		r = mnl_cb_run(t->bytes, (size_t)len, t->sequence, 0, on_object,
			       t);
		if (r < 0) {
			r = errno == EINTR ? 0 : -errno;
			list_skip(t);
			return r;
		}
		if (r == MNL_CB_STOP)
			return 0;
	}
	return -EMSGSIZE;
}

int tally_read(struct tally *t, struct tally_sums *ret)
{
	int r = 0;

	for (t->table = 0; !r && t->table < ARRAY_LEN(tables); t->table++) {
		r = list_ask(t, tables[t->table]);
		if (!r)
			r = list_read(t);
	}
	t->begun = true;
	*ret = t->sums;
	return r;
}

int tally_open(struct tally **ret)
{
	struct tally *t = must_alloc(sizeof(*t));
	struct tally_sums sums;
	int r = 0;

	t->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!t->socket || mnl_socket_bind(t->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	if (!r)
		r = tally_read(t, &sums);
	if (r) {
		tally_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct tally *tally_free(struct tally *t)
{
	if (!t)
		return NULL;
	if (t->socket)
		(void)mnl_socket_close(t->socket);
	free(t);
	return NULL;
}
