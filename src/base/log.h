/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the ordinary log: one line per event, to stderr
 *
 * For operators; the audit record is something else (gateway/audit). A line is
 * "time role level sentence". Library floors never log above debug. Sentences
 * are past tense, fact first, then reason. Bytes from the network are printed
 * through log_escape(). Secrets, query strings and header values never.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_NUM };

/* role is borrowed for ever: a string literal. Default level: info. */
void log_init(const char *role, enum log_level level);
void log_set_level(enum log_level level);
/* False when name is none of error, warn, info, debug. */
bool log_level_parse(struct span name, enum log_level *ret);

void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
bool log_enabled(enum log_level level);

#define log_at(level, ...)                            \
	do {                                          \
		if (log_enabled(level))               \
			log_line(level, __VA_ARGS__); \
	} while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

/* Printable form of foreign bytes: everything outside 0x20..0x7e and the
 * backslash becomes \xNN. Cut with "..." to fit. Returns dst. */
const char *log_escape(struct span bytes, char *dst, size_t size);
