/* SPDX-License-Identifier: Apache-2.0 */
/* opts.c - parse and explain the options of a subcommand from its table */

#include "src/cli/opts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/span.h"
#include "src/cli/command.h"

static void usage_print(const struct opt_usage *usage, FILE *out)
{
	char left[80];
	const struct opt *o;

	fprintf(out, "usage: sallyport %s\n", usage->line);
	for (o = usage->opts; o && o->kind; o++) {
		(void)snprintf(left, sizeof(left), "--%s%s%s", o->name,
			       o->arg ? " " : "", o->arg ? o->arg : "");
		if (o->letter)
			fprintf(out, "  -%c, %-24s %s\n", o->letter, left,
				o->help);
		else
			fprintf(out, "      %-24s %s\n", left, o->help);
	}
}

static const struct opt *opt_find(const struct opt *opts, const char *word,
				  const char **ret_value)
{
	struct span name = span_str(word + 2), value = name;
	const struct opt *o;

	*ret_value = NULL;
	if (word[1] != '-') { /* -x or -xVALUE */
		for (o = opts; o && o->kind; o++) {
			if (o->letter != word[1])
				continue;
			*ret_value = word[2] ? word + 2 : NULL;
			return o;
		}
		return NULL;
	}
	name = span_cut(&value, '=');
	for (o = opts; o && o->kind; o++) {
		if (!span_eq(name, span_str(o->name)))
			continue;
		if (word[2 + name.len] == '=')
			*ret_value = word + 2 + name.len + 1;
		return o;
	}
	return NULL;
}

static int opt_take(const struct opt *o, const char *value)
{
	struct opt_list *list;

	switch (o->kind) {
	case OPT_NONE:
		break;
	case OPT_FLAG:
		*(bool *)o->value = true;
		break;
	case OPT_TEXT:
		*(const char **)o->value = value;
		break;
	case OPT_LIST:
		list = o->value;
		if (list->count == OPT_LIST_MAX)
			return -E2BIG;
		list->items[list->count++] = value;
		break;
	}
	return 0;
}

static int usage_error(const struct opt_usage *usage, const char *what,
		       const char *word)
{
	fprintf(stderr, "sallyport: %s%s%s\nusage: sallyport %s\n", what,
		word ? " " : "", word ? word : "", usage->line);
	return OPTS_E_USAGE;
}

/* One word that begins with a dash; may eat the next one. */
static int opt_word(const struct opt_usage *usage, int argc, char **argv,
		    int *at)
{
	const char *word = argv[*at], *value;
	const struct opt *o;

	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		usage_print(usage, stdout);
		return OPTS_E_HELP;
	}
	o = opt_find(usage->opts, word, &value);
	if (!o)
		return usage_error(usage, "there is no option", word);
	if (o->kind == OPT_FLAG && value)
		return usage_error(usage, "this option takes no value:", word);
	if (o->kind != OPT_FLAG && !value) {
		if (*at + 1 >= argc)
			return usage_error(usage, "a value is missing after",
					   word);
		value = argv[++*at];
	}
	if (opt_take(o, value))
		return usage_error(usage, "too many of", word);
	return 0;
}

int opts_parse(const struct opt_usage *usage, int argc, char **argv,
	       struct opt_words *ret)
{
	unsigned count = 0;
	bool end = false;
	char *word;
	int at, r;

	for (at = 1; at < argc; at++) {
		word = argv[at];
		if (!end && !strcmp(word, "--")) {
			end = true;
			continue;
		}
		if (!end && word[0] == '-' && word[1]) {
			r = opt_word(usage, argc, argv, &at);
			if (r)
				return r;
			continue;
		}
		end = end || usage->stop_at_word;
		argv[count++] = word; /* count < at: already read */
	}
	if (count < usage->min)
		return usage_error(usage, "something is missing", NULL);
	if (count > usage->max)
		return usage_error(usage,
				   "one word too many:", argv[usage->max]);
	argv[count] = NULL;
	*ret = (struct opt_words){ .items = argv, .count = count };
	return 0;
}

int opts_exit(int condition)
{
	return condition == OPTS_E_HELP ? CLI_OK : CLI_USAGE;
}
