/* SPDX-License-Identifier: Apache-2.0 */
/* simple.h - the shapes that most subcommands of the admin API have
 *
 * list: GET a collection, print a table. show: GET one thing, print its
 * members. rm: DELETE one thing. put: PUT or POST a JSON body. All return an
 * exit code.
 */
#pragma once

#include "src/base/span.h"
#include "src/cli/api.h"
#include "src/cli/table.h"

struct simple_words;

struct simple {
	const char *line; /* usage */
	const char *path; /* ROUTE_... */
	/* what to do when no daemon answers; NULL: say so */
	int (*otherwise)(const struct simple_words *w);
	const char *member;	      /* list: of the reply; the array */
	const struct column *columns; /* list, show */
};

int simple_list(const struct simple *s, int argc, char **argv);
int simple_show(const struct simple *s, int argc, char **argv);
int simple_rm(const struct simple *s, int argc, char **argv);
/* POST without a body; prints the reply's "message", or `done`. */
int simple_post(const struct simple *s, const char *done, int argc,
		char **argv);

/* Options of a subcommand with these shapes. */
struct simple_words {
	struct opt_daemon daemon;
	struct opt_words rest;
};
/* 0 or a condition of opts_parse(). */
WUNRES int simple_parse(const struct simple *s, unsigned min, unsigned max,
			int argc, char **argv, struct simple_words *ret);
