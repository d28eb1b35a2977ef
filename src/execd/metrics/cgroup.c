/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - what the kernel's files say about limits and use; pure parsers */

#include "src/execd/metrics/cgroup.h"

#include <stdio.h>

static struct span without_end(struct span s)
{
	while (s.len && (s.ptr[s.len - 1] == '\n' || s.ptr[s.len - 1] == ' '))
		s.len--;
	return s;
}

/* The next word; SPAN_NONE at the end. */
static struct span next_word(struct span *rest)
{
	struct span word;

	*rest = span_trim(*rest);
	if (!rest->len)
		return SPAN_NONE;
	word = span_cut(rest, ' ');
	return span_cut(&word, '\t');
}

/* v1 writes "no limit" as the largest page-aligned int64. */
bool cgroup_parse_number(struct span text, uint64_t *ret)
{
	struct span s = without_end(text);
	uint64_t v;

	if (span_eq(s, SPAN("max")) || span_eq(s, SPAN("-1"))) {
		*ret = CGROUP_NONE;
		return true;
	}
	if (!span_parse_u64(s, &v))
		return false;
	*ret = v >= (uint64_t)INT64_MAX / 65536 * 65536 ? CGROUP_NONE : v;
	return true;
}

bool cgroup_parse_cpu_max(struct span text, double *cores)
{
	struct span rest = without_end(text), word = next_word(&rest);
	uint64_t quota, period = 100000;

	if (rest.len && (!span_parse_u64(span_trim(rest), &period) || !period))
		return false;
	if (span_eq(word, SPAN("max"))) {
		*cores = 0;
		return true;
	}
	if (!span_parse_u64(word, &quota) || !quota)
		return false;
	*cores = (double)quota / (double)period;
	return true;
}

bool cgroup_parse_key(struct span text, struct span name, uint64_t *ret)
{
	struct span line;

	while (text.len) {
		line = span_cut(&text, '\n');
		if (span_eq(next_word(&line), name))
			return span_parse_u64(span_trim(line), ret);
	}
	return false;
}

/* Is `word` one of the comma separated list? The empty list has the empty
 * word: so v2's line is found. */
static bool in_list(struct span list, struct span word)
{
	if (!word.len)
		return !list.len;
	while (list.len)
		if (span_eq(span_cut(&list, ','), word))
			return true;
	return false;
}

bool cgroup_parse_self(struct span text, struct span controller,
		       struct span *path)
{
	struct span line;

	while (text.len) {
		line = span_cut(&text, '\n');
		(void)span_cut(&line, ':');
		if (!in_list(span_cut(&line, ':'), controller))
			continue;
		if (!line.len || line.ptr[0] != '/')
			return false;
		*path = line;
		return true;
	}
	return false;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* mountinfo writes space, tab, line end and backslash as \ooo. */
static bool unescape(struct span s, char dst[CGROUP_PATH_SIZE])
{
	size_t i, at = 0;

	for (i = 0; i < s.len; i++) {
		if (at + 1 >= CGROUP_PATH_SIZE || !s.ptr[i])
			return false;
		if (s.ptr[i] == '\\' && i + 3 < s.len &&
		    is_octal(s.ptr[i + 1]) && is_octal(s.ptr[i + 2]) &&
		    is_octal(s.ptr[i + 3])) {
			dst[at++] = (char)((s.ptr[i + 1] - '0') << 6 |
					   (s.ptr[i + 2] - '0') << 3 |
					   (s.ptr[i + 3] - '0'));
			i += 3;
		} else {
			dst[at++] = s.ptr[i];
		}
	}
	dst[at] = '\0';
	return at > 0 && dst[0] == '/';
}

/* "36 35 98:0 /root /point options optional... - type source super" */
static bool parse_mount_line(struct span line, struct span controller,
			     struct cgroup_mount *m)
{
	struct span root, point, word;
	unsigned i;

	for (i = 0; i < 3; i++)
		(void)next_word(&line);
	root = next_word(&line);
	point = next_word(&line);
	do {
		word = next_word(&line);
		if (!word.len)
			return false;
	} while (!span_eq(word, SPAN("-")));
	word = next_word(&line);
	(void)next_word(&line);
	if (controller.len ? !span_eq(word, SPAN("cgroup")) ||
				     !in_list(next_word(&line), controller)
			   : !span_eq(word, SPAN("cgroup2")))
		return false;
	return unescape(root, m->root) && unescape(point, m->point);
}

bool cgroup_parse_mount(struct span mountinfo, struct span controller,
			struct cgroup_mount *ret)
{
	struct cgroup_mount m;

	while (mountinfo.len)
		if (parse_mount_line(span_cut(&mountinfo, '\n'), controller,
				     &m)) {
			*ret = m;
			return true;
		}
	return false;
}

bool cgroup_folder(const struct cgroup_mount *m, struct span path,
		   char dst[CGROUP_PATH_SIZE])
{
	struct span root = span_str(m->root), below = path;
	int len;

	if (span_eq(root, SPAN("/")))
		root.len = 0;
	if (!span_starts(path, root) ||
	    (path.len > root.len && path.ptr[root.len] != '/') ||
	    span_starts(path, SPAN("/..")))
		below = SPAN("");
	else
		below = span_from(path, root.len);
	if (span_eq(below, SPAN("/")))
		below.len = 0;
	len = snprintf(dst, CGROUP_PATH_SIZE, "%s%.*s", m->point,
		       SPAN_FMT(below));
	return len > 0 && len < CGROUP_PATH_SIZE;
}

/* -- the whole machine ---------------------------------------------------- */

enum {
	STAT_IDLE = 3,
	STAT_IOWAIT = 4,
	STAT_STEAL = 7, /* what follows is counted in user and nice */
};

bool proc_parse_stat(struct span text, uint64_t *busy, uint64_t *total)
{
	struct span line = span_cut(&text, '\n');
	uint64_t value, sum = 0, idle = 0;
	unsigned i;

	if (!span_eq(next_word(&line), SPAN("cpu")))
		return false;
	for (i = 0; i <= STAT_STEAL; i++) {
		if (!span_parse_u64(next_word(&line), &value))
			break;
		sum += value;
		if (i == STAT_IDLE || i == STAT_IOWAIT)
			idle += value;
	}
	if (i <= STAT_IDLE)
		return false;
	*busy = sum - idle;
	*total = sum;
	return true;
}

static bool meminfo_field(struct span text, struct span name, uint64_t *bytes)
{
	struct span line;
	uint64_t kib;

	while (text.len) {
		line = span_cut(&text, '\n');
		if (!span_eq(span_cut(&line, ':'), name))
			continue;
		if (!span_parse_u64(next_word(&line), &kib) ||
		    kib > UINT64_MAX / 1024)
			return false;
		*bytes = kib * 1024;
		return true;
	}
	return false;
}

bool proc_parse_meminfo(struct span text, uint64_t *total, uint64_t *available)
{
	uint64_t all, rest, cached = 0;

	if (!meminfo_field(text, SPAN("MemTotal"), &all) || !all)
		return false;
	if (!meminfo_field(text, SPAN("MemAvailable"), &rest)) {
		if (!meminfo_field(text, SPAN("MemFree"), &rest))
			return false;
		(void)meminfo_field(text, SPAN("Cached"), &cached);
		rest = cached > UINT64_MAX - rest ? all : rest + cached;
	}
	*total = all;
	*available = rest < all ? rest : all;
	return true;
}
