/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - compiled policies received from control, shared by all workers */

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "gateway/registry/facts.h"
#include "src/base/err.h"
#include "src/io/chan.h"

enum {
	/* Below this a copy on the heap is smaller than a mapping of pages. */
	COPY_BYTES = 64 * 1024,
};

/* Heap blocks of glibc are 16-byte aligned, as snapshot_open() wants. */
static void *policy_copy(const void *bytes, size_t len)
{
	void *copy = must_alloc(len);

	memcpy(copy, bytes, len);
	return copy;
}

int policy_new(const struct msg_policy *msg, int fd, struct policy **ret)
{
	struct policy *p = must_alloc(sizeof(*p));
	const void *map;
	int r;

	atomic_init(&p->refs, 1);
	p->id = msg->policy;
	p->generation = msg->generation;

	r = chan_map(fd, msg->size, &map);
	if (r) {
		free(p);
		return err_trace(r);
	}
	if (msg->size <= COPY_BYTES) {
		p->bytes = policy_copy(map, msg->size);
		(void)munmap((void *)map, msg->size);
	} else {
		p->bytes = (void *)map;
		p->mapped = msg->size;
	}
	r = snapshot_open(p->bytes, msg->size, &p->snapshot);
	if (r) {
		(void)policy_unref(p);
		return err_trace(r);
	}
	*ret = p;
	return 0;
}

struct policy *policy_ref(struct policy *p)
{
	if (p)
		atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

struct policy *policy_unref(struct policy *p)
{
	if (!p ||
	    atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return NULL;
	if (p->mapped)
		(void)munmap(p->bytes, p->mapped);
	else
		free(p->bytes);
	free(p);
	return NULL;
}
