/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - lines to stderr, each one write(2) so that roles do not interleave */

#include "src/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/clock.h"

static const char *const level_names[LOG_LEVEL_NUM] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

static const char *log_role = "sallyport";
static _Atomic enum log_level log_max = LOG_INFO;

void log_init(const char *role, enum log_level level)
{
	log_role = role;
	log_set_level(level);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_max, level, memory_order_relaxed);
}

bool log_level_parse(struct span name, enum log_level *ret)
{
	int i;

	for (i = 0; i < LOG_LEVEL_NUM; i++) {
		if (span_eq(name, span_str(level_names[i]))) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

bool log_enabled(enum log_level level)
{
	return level <= atomic_load_explicit(&log_max, memory_order_relaxed);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[2048], when[CLOCK_TEXT_SIZE];
	va_list args;
	int head, body;
	size_t len;

	clock_text(clock_wall_ms(), when, sizeof(when));
	head = snprintf(line, sizeof(line), "%s %s %s ", when, log_role,
			level_names[level]);
	va_start(args, fmt);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, args);
	va_end(args);
	if (body < 0)
		return;

	len = MIN((size_t)(head + body), sizeof(line) - 2);
	line[len] = '\n';
	if (write(STDERR_FILENO, line, len + 1) < 0)
		return; /* nowhere left to complain */
}

const char *log_escape(struct span bytes, char *dst, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0, i;
	unsigned char c;

	if (!size)
		return dst;
	for (i = 0; i < bytes.len; i++) {
		if (at + 8 > size) { /* room for one escape and "..." */
			(void)snprintf(dst + at, size - at, "...");
			return dst;
		}
		c = (unsigned char)bytes.ptr[i];
		if (c >= 0x20 && c <= 0x7e && c != '\\') {
			dst[at++] = (char)c;
			continue;
		}
		dst[at++] = '\\';
		dst[at++] = 'x';
		dst[at++] = hex[c >> 4];
		dst[at++] = hex[c & 15];
	}
	dst[at] = '\0';
	return dst;
}
