/* SPDX-License-Identifier: Apache-2.0 */
/* chan.h - one end of a SEQPACKET channel between two roles, on a loop
 *
 * Carries the messages of src/role/msg.h without knowing their types: the
 * framing (struct msg_head) is checked here, the bodies by the receiver.
 * Sending queues when the kernel is full (bounded by CHAN_QUEUE_MAX bytes).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct chan;
struct loop;

enum {
	CHAN_QUEUE_MAX = 16 * 1024 * 1024,
	CHAN_MESSAGE_MAX = 128 * 1024, /* head, body and tail */
	CHAN_FDS_MAX = 4,
	MSG_MAGIC = 0x5350, /* "PS" */
};

/* In front of every message, in host order. */
struct msg_head {
	uint16_t magic;
	uint16_t type;
	uint32_t serial;
	uint32_t len;  /* of what follows */
	uint32_t zero; /* the payload after it is aligned to 8 */
};

struct chan_msg {
	uint16_t type;
	uint32_t serial;
	struct span payload;   /* body and tail, borrowed for the call */
	int fds[CHAN_FDS_MAX]; /* closed after the call unless set to -1 */
	unsigned fd_count;
};

/* A callback may free the channel; both are made from the loop only. closed:
 * the peer is gone (error 0 or -errno) or broke the framing (-EPROTO); it
 * comes once, and nothing comes after it. */
struct chan_ops {
	void (*message)(void *ctx, struct chan *c, struct chan_msg *m);
	void (*closed)(void *ctx, struct chan *c, int error);
};

/* A connected pair of SEQPACKET sockets with large buffers, CLOEXEC. */
WUNRES int chan_pair(int fds[2]);
/* Takes fd (closed on failure too) and makes it non-blocking. */
WUNRES int chan_new(struct loop *loop, int fd, const struct chan_ops *ops,
		    void *ctx, struct chan **ret);
struct chan *chan_free(struct chan *c);

/* body and tail are copied; fds are duplicated by the kernel (the caller keeps
 * its own). 0, -ENOBUFS (queue full), -EPIPE (closed), -EMSGSIZE (over
 * CHAN_MESSAGE_MAX). What had to be queued is wiped after it was sent. */
int chan_send(struct chan *c, uint16_t type, uint32_t serial, const void *body,
	      size_t body_len, struct span tail, const int *fds,
	      unsigned fd_count);
/* The next request serial of this end, > 0. */
uint32_t chan_serial(struct chan *c);

/* Blocking twins, for set-up and for the command line: they wait whether or
 * not fd is non-blocking. chan_recv_now(): 0, -EPIPE when the peer is gone,
 * -EPROTO, -errno; m->fds are then the caller's. */
WUNRES int chan_send_now(int fd, uint16_t type, uint32_t serial,
			 const void *body, size_t body_len, struct span tail,
			 const int *fds, unsigned fd_count);
/* buffer: at least sizeof(head) + the largest message expected, aligned to 8.
 */
WUNRES int chan_recv_now(int fd, void *buffer, size_t size, struct chan_msg *m);

/* A sealed, read-only memfd holding bytes; the fd, or -errno. */
WUNRES int chan_memfd(struct span bytes);
/* Maps such an fd (seals checked): 0 and a mapping to munmap(), or -errno. */
WUNRES int chan_map(int fd, size_t size, const void **ret);
