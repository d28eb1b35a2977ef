/* SPDX-License-Identifier: Apache-2.0 */
/* opts.h - the options of one subcommand: a table that parses and explains
 *
 * `--name value`, `--name=value`, `-x value`, and flags, anywhere among the
 * other words; `--` ends them. `--help` prints the table.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

enum opt_kind {
	OPT_NONE, /* ends a table */
	OPT_FLAG, /* value: bool * */
	OPT_TEXT, /* value: const char **; the last one wins */
	OPT_LIST, /* value: struct opt_list * */
};

struct opt {
	const char *name; /* without the dashes */
	enum opt_kind kind;
	void *value;
	const char *arg;  /* what the value is called, in the help */
	const char *help; /* one line */
	char letter;	  /* short form, or 0 */
};

enum { OPT_LIST_MAX = 256, OPT_ANY = 1000000 };

struct opt_list {
	const char *items[OPT_LIST_MAX];
	unsigned count;
};

/* What remains besides options, in order; borrowed from argv. */
struct opt_words {
	char **items;
	unsigned count;
};

struct opt_usage {
	const char *line;  /* "policy check FILE..." */
	unsigned min, max; /* number of words; max may be OPT_ANY */
	bool stop_at_word; /* the first word ends the options */
	const struct opt *opts;
};

enum {
	OPTS_E_HELP = 1, /* --help was given and answered */
	OPTS_E_USAGE,	 /* one sentence and the usage line went to stderr */
};

/* Sorts argv in place. 0, or one of the conditions above. */
WUNRES int opts_parse(const struct opt_usage *usage, int argc, char **argv,
		      struct opt_words *ret);

/* The exit code of a condition of opts_parse(). */
int opts_exit(int condition);

/* Options of everything that talks to the daemon. */
struct opt_daemon {
	const char *socket; /* admin socket */
	const char *config; /* the daemon's configuration file */
	bool json;	    /* the raw reply instead of a table */
};
#define OPTS_DAEMON(d)                                           \
	{ "socket",                                              \
	  OPT_TEXT,                                              \
	  &(d)->socket,                                          \
	  "PATH",                                                \
	  "admin socket of the daemon",                          \
	  's' },                                                 \
		{ "config",                                      \
		  OPT_TEXT,                                      \
		  &(d)->config,                                  \
		  "FILE",                                        \
		  "configuration file that names the socket",    \
		  'c' },                                         \
	{                                                        \
		"json", OPT_FLAG, &(d)->json, NULL,              \
			"print the daemon's reply as it is", 'j' \
	}
