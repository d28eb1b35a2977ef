/* SPDX-License-Identifier: Apache-2.0 */
/* kit.h - the files that every container gets, once on the node
 *
 * How it works: execd and the CA lie in a volume of the Docker daemon, and each
 * container has the two files bound to their places, read-only. The volume
 * rather than a folder of ours, since the daemon need not see our file system
 * (control may be in a container itself, and users may be mapped), and where a
 * volume is it tells.
 *
 * The first creation of this process lays the files in, others wait for it. A
 * volume can be filled only through a container: one is made of the image that
 * is at hand, never started, and removed. It has the label of sandboxes with an
 * id that is none, so that reconcile.c removes it if we die on the way.
 *
 * Files are replaced, not written to: what runs keeps what it has.
 */
#pragma once

#include <stdbool.h>

#include "src/base/buf.h"
#include "src/base/list.h"

struct docker_answer;
struct lifecycle;

#define KIT_VOLUME "sallyport-kit" /* also the helper's name */
#define KIT_EXECD  "execd"
#define KIT_CA	   "ca.pem"

enum { KIT_PATH_SIZE = 1024 };

struct kit {
	struct lifecycle *lifecycle;
	struct buf execd; /* the program */
	struct buf ca;	  /* as it was laid in */
	struct list waiters;
	bool is_there;
	bool is_working;
	char source[KIT_PATH_SIZE]; /* where the daemon has the files */
	unsigned status;	    /* the first thing that failed, or 0 */
	char why[512];
};

/* status: 0 when it is there, else of the answer to a client. */
typedef void kit_fn(void *ctx, unsigned status, const char *why);

void kit_init(struct kit *k, struct lifecycle *l);
/* Nobody who waits is called. */
void kit_fini(struct kit *k);
/* image: of any container, here already. fn is called once: before this
 * returns, or from the loop. */
void kit_ensure(struct kit *k, const char *image, kit_fn *fn, void *ctx);
/* Somebody has removed the volume: the next one lays the files in again. */
void kit_forget(struct kit *k);
/* Is this the helper, amid its work? */
bool kit_is_at_work(const struct kit *k, struct span id);
