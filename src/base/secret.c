/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - a small slab allocator over locked, undumpable pages
 *
 * How it works: memory comes from chunks of 128 KiB (mmap, mlock, DONTDUMP,
 * WIPEONFORK). A chunk is cut by size class (powers of two from 64 bytes);
 * freed slots go to the class's free list after being wiped. One mutex guards
 * it: secrets are made at set-up and at policy changes, not per exchange.
 * mlock() may fail under a small RLIMIT_MEMLOCK; that is said once and the
 * pages still stay out of cores.
 */

#include "src/base/secret.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "src/base/err.h"
#include "src/base/log.h"

enum { CHUNK_BYTES = 128 * 1024, CLASS_MIN_BITS = 6, CLASS_MAX_BITS = 17 };

struct secret {
	size_t len;
	unsigned class_bits;
	struct secret *next_free;
	char bytes[];
};

static struct secret *free_lists[CLASS_MAX_BITS + 1];
static char *chunk;
static size_t chunk_left;
static pthread_mutex_t slab_lock = PTHREAD_MUTEX_INITIALIZER;

static bool chunk_new(void)
{
	static bool warned;
	void *p = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	(void)madvise(p, CHUNK_BYTES, MADV_DONTDUMP);
	(void)madvise(p, CHUNK_BYTES, MADV_WIPEONFORK);
	if (mlock(p, CHUNK_BYTES) != 0 && !warned) {
		warned = true;
		log_debug("secret memory was not locked: %s", err_text(errno));
	}
	chunk = p;
	chunk_left = CHUNK_BYTES;
	return true;
}

static struct secret *slab_take(unsigned bits)
{
	struct secret *s = free_lists[bits];
	size_t size = (size_t)1 << bits;

	if (s) {
		free_lists[bits] = s->next_free;
		return s;
	}
	if (chunk_left < size && !chunk_new())
		return NULL;
	s = (struct secret *)chunk;
	chunk += size;
	chunk_left -= size;
	return s;
}

int secret_new(size_t len, struct secret **ret)
{
	unsigned bits = CLASS_MIN_BITS;
	struct secret *s;

	if (len > SECRET_MAX_BYTES)
		return -E2BIG;
	while (((size_t)1 << bits) < len + sizeof(*s))
		bits++;
	pthread_mutex_lock(&slab_lock);
	s = slab_take(bits);
	pthread_mutex_unlock(&slab_lock);
	if (!s)
		return -ENOMEM;
	s->len = len;
	s->class_bits = bits;
	s->next_free = NULL;
	*ret = s;
	return 0;
}

int secret_dup(struct span bytes, struct secret **ret)
{
	int r = secret_new(bytes.len, ret);

	if (!r && bytes.len)
		memcpy((*ret)->bytes, bytes.ptr, bytes.len);
	return r;
}

struct secret *secret_free(struct secret *s)
{
	unsigned bits;

	if (!s)
		return NULL;
	bits = s->class_bits;
	secret_wipe(s, (size_t)1 << bits);
	pthread_mutex_lock(&slab_lock);
	s->next_free = free_lists[bits];
	free_lists[bits] = s;
	pthread_mutex_unlock(&slab_lock);
	return NULL;
}

struct span secret_open(const struct secret *s)
{
	return span_of(s->bytes, s->len);
}

char *secret_fill(struct secret *s)
{
	return s->bytes;
}

size_t secret_len(const struct secret *s)
{
	return s->len;
}

void secret_truncate(struct secret *s, size_t len)
{
	must(len <= s->len);
	secret_wipe(s->bytes + len, s->len - len);
	s->len = len;
}

bool secret_eq(struct span a, struct span b)
{
	unsigned char differs = 0;
	size_t i;

	if (a.len != b.len)
		return false;
	for (i = 0; i < a.len; i++)
		differs |= (unsigned char)(a.ptr[i] ^ b.ptr[i]);
	return differs == 0;
}

void secret_wipe(void *p, size_t len)
{
	if (len)
		explicit_bzero(p, len);
}

void secret_process_init(void)
{
	const struct rlimit none = { 0, 0 };

	must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	must(setrlimit(RLIMIT_CORE, &none) == 0);
}
