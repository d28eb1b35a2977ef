/* SPDX-License-Identifier: Apache-2.0 */
/* epoch.c - two slots, written in turn, each with its own MAC
 *
 * How it works: value v goes to slot v mod 2, so the slot that holds v - 1 is
 * whole while v is being written; a torn slot fails its MAC and the other one
 * counts. The MAC key is drawn with the store and sealed in it: a number that
 * someone without the store's key wrote is no number.
 *
 *   slot: 0 "SPEPOCH1"  8 store id  24 epoch  32 HMAC-SHA-256   (at 0, 4096)
 */

#include "vault/epoch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/secret.h"
#include "vault/record.h"

enum {
	SLOT_SIZE = 64,
	SLOT_STEP = 4096, /* never in one sector with the other */
	SLOT_COUNT = 2,
	AT_ID = 8,
	AT_VALUE = 24,
	AT_MAC = 32,
};

static const struct span magic = SPAN_INIT("SPEPOCH1");

struct epoch {
	int fd;
};

int epoch_open(const char *folder, bool create, struct epoch **ret,
	       struct diag *d)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0);
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/epoch", folder) >=
	    (int)sizeof(path))
		return err_origin(-ENAMETOOLONG);
	fd = open(path, flags, 0600);
	if (fd < 0 && errno == ENOENT)
		return EPOCH_E_ABSENT;
	if (fd < 0) {
		(void)diag_set(d, 0, 0, "%s could not be opened: %s", path,
			       err_text(errno));
		return -EIO;
	}
	*ret = must_alloc(sizeof(**ret));
	(*ret)->fd = fd;
	return 0;
}

struct epoch *epoch_free(struct epoch *e)
{
	if (!e)
		return NULL;
	e->fd = fd_close(e->fd);
	free(e);
	return NULL;
}

static int slot_mac(struct envelope_mac *mac, const char *slot, uint8_t *ret)
{
	const struct span part = span_of(slot, AT_MAC);

	return envelope_mac_run(mac, &part, 1, ret);
}

/* 0 and *ret, or EPOCH_E_CORRUPT. */
static int slot_read(struct epoch *e, unsigned index, struct envelope_mac *mac,
		     const uint8_t *store_id, uint64_t *ret)
{
	uint8_t expected[ENVELOPE_MAC_SIZE];
	char slot[SLOT_SIZE];
	ssize_t len;
	int r;

	len = pread(e->fd, slot, sizeof(slot), (off_t)index * SLOT_STEP);
	if (len < 0)
		return err_origin(-errno);
	if (len != SLOT_SIZE || !span_starts(span_of(slot, AT_ID), magic) ||
	    memcmp(slot + AT_ID, store_id, KEYRING_ID_SIZE) != 0)
		return EPOCH_E_CORRUPT;
	r = slot_mac(mac, slot, expected);
	if (r)
		return r;
	if (!secret_eq(span_of(expected, sizeof(expected)),
		       span_of(slot + AT_MAC, sizeof(expected))))
		return EPOCH_E_CORRUPT;
	*ret = record_get_u64(slot + AT_VALUE);
	return 0;
}

bool epoch_is_used(struct epoch *e)
{
	char slot[SLOT_SIZE];
	unsigned i;

	for (i = 0; i < SLOT_COUNT; i++)
		if (pread(e->fd, slot, sizeof(slot), (off_t)i * SLOT_STEP) ==
			    SLOT_SIZE &&
		    span_starts(span_of(slot, AT_ID), magic) &&
		    record_get_u64(slot + AT_VALUE))
			return true;
	return false;
}

int epoch_read(struct epoch *e, struct envelope_mac *mac,
	       const uint8_t *store_id, uint64_t *ret)
{
	uint64_t value = 0, newest = 0;
	unsigned i, whole = 0;
	int r;

	for (i = 0; i < SLOT_COUNT; i++) {
		r = slot_read(e, i, mac, store_id, &value);
		if (r < 0)
			return r;
		if (r)
			continue;
		newest = MAX(newest, value);
		whole++;
	}
	if (!whole)
		return EPOCH_E_CORRUPT;
	*ret = newest;
	return 0;
}

int epoch_write(struct epoch *e, struct envelope_mac *mac,
		const uint8_t *store_id, uint64_t value)
{
	char slot[SLOT_SIZE];
	int r;

	memcpy(slot, magic.ptr, magic.len);
	memcpy(slot + AT_ID, store_id, KEYRING_ID_SIZE);
	record_put_u64(slot + AT_VALUE, value);
	r = slot_mac(mac, slot, (uint8_t *)slot + AT_MAC);
	if (r)
		return r;
	if (pwrite(e->fd, slot, sizeof(slot),
		   (off_t)(value % SLOT_COUNT) * SLOT_STEP) != SLOT_SIZE ||
	    fdatasync(e->fd) != 0)
		return err_origin(-EIO);
	return 0;
}
