/* SPDX-License-Identifier: Apache-2.0 */
/* compile.h - a checked policy into the bytes of a snapshot
 *
 * The same input gives the same bytes. out must be empty; its maximum bounds
 * the snapshot (a rule takes its target's name and about 30 bytes). The bytes
 * are aligned as snapshot_open() wants them as long as nothing else is put into
 * out.
 */
#pragma once

#include "policy/model.h"

struct buf;

/* 0; -ENOBUFS: out is too small; -E2BIG: over 1 GiB, or no seed gave short
 * chains (somebody made the names up to collide). */
WUNRES int policy_compile(const struct policy_model *m, struct buf *out);
/* The operator's overlays: deny rules, then allow rules. */
WUNRES int policy_compile_overlay(const struct policy_set *set,
				  struct buf *out);
