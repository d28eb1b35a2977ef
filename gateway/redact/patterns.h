/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.h - every text that must not reach a sandbox, for one automaton
 *
 * Made when bindings change, given to automaton_new(), then freed.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct patterns;
struct secret;

enum {
	PATTERNS_MAX = 16384,
	PATTERNS_BYTES_MAX = 4 << 20,
};

enum {
	/* Nothing of the value is long enough to look for. */
	PATTERNS_E_SHORT = 1,
	/* A bound was met: what was added is not the whole. Fail closed. */
	PATTERNS_E_FULL,
};

struct patterns *patterns_new(void);
/* Wipes and frees; NULL is fine; returns NULL. */
struct patterns *patterns_free(struct patterns *p);

/* Adds all forms of what a header "prefix value" carries: those of value, of
 * prefix and value together where value alone is too short, and where prefix is
 * that of basic credentials those of user:password and of password (of user,
 * where the password is no secret). Borrows both. 0; PATTERNS_E_...; -ENOMEM.
 */
WUNRES int patterns_add(struct patterns *p, struct span prefix,
			const struct secret *value);

unsigned patterns_count(const struct patterns *p);
/* At least FORM_MIN_BYTES; borrowed from p, in locked memory. */
struct span patterns_text(const struct patterns *p, unsigned index);
