/* SPDX-License-Identifier: Apache-2.0 */
/* language.h - the languages that an interpreter of the image can run
 *
 * A row tells which programs to try, how the driver gets in, and how a cell is
 * asked for. Pure: bytes in, bytes out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

enum { LANGUAGE_PROGRAMS_MAX = 2 };

struct language {
	struct span name;
	const char *programs[LANGUAGE_PROGRAMS_MAX + 1]; /* the first found */
	/* argv[1..]; %zu in it is the length of the driver, which the program
	 * then reads from fd 3. */
	const char *options[2];
	const char *driver;
	const size_t *driver_len;
	/* A shell: its commands, too, come from the channel, and how a cell
	 * ended is an exit status. */
	bool is_shell;
	/* An interrupt is asked for on the channel, and SIGINT is what follows
	 * when that is not heard. */
	bool hears_interrupts;
};

/* NULL: none of them. */
const struct language *language_find(struct span name);
/* Each by its number; NULL: there are no more. */
const struct language *language_at(size_t i);
/* "python, javascript, bash" */
const char *language_names(void);

/* Appends what asks for one cell. 0; -EINVAL (a shell cannot take code with a
 * NUL) or -ENOBUFS. */
WUNRES int language_request(struct buf *out, const struct language *l,
			    uint64_t run, struct span code);
