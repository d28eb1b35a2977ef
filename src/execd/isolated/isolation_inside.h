/* SPDX-License-Identifier: Apache-2.0 */
/* isolation_inside.h - between isolation.c and runs.c */
#pragma once

#include "src/base/list.h"
#include "src/base/map.h"
#include "src/execd/id.h"
#include "src/execd/isolated/isolation.h"
#include "src/execd/isolated/plan.h"
#include "src/execd/isolated/world.h"
#include "src/io/loop.h"

struct httpd_request;
struct json_out;
struct session;

enum { ISOLATION_PATHS_MAX = 16 }; /* folders that sessions may be given */

/* What a trial found; message "" = it works. */
struct trial {
	char message[256];
};

struct isolation {
	struct execd *execd;
	struct map by_id;
	struct list all; /* in the order of making */
	bool tried;
	struct trial user[PLAN_USER_NUM], overlay;
	char *allowed_text;
	const char *allowed[ISOLATION_PATHS_MAX + 1];
};

struct isolated {
	struct isolation *owner;
	struct list link;
	char id[ID_SIZE];
	struct plan plan;
	struct world world;
	bool dead;
	struct session *session;
	uint64_t made_wall_ms, run_wall_ms; /* the last run's end, or now */
	uint64_t run_ms;
	unsigned running;
	struct timer idle;
	char runs[ISOLATION_RUNS_MAX][ID_SIZE]; /* in the background; a ring */
	unsigned run_count;
};

/* NULL: answered with 404. */
struct isolated *isolated_of_path(struct execd *e, struct httpd_request *r);
/* A run has ended, or was not begun: the time without one begins. */
void isolated_rest(struct isolated *s);
void isolated_put_time(struct json_out *o, const char *name, uint64_t wall_ms);
