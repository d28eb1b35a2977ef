/* SPDX-License-Identifier: Apache-2.0 */
/* lock_pace.h - how fast flows of UDP and ICMP of a sandbox may be
 *
 * The kernel forwards them without anybody looking, so the kernel holds them to
 * the rate: what is faster is dropped (lock_script.c). TCP has its pace in the
 * gateway.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/role/msg.h"
#include "src/role/nfnl.h"

/* Rates above are no limit to this kernel's arithmetic. */
#define LOCK_PACE_MAX UINT64_C(10000000000)

/* The limit of m->bytes_per_s for each address of the sandbox, in each
 * direction; none for 0. */
void lock_pace_set(struct nfnl *n, const struct msg_lock *m, bool add);
/* Removes all of them, everybody's. */
void lock_pace_flush(struct nfnl *n);
