/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c - heads of 512 bytes, contents filled up to as many */

#include "src/control/lifecycle/archive.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"

enum { BLOCK = 512 };

struct head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12];
	char checksum[8], kind, target[100], magic[6], version[2];
	char user[32], group[32], device_major[8], device_minor[8];
	char prefix[155], pad[12];
};
static_assert(sizeof(struct head) == BLOCK, "one block");

static int put_zeros(struct buf *out, size_t len)
{
	char *at;
	int r = buf_reserve(out, len, &at);

	if (r)
		return r;
	memset(at, 0, len);
	buf_commit(out, len);
	return 0;
}

/* The sum of all bytes, its own field taken as spaces. */
static void checksum_set(struct head *h)
{
	const unsigned char *at = (const unsigned char *)h;
	unsigned sum = 0;
	size_t i;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (i = 0; i < sizeof(*h); i++)
		sum += at[i];
	(void)snprintf(h->checksum, sizeof(h->checksum), "%06o", sum);
}

static int put_head(struct buf *out, const char *path, unsigned mode, char kind,
		    size_t size)
{
	struct head h = { .kind = kind, .magic = "ustar", .version = "00" };

	if (!span_copy(span_str(path), h.name, sizeof(h.name)))
		return err_origin(-ENAMETOOLONG);
	(void)snprintf(h.mode, sizeof(h.mode), "%07o", mode & 07777U);
	(void)snprintf(h.uid, sizeof(h.uid), "%07o", 0U);
	(void)snprintf(h.gid, sizeof(h.gid), "%07o", 0U);
	(void)snprintf(h.size, sizeof(h.size), "%011llo",
		       (unsigned long long)(size & 077777777777ULL));
	(void)snprintf(h.mtime, sizeof(h.mtime), "%011o", 0U);
	checksum_set(&h);
	return buf_put(out, span_of(&h, sizeof(h)));
}

int archive_put_folder(struct buf *out, const char *path, unsigned mode)
{
	return put_head(out, path, mode, '5', 0);
}

int archive_put_file(struct buf *out, const char *path, unsigned mode,
		     struct span bytes)
{
	size_t over = bytes.len % BLOCK;
	int r;

	r = put_head(out, path, mode, '0', bytes.len);
	if (!r)
		r = buf_put(out, bytes);
	if (!r && over)
		r = put_zeros(out, BLOCK - over);
	return r;
}

int archive_end(struct buf *out)
{
	return put_zeros(out, 2 * (size_t)BLOCK);
}
