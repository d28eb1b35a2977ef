/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.h - the kinds of value that a keyword can have; room-internal */
#pragma once

#include <stddef.h>

#include "src/role/config.h"

struct doc_node;

enum config_kind {
	CONFIG_NONE,
	CONFIG_PATH,	     /* char *: an absolute path */
	CONFIG_PATH_OR_NONE, /* char *: the same, or "" */
	CONFIG_NAME,	     /* char *: a file name without folders, or "" */
	CONFIG_USER,	     /* char *: an account name, or "" */
	CONFIG_HOST,	     /* char *: a canonical host name, or "" */
	CONFIG_AUTHORITY,    /* char *: host:port or ip:port, or "" */
	CONFIG_URL,	     /* char *: of http or https, or "" */
	CONFIG_LEVEL,	     /* enum log_level */
	CONFIG_BOOL,	     /* bool */
	CONFIG_U16,	     /* uint16_t */
	CONFIG_U32,	     /* uint32_t */
	CONFIG_INTERFACES,   /* struct config_strings */
	CONFIG_PATHS,	     /* struct config_strings */
	CONFIG_BYPASSES,     /* struct config_strings: CIDR, IP, name or .name */
	CONFIG_ADDR_PORT,    /* struct addr; its port is not 0 */
	CONFIG_NET,   /* struct cidr */
	CONFIG_ADDRS, /* struct addr *, unsigned: port 53 if none given */
	CONFIG_PINS,  /* struct config_pin *, unsigned */
	CONFIG_KIND_NUM,
};

struct config_keyword {
	const char *section, *key;
	const char *fallback; /* the default, as an operator would write it */
	const char *help;
	enum config_kind kind;
	size_t offset; /* in struct config */
	uint64_t min, max;
};

enum { CONFIG_KEYWORDS_MAX = 128 };

/* Every keyword in the order of config.def; *ret_count of them. */
const struct config_keyword *config_keywords(unsigned *ret_count);

/* Where c keeps the keyword's value. */
void *config_field(const struct config_keyword *k, const struct config *c);
void config_strings_fini(struct config_strings *s);
void config_pins_fini(struct config *c);

/* Puts the default into c (which holds nothing there yet). */
void config_value_default(const struct config_keyword *k, struct config *c);
/* Replaces what c holds: 0, or -EINVAL with diag and c still freeable. */
WUNRES int config_value_set(const struct config_keyword *k, struct config *c,
			    const struct doc_node *n, struct diag *d);
