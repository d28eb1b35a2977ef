/* SPDX-License-Identifier: Apache-2.0 */
/* vault_words.h - the command line of sallyport-vault, as a struct */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "vault/kek.h"

struct config;
struct diag;

enum { WORDS_MAX = 2 };

struct words {
	const char *verb;
	const char *rest[WORDS_MAX]; /* what is no option */
	int rest_count;
	/* options; NULL or false: not given */
	const char *config, *state_dir, *sandbox;
	struct kek_source kek, new_kek;
	bool all, generate_key, renew, yes, help;
	/* owner of what state_dir and kek may point to */
	struct config *owned;
};

enum { WORDS_E_USAGE = 1 };

/* 0; WORDS_E_USAGE with d. */
WUNRES int words_parse(int argc, char **argv, struct words *ret,
		       struct diag *d);
/* Fills in from the configuration what the command line left open: the state
 * directory, and the key unless one was given. 0 or -errno with d. */
WUNRES int words_complete(struct words *w, struct diag *d);
void words_fini(struct words *w);
