/* SPDX-License-Identifier: Apache-2.0 */
/* config_table.c - the keywords of config.def as rows, and the life of a
 * configuration; apart from its parser, which most roles do not need
 */

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "src/role/config_value.h"

static const struct config_keyword keywords[] = {
#define KEYWORD(in, word, type, field, def, low, high, text) \
	{ .section = in,                                     \
	  .key = word,                                       \
	  .fallback = def,                                   \
	  .help = text,                                      \
	  .kind = CONFIG_##type,                             \
	  .offset = offsetof(struct config, field),          \
	  .min = low,                                        \
	  .max = high },
#include "src/role/config.def"
#undef KEYWORD
};

static_assert(ARRAY_LEN(keywords) <= CONFIG_KEYWORDS_MAX, "room for all");
static_assert(sizeof(unsigned) == sizeof(uint32_t), "loops is a U32");

const struct config_keyword *config_keywords(unsigned *ret_count)
{
	*ret_count = ARRAY_LEN(keywords);
	return keywords;
}

void *config_field(const struct config_keyword *k, const struct config *c)
{
	return (char *)(uintptr_t)c + k->offset;
}

void config_strings_fini(struct config_strings *s)
{
	unsigned i;

	for (i = 0; i < s->count; i++)
		free(s->items[i]);
	free(s->items);
	*s = (struct config_strings){ 0 };
}

void config_pins_fini(struct config *c)
{
	unsigned i;

	for (i = 0; i < c->pin_count; i++) {
		free(c->pins[i].name);
		free(c->pins[i].addrs);
	}
	free(c->pins);
	c->pins = NULL;
	c->pin_count = 0;
}

static void field_free(const struct config_keyword *k, struct config *c)
{
	switch (k->kind) {
	case CONFIG_PATH:
	case CONFIG_PATH_OR_NONE:
	case CONFIG_NAME:
	case CONFIG_USER:
	case CONFIG_HOST:
	case CONFIG_AUTHORITY:
	case CONFIG_URL:
		free(*(char **)config_field(k, c));
		return;
	case CONFIG_INTERFACES:
	case CONFIG_PATHS:
	case CONFIG_BYPASSES:
		config_strings_fini(config_field(k, c));
		return;
	case CONFIG_ADDRS:
		free(c->dns_upstreams);
		return;
	case CONFIG_PINS:
		config_pins_fini(c);
		return;
	case CONFIG_NONE:
	case CONFIG_LEVEL:
	case CONFIG_BOOL:
	case CONFIG_U16:
	case CONFIG_U32:
	case CONFIG_ADDR_PORT:
	case CONFIG_NET:
	case CONFIG_KIND_NUM:
		return;
	}
}

struct config *config_free(struct config *c)
{
	unsigned i;

	for (i = 0; c && i < ARRAY_LEN(keywords); i++)
		field_free(&keywords[i], c);
	free(c);
	return NULL;
}

unsigned config_loops(const struct config *c)
{
	cpu_set_t set;
	int cores;

	if (c->loops)
		return c->loops;
	cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	return (unsigned)MIN(MAX(cores, 1), CONFIG_LOOPS_MAX);
}
