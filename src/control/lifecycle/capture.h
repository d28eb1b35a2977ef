/* SPDX-License-Identifier: Apache-2.0 */
/* capture.h - a snapshot of a sandbox's file system: its record (contract 4.11)
 *
 * The word is not "snapshot", which here is what policies are compiled to.
 * The image itself is Docker's ("opensandbox-snapshots:{id}"). The stored form
 * (JSON, kind SNAPSHOT of control's scope) and the shown form are written here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/map.h"
#include "src/base/span.h"
#include "src/control/lifecycle/box.h"

struct diag;
struct json_out;
struct list_query;

enum { CAPTURE_NAME_MAX = 255, CAPTURES_MAX = 65536 };

enum capture_state {
	CAPTURE_CREATING, /* zero: the image is being made */
	CAPTURE_READY,
	CAPTURE_FAILED,
	CAPTURE_DELETING,
	CAPTURE_STATE_NUM,
};

struct capture {
	char id[BOX_ID_SIZE], sandbox_id[BOX_ID_SIZE];
	char name[CAPTURE_NAME_MAX + 1]; /* "" is none */
	enum capture_state state;
	char message[256]; /* of Failed */
	uint64_t created_ms, changed_ms;
};

const char *capture_state_name(enum capture_state state);
/* From the stored form. 0; -EINVAL with d. */
WUNRES int capture_parse(struct span text, struct capture **ret,
			 struct diag *d);
void capture_emit_stored(struct json_out *o, const struct capture *s);
void capture_emit(struct json_out *o, const struct capture *s);

struct captures {
	struct map by_id;
};

void captures_init(struct captures *all);
void captures_fini(struct captures *all);
struct capture *captures_find(const struct captures *all, struct span id);
/* Takes s, which came from malloc; replaces the one of the same id. */
void captures_put(struct captures *all, struct capture *s);
void captures_remove(struct captures *all, struct span id);
/* {"items": [...], "pagination": {...}}, newest first. */
void captures_emit(struct json_out *o, const struct captures *all,
		   const struct list_query *q);
