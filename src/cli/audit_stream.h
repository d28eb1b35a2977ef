/* SPDX-License-Identifier: Apache-2.0 */
/* audit_stream.h - audit records from the daemon, one by one */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct api;
struct json;

struct audit_question {
	const char *sandbox; /* NULL: all */
	unsigned lines;	     /* how many of before */
	bool follow;	     /* then what comes, without end */
};

/* text: the record as it stands in the file. False ends the stream. */
typedef bool audit_record_fn(void *ctx, const struct json *record,
			     struct span text);

/* CLI_OK, or another exit code after a sentence. */
WUNRES int audit_stream(const struct api *api, const struct audit_question *q,
			audit_record_fn *fn, void *ctx);

/* "2026-11-29T21:42:13.123Z demo allow GET https://a.test/x 200 injected b".
 * Returns dst. */
const char *audit_sentence(const struct json *record, char *dst, size_t size);
