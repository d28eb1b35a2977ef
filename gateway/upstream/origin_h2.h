/* SPDX-License-Identifier: Apache-2.0 */
/* origin_h2.h - what the pool must know of an origin that speaks HTTP/2
 *
 * Implemented beside its legs, in session/h2_back.c.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

struct origin;

/* The handshake chose h2: o->stream carries HTTP/2 from now on. */
WUNRES int origin_h2_begin(struct origin *o);
/* Legs that are left lose their connection. */
void origin_h2_end(struct origin *o);
/* May another exchange join? */
bool origin_h2_has_room(const struct origin *o);
/* No new streams; the connection ends with its last one. */
void origin_h2_shutdown(struct origin *o);
