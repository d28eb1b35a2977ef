/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - run another program to its end, and read and write whole files */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct secret;

/* Runs argv[0] (found in PATH) to its end with `input` on its stdin; what it
 * said goes to stderr when it failed. 0; > 0 its exit status; -errno. */
enum { PROC_WORDS_MAX = 24 };
WUNRES int proc_run(const char *const *argv, struct span input);

/* The full path of a program in PATH, or of one given by path. False when there
 * is none. */
WUNRES bool proc_find(const char *name, char *ret_path, size_t size);

/* Exit status of a waited-for process as a shell tells it. */
int proc_status(int wait_status);

/* All of a file into buf, bounded by the buffer; "-" is stdin. 0 or -errno
 * (-EFBIG over the bound). */
WUNRES int file_read(const char *path, struct buf *buf);
/* Creates or replaces; mode as given whatever the umask. 0 or -errno. */
WUNRES int file_write(const char *path, mode_t mode, struct span bytes);
/* mkdir -p; only the last folder gets the mode. 0 or -errno. */
WUNRES int folder_make(const char *path, mode_t mode);

/* A credential value from "@FILE" or "-" (stdin). One line break at the end is
 * not part of it. 0 or -errno after a sentence on stderr. */
WUNRES int value_read(const char *from, struct secret **ret);
