/* SPDX-License-Identifier: Apache-2.0 */
/* box.h - one sandbox of the lifecycle API: its record
 *
 * What the client asked for, what we gave it (addresses, tokens), when it ends,
 * and what is known of its container. The stored form (JSON, kind BOX of the
 * node's scope) and the shown form (contract 4.4) are both written here; the
 * shown one has no token in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/arena.h"
#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/base/map.h"

struct diag;
struct json_out;

enum { BOX_ID_SIZE = 37, BOX_TOKEN_SIZE = 44 };

enum box_state {
	BOX_PENDING, /* zero: being made */
	BOX_RUNNING,
	BOX_PAUSED,
	BOX_STOPPING, /* being removed */
	BOX_TERMINATED,
	BOX_FAILED,
	BOX_UNKNOWN,
	BOX_STATE_NUM,
};

struct box_pair {
	struct span name, value;
};

struct box {
	char id[BOX_ID_SIZE]; /* uuid4 */
	char container[65];   /* Docker's id; "" before it is made */
	enum box_state state;
	const char *reason; /* a constant of the contract; "" */
	char message[256];
	uint64_t created_ms, changed_ms; /* wall clock; changed: of the state */
	uint64_t expires_ms;		 /* 0: manual cleanup */

	/* as asked for */
	struct span image, snapshot_id; /* one of them */
	struct span *entrypoint;
	unsigned entrypoint_count;
	struct map metadata;			/* name -> char *, both owned */
	struct span platform_os, platform_arch; /* or SPAN_NONE */
	struct span request; /* the rest, as JSON: resources, volumes, ... */
	bool has_policy, credential_proxy, secure_access;
	unsigned renew_extend_s; /* 0: no renewal by access */

	/* as given */
	struct addr v4, v6;
	uint8_t mac[6];
	char port[16]; /* of the bridge; "" before it is known */
	char execd_token[BOX_TOKEN_SIZE], egress_token[BOX_TOKEN_SIZE];
	char secure_token[BOX_TOKEN_SIZE]; /* "" without secure_access */
	char proxy_token[BOX_TOKEN_SIZE];  /* the gateway's, for execd's /proxy;
					      "": execd knows of none */

	uint64_t change; /* lifecycle.changes when the state was set; not kept
			  */
	struct arena arena; /* of all spans */
};

const char *box_state_name(enum box_state state);
/* Any case. */
WUNRES bool box_state_by_name(struct span name, enum box_state *ret);
struct box *box_new(void);
/* From .v4. */
void box_set_mac(struct box *b);
/* From the stored form. 0; -EINVAL with d. */
WUNRES int box_parse(struct span text, struct box **ret, struct diag *d);
struct box *box_free(struct box *b); /* wipes tokens */
void box_emit_stored(struct json_out *o, const struct box *b);
/* with_image: the reply to POST has none. */
void box_emit(struct json_out *o, const struct box *b, bool with_image);
/* value SPAN_NONE removes it. */
void box_set_metadata(struct box *b, struct span name, struct span value);
/* Replaces state, reason (a constant) and message; sets changed_ms. */
void box_set_state(struct box *b, enum box_state state, const char *reason,
		   const char *message, uint64_t now_ms);

/* -- all of them ---------------------------------------------------------- */

struct boxes {
	struct map by_id;
};

void boxes_init(struct boxes *all);
void boxes_fini(struct boxes *all);
struct box *boxes_find(const struct boxes *all, struct span id);
void boxes_put(struct boxes *all, struct box *b); /* takes b */
void boxes_remove(struct boxes *all, struct span id);

/* Which to show (contract 4.5). */
struct boxes_query {
	unsigned states; /* bit per enum box_state; 0: all */
	const struct box_pair *metadata;
	unsigned metadata_count;
	unsigned page, page_size; /* from 1 */
};
/* {"items": [...], "pagination": {...}}, newest first. */
void boxes_emit(struct json_out *o, const struct boxes *all,
		const struct boxes_query *q);
