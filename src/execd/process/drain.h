/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h - pipes of programs that are over, while something still writes
 *
 * What a command left running in the background may go on writing to the pipe
 * of a command whose stream has ended. Its bytes are read and dropped until the
 * last writer is gone. At most DRAINS_MAX pipes are kept so; the oldest gives
 * way, and its writers then meet a closed pipe.
 */
#pragma once

struct loop;

enum { DRAINS_MAX = 1024 };

/* Takes fd, the non-blocking reading end. */
void drain_give(struct loop *loop, int fd);
unsigned drain_count(void);
/* Closes them all; before the loop is freed. */
void drain_free_all(void);
