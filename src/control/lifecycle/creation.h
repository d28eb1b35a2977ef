/* SPDX-License-Identifier: Apache-2.0 */
/* creation.h - one sandbox that is being made: what its steps share */
#pragma once

#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/host_path.h"
#include "src/control/lifecycle/runtime.h"

struct docker_answer;
struct refusal;

struct creation {
	struct lifecycle *lifecycle;
	struct create_request *q; /* its box has id, addresses and tokens */
	struct httpd_request *request;
	struct list link;
	struct list turn; /* in line for one again: in .returning */
	struct timer timer;
	struct docker_call *call; /* that runs and can be given up, or NULL */
	uint64_t losses;	  /* of Docker's, when it began */
	unsigned step;
	bool has_turn;	   /* it counts among those that run at once */
	bool was_kept;	   /* there is a record */
	bool is_failing;   /* it is being undone */
	bool is_bound;	   /* what is on its way must be waited for: a change,
			      or what Docker will do whether we wait or not */
	bool is_abandoned; /* it is to end then */
	bool has_met_no_kit;
	bool has_met_no_network;
	void (*again)(struct creation *c); /* the step that met none */
	void (*in_turn)(struct creation *c);
	bool has_user;	 /* the image's USER is not root */
	int exit_status; /* of its container, when that has ended; or -1 */
	void (*on_time)(struct creation *c);
	unsigned volume;		 /* the one that is looked at */
	size_t reached;			 /* of its path (create_places.c) */
	char (*sources)[HOST_PATH_SIZE]; /* of each volume */
	pid_t pid;			 /* of its first process */
	uint64_t ready_until_ms;
	struct watch knock; /* create_ready.c */
	int knock_fd;	    /* -1: none */
	unsigned knocks;
	unsigned port_polls;
	struct lifecycle_error no;
	char id[BOX_ID_SIZE];
	char container[65];
	char image[CONTAINER_IMAGE_MAX];
};

/* The step is done. */
void creation_next(struct creation *c);
/* To one of the steps before. */
void creation_back(struct creation *c, void (*step)(struct creation *c));
/* It waits for others and hinders nobody meanwhile: creations in line may go
 * on. Then step is called, in its turn; at once, where there is room. */
void creation_step_aside(struct creation *c);
void creation_step_back(struct creation *c, void (*step)(struct creation *c));
/* It failed: undone, then answered. The first reason counts. */
void creation_fail(struct creation *c, unsigned status, const char *code,
		   const char *fmt, ...) PRINTF(4, 5);
/* Its container has, before it was ready. */
void creation_exited(struct creation *c, int status);
/* For the callback of a call: false when there is nothing to go on with. */
WUNRES bool creation_goes_on(struct creation *c);
/* For the callback of a change: the next step, or fails with what it says. */
void creation_changed(void *ctx, const struct refusal *why);
/* Asks Docker; path is written like printf(). */
void creation_ask(struct creation *c, const char *method, struct span body,
		  void (*fn)(void *ctx, const struct docker_answer *a),
		  const char *fmt, ...) PRINTF(5, 6);

/* Of each volume, what is mounted; to be freed. */
const char **creation_sources(const struct creation *c);
/* Nobody waits for it to serve any more. */
void creation_knock_end(struct creation *c);

/* The steps, in order (create.c has the table). */
void step_record(struct creation *c);	 /* create_record.c */
void step_image(struct creation *c);	 /* create_image.c */
void step_volumes(struct creation *c);	 /* create_volumes.c */
void step_policy(struct creation *c);	 /* create_fence.c */
void step_register(struct creation *c);	 /* create_fence.c */
void step_kit(struct creation *c);	 /* create_container.c */
void step_container(struct creation *c); /* create_container.c */
void step_places(struct creation *c);	 /* create_places.c */
void step_place(struct creation *c);	 /* create_container.c */
void step_start(struct creation *c);	 /* create_container.c */
void step_port(struct creation *c);	 /* create_fence.c */
void step_ready(struct creation *c);	 /* create_ready.c */
void step_running(struct creation *c);	 /* create_record.c */
