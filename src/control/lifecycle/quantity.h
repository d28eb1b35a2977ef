/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.h - "500m", "1.5", "512Mi": amounts as Kubernetes writes them */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

/* Cores, in billionths of one. False (*ret untouched): no amount, or 0. */
bool quantity_cpu(struct span text, uint64_t *ret);
/* Bytes: plain, k M G T P, Ki Mi Gi Ti Pi. */
bool quantity_bytes(struct span text, uint64_t *ret);
