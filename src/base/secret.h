/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - bytes that must not be seen: locked, out of cores, wiped
 *
 * A secret lives in its own pages: mlock()ed, MADV_DONTDUMP, MADV_WIPEONFORK,
 * shared by many small secrets of one process. There is no printf path; the
 * bytes are readable only through secret_open(), and tests/lint lists who may
 * call it.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct secret;

enum { SECRET_MAX_BYTES = 96 * 1024 };

/* A secret of len bytes, zeroed. 0; -ENOMEM; -E2BIG over SECRET_MAX_BYTES. */
WUNRES int secret_new(size_t len, struct secret **ret);
/* A copy of bytes; the caller still has to wipe its own. */
WUNRES int secret_dup(struct span bytes, struct secret **ret);
/* Wipes and frees; NULL is fine; returns NULL. Thread-safe. */
struct secret *secret_free(struct secret *s);

/* Borrowed until secret_free(). */
struct span secret_open(const struct secret *s);
/* For filling a new secret in place (read(2), AEAD output). */
char *secret_fill(struct secret *s);
size_t secret_len(const struct secret *s);
/* Shrinks (the cut bytes are wiped). */
void secret_truncate(struct secret *s, size_t len);

/* Constant time in the length of the bytes. */
bool secret_eq(struct span a, struct span b);
void secret_wipe(void *p, size_t len);

/* This process: no cores, no ptrace by equals (PR_SET_DUMPABLE 0, RLIMIT_CORE
 * 0). Call first in every role's main(). */
void secret_process_init(void);
