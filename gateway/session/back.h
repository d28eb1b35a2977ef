/* SPDX-License-Identifier: Apache-2.0 */
/* back.h - the origin's leg of an exchange, and HTTP/2 on an origin */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

struct exchange;
struct leg;
struct origin;

/* Takes an open origin that speaks HTTP/1.1. */
struct leg *h1_back_new(struct exchange *x, struct origin *o);
/* A stream on an open origin that speaks HTTP/2. */
struct leg *h2_back_new(struct exchange *x, struct origin *o);
