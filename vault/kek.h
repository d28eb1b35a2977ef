/* SPDX-License-Identifier: Apache-2.0 */
/* kek.h - where the key-encryption key comes from
 *
 * A key file or a systemd credential holds the key itself: 32 raw bytes, or 64
 * hex digits with an optional newline. A passphrase becomes one by scrypt with
 * parameters that the store keeps.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;
struct secret;

enum {
	KEK_SIZE = 32,
	KEK_SALT_SIZE = 32,
	KEK_PASSPHRASE_MIN = 8,
	KEK_PASSPHRASE_MAX = 4096,
	KEK_SCRYPT_MIN = 15, /* log2 N: 32 MiB with r = 8 */
	KEK_SCRYPT_DEFAULT = 17,
	KEK_SCRYPT_MAX = 18,
};

/* How the store's key was made from what the source holds. On disk. */
enum kek_method {
	KEK_NONE = 0,
	KEK_RAW = 1,
	KEK_SCRYPT = 2,
	KEK_METHOD_NUM,
};

/* Where to look. At most one is set; all NULL: nowhere. */
struct kek_source {
	const char *key_file;
	const char *credential; /* below $CREDENTIALS_DIRECTORY */
	const char *passphrase_file;
};

struct kek_params {
	enum kek_method method;
	uint8_t log2_n, block, parallel; /* scrypt */
	uint8_t salt[KEK_SALT_SIZE];
};

/* Fresh parameters for this source. */
void kek_params_new(const struct kek_source *source, struct kek_params *ret);
/* Are these numbers that we would ever have written? */
bool kek_params_are_sane(const struct kek_params *p);

/* Reads the source and makes the key; may take a second and 128 MiB. 0, or
 * -EINVAL with d: no source or several, a file that cannot be read, that
 * others may read, or that holds no key; a source of the other method than
 * params. */
WUNRES int kek_read(const struct kek_source *source,
		    const struct kek_params *params, struct secret **ret,
		    struct diag *d);
/* Makes a key file (0600) with a fresh key. -EEXIST: it is there already. */
WUNRES int kek_file_new(const char *path, struct diag *d);
