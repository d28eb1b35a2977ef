/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - every execution that is known: those that run, and the last ones
 * that ran
 *
 * Finished ones are forgotten, oldest first, when there are more than
 * COMMANDS_KEPT_MAX, or their texts are longer than COMMANDS_TEXT_MAX together.
 * Logs alone are forgotten before that, when they are more than
 * COMMANDS_LOGS_MAX or COMMANDS_LOG_BYTES_MAX.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct command;
struct commands;
struct execd;

enum {
	COMMANDS_RUNNING_MAX = 4096,
	COMMANDS_KEPT_MAX = 1024,
	COMMANDS_LOGS_MAX = 256,
	COMMANDS_TEXT_MAX = 8 * 1024 * 1024,
};
#define COMMANDS_LOG_BYTES_MAX (UINT64_C(4) << 30)

struct commands *commands_new(struct execd *e);
struct commands *commands_free(struct commands *t);
struct execd *commands_execd(const struct commands *t);

struct command *commands_find(const struct commands *t, struct span id);
bool commands_is_full(const struct commands *t);
/* Gives it an id and takes it into the table. */
void commands_add(struct commands *t, struct command *c);
/* It is COMMAND_OVER: may free it, and others. */
void commands_finished(struct commands *t, struct command *c);
