/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c - read the syntax of /etc/hosts (see hosts(5)) */

#include "src/text/hosts.h"

/* Cuts the next word off *line; empty at its end. */
static struct span word_cut(struct span *line)
{
	struct span word;
	size_t len = 0;

	*line = span_trim(*line);
	while (len < line->len && line->ptr[len] != ' ' &&
	       line->ptr[len] != '\t')
		len++;
	word = span_of(line->ptr, len);
	*line = span_from(*line, len);
	return word;
}

static struct span line_strip(struct span line)
{
	line = span_of(line.ptr, span_find(line, '#'));
	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

unsigned hosts_parse(struct span text, hosts_fn *fn, void *ctx)
{
	struct span line, word;
	struct addr address;
	unsigned count = 0;

	while (text.len) {
		line = line_strip(span_cut(&text, '\n'));
		if (!addr_parse(word_cut(&line), &address))
			continue;
		for (;;) {
			word = word_cut(&line);
			if (!word.len)
				break;
			if (count == HOSTS_ENTRIES_MAX)
				return count;
			fn(ctx, word, &address);
			count++;
		}
	}
	return count;
}
