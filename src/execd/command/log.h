/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the file a background command writes to, and how it is read
 *
 * The file has no name: it is made in TMPDIR, /tmp or /var/tmp and unlinked at
 * once, so nothing beside us can find it there, replace it or leave it behind,
 * and its space is free again when the command is forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"

struct diag;
struct httpd_request;

/* The fd, close-on-exec, for reading and appending; -errno with a sentence in d
 * that names each place and what was wrong there. */
WUNRES int command_log_open(struct diag *d);
/* Bytes in it. */
uint64_t command_log_bytes(int fd);
/* Answers with the bytes from `cursor` on, and in the header the cursor behind
 * them. While
 * `growing`, bytes at the end that begin a character are left for the next
 * call. fd is borrowed for the call. */
void command_log_send(struct httpd_request *r, const char *header, int fd,
		      uint64_t cursor, bool growing);
