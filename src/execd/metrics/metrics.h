/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - GET /metrics and GET /metrics/watch (contract 5.7) */
#pragma once

struct execd;
struct metrics;

/* Starts the clock that keeps a reading now and then. */
struct metrics *metrics_new(struct execd *e);
/* NULL is fine; returns NULL. */
struct metrics *metrics_free(struct metrics *m);
