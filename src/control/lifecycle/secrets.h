/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.h - what the lifecycle API keeps to itself: the key that clients
 * send, and the keys of shared links
 *
 * Both come from files of the operator, which are read before the role gives
 * up its rights. Of the API's key only the hash is kept.
 */
#pragma once

#include <stdbool.h>

#include "certs/signed_route.h"
#include "src/base/arena.h"
#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/control/tokens.h"

struct config;
struct diag;

enum { API_KEY_MIN = 16, API_KEY_MAX = 512, KEY_FILE_MAX = 64 * 1024 };

struct lifecycle_secrets {
	bool has_key;
	unsigned char key_hash[TOKEN_HASH_SIZE];
	struct signed_keys routes; /* in the arena; the first one signs */
	struct buf routes_text;	   /* the file, for the gateway */
	struct arena arena;
};

void lifecycle_secrets_init(struct lifecycle_secrets *s);
/* Wipes. */
void lifecycle_secrets_fini(struct lifecycle_secrets *s);
/* The files that the configuration names. 0; -EINVAL, -errno with a sentence
 * that names the file and repeats nothing of it. */
WUNRES int lifecycle_secrets_load(const struct config *config,
				  struct lifecycle_secrets *s, struct diag *d);
/* The first line of a file. 0; -EINVAL with d. */
WUNRES int lifecycle_key_parse(struct span text, struct lifecycle_secrets *s,
			       struct diag *d);
/* Is it the API's key? Takes as long for every text. */
bool lifecycle_key_is(const struct lifecycle_secrets *s, struct span text);
