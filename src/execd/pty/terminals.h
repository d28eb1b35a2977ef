/* SPDX-License-Identifier: Apache-2.0 */
/* terminals.h - POST /pty, GET and DELETE /pty/{id}, GET /pty/{id}/ws
 * (contract 5.8) */
#pragma once

struct execd;
struct terminals;

/* How many there may be. A new one beyond that takes the place of the oldest
 * whose program does not run and at which nobody looks. */
/* A command is kept as long as its terminal; a longer one no system starts. */
enum { TERMINALS_MAX = 128, TERMINAL_COMMAND_MAX = 2 * 1024 * 1024 };

struct terminals *terminals_new(struct execd *e);
/* Kills their programs. NULL is fine; returns NULL. */
struct terminals *terminals_free(struct terminals *t);
