/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - the queue role: asks the gateway about flows, tells the kernel
 *
 * It knows no policy and no sandboxes. Whatever goes wrong, a packet is
 * dropped.
 */
#pragma once

#include "src/base/attrib.h"

struct config;
struct queue;

/* Takes the kernel's queue and a way to connection tracking: before the role
 * is confined. A kernel without either is said in the log; the role then has
 * nothing to do, and nothing passes. 0, or -errno, said in the log. */
WUNRES int queue_open(const struct config *config, struct queue **ret);
/* Serves until the supervisor ends it; supervisor_fd is taken. The exit
 * status. */
int queue_run(struct queue *q, int supervisor_fd);
/* NULL is fine; returns NULL. */
struct queue *queue_free(struct queue *q);
