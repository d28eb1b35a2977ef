/* SPDX-License-Identifier: Apache-2.0 */
/* isolation.h - sessions in a world of their own: /v1/isolated
 *
 * What the kernel and our privileges permit is tried, once, when somebody asks
 * for the first time: a session is made and ended. What was not possible then
 * is refused later in the words of that trial.
 */
#pragma once

struct execd;
struct isolation;

enum { ISOLATION_SESSIONS_MAX = 256, ISOLATION_RUNS_MAX = 256 };

struct isolation *isolation_new(struct execd *e);
/* After commands_free(). NULL is fine; returns NULL. */
struct isolation *isolation_free(struct isolation *t);
