/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h - shells that remember their directory and environment
 *
 * A session is what is remembered; each run is a process of its own, and a
 * command (command/command.h) like others: it can be interrupted and asked for
 * by the id of its init event. Runs of one session may overlap: each starts
 * from what is remembered then, and the one that ends last is remembered.
 */
#pragma once

struct execd;
struct sessions;

enum { SESSIONS_MAX = 4096 };
#define SESSION_TIMEOUT_MS (UINT64_C(24) * 3600 * 1000)

struct sessions *sessions_new(struct execd *e);
/* After commands_free(). */
struct sessions *sessions_free(struct sessions *t);
