/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - streams that share how much may be read from them
 *
 * How it works: before a read a paced stream asks for bytes. They are drawn
 * from the owner by the chunk; when there are none, the stream stops to be
 * readable, joins the end of a line and the loop does not look at it again.
 * Every few ms the owner is asked anew, and whoever stands first goes on with
 * one chunk, so that the streams take turns whatever their number and their
 * hunger. TCP tells the peer to wait: nothing is dropped, nothing gathers here.
 *
 * A pace that is not limited costs its streams one branch per read. It belongs
 * to one loop and is counted by reference: each of its streams holds one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct pace;
struct stream;

struct pace_ops {
	/* The next chunk; 0: not now; UINT64_MAX: there is no limit now. */
	uint64_t (*draw)(void *ctx);
	void (*release)(void *ctx); /* the pace ended; NULL is fine */
};

/* Not limited at first. */
struct pace *pace_new(struct loop *loop, const struct pace_ops *ops, void *ctx);
struct pace *pace_ref(struct pace *p);	 /* NULL is fine */
struct pace *pace_unref(struct pace *p); /* NULL is fine; returns NULL */
/* Whoever waits when it is no longer limited goes on. */
void pace_limit(struct pace *p, bool limited);

/* From now on what is read from s (on the wire) is charged to p; NULL: to
 * nobody. Also when s is spliced. */
void stream_set_pace(struct stream *s, struct pace *p);
