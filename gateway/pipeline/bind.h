/* SPDX-License-Identifier: Apache-2.0 */
/* bind.h - does any binding concern a destination? */
#pragma once

#include <stdbool.h>

struct destination;
struct sandbox;
struct worker;

/* Whatever the method and path: must a TLS connection be opened for it? */
bool bind_concerns(struct worker *w, const struct sandbox *s,
		   const struct destination *d);
/* The same of bytes that are neither HTTP nor TLS: whatever the scheme. */
bool bind_concerns_any(struct worker *w, const struct sandbox *s,
		       const struct destination *d);
