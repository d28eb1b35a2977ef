/* SPDX-License-Identifier: Apache-2.0 */
/* record_memory.c - OpenSSL's hooks of allocation
 *
 * How it works: whoever frees says no size. What has the usable size of a
 * buffer of records is put with those, whatever it was: the size is all that
 * counts.
 */

#include "gateway/tls/record_memory.h"

#include <malloc.h>
#include <openssl/crypto.h>

#include "src/base/blocks.h"
#include "src/base/err.h"

enum {
	/* A record and what OpenSSL wants around it. */
	RECORD_BYTES_MIN = 16 * 1024,
	RECORD_BYTES_MAX = 18 * 1024,
	/* More than malloc adds to a size that was asked for. */
	USABLE_MORE = 64,
};

_Static_assert(RECORD_BYTES_MAX % BLOCK_STEP == 0, "a size of blocks");

static void *on_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	if (size > RECORD_BYTES_MIN && size <= RECORD_BYTES_MAX)
		return block_take(RECORD_BYTES_MAX);
	return size ? malloc(size) : NULL; /* as without hooks */
}

static void *on_realloc(void *p, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return realloc(p, size);
}

static void on_free(void *p, const char *file, int line)
{
	size_t size;

	(void)file;
	(void)line;
	if (!p) /* as most are: 32 with each buffer of records */
		return;
	size = malloc_usable_size(p);
	if (size >= RECORD_BYTES_MAX && size < RECORD_BYTES_MAX + USABLE_MORE)
		block_give(p, RECORD_BYTES_MAX);
	else
		free(p);
}

void record_memory_init(void)
{
	must(CRYPTO_set_mem_functions(on_malloc, on_realloc, on_free) == 1);
}
