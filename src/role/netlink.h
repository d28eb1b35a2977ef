/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.h - asking the kernel over netlink, and hearing what it announces
 *
 * What a message says is the business of who sends it or hears it: links.c and
 * route.c speak rtnetlink, nfnl.c, nfnl_news.c and fence_queue.c nfnetlink.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

/* -- sockets -------------------------------------------------------------- */

/* A socket for questions. protocol: NETLINK_*. The descriptor, or -errno
 * (-EPROTONOSUPPORT: the kernel has no such protocol). */
WUNRES int netlink_open(int protocol);

/* A non-blocking socket that hears what is announced to a group (RTNLGRP_*,
 * NFNLGRP_*), with room for a storm of it. The descriptor, or -errno. */
WUNRES int netlink_news_open(int protocol, unsigned group);

/* -- messages ------------------------------------------------------------- */

/* True: it was the last one of interest. */
typedef bool netlink_fn(void *ctx, const struct nlmsghdr *m);

/* One datagram of announcements, every message of it. 0; -EAGAIN: there is none
 * now; -ENOBUFS: some were lost; -errno. */
WUNRES int netlink_news_read(int fd, netlink_fn *fn, void *ctx);

/* Sends a request with NLM_F_ACK; the kernel works on it and answers in the
 * same call, so nothing is waited for. 0, or what the kernel said: -errno. */
WUNRES int netlink_do(int fd, const struct nlmsghdr *request);

/* Sends a question; fn gets the answer. 0, or -errno: what the kernel said
 * instead. */
WUNRES int netlink_ask(int fd, const struct nlmsghdr *question, netlink_fn *fn,
		       void *ctx);

/* The same for a list (NLM_F_DUMP), every part of which fn gets. What was listed
 * changed meanwhile: parts may be missing or there twice, so it is asked again,
 * after anew(ctx), where that is not NULL, has thrown away what fn made of it.
 * -EAGAIN: it changed each time. */
WUNRES int netlink_list(int fd, const struct nlmsghdr *question,
			netlink_fn *fn, void (*anew)(void *ctx), void *ctx);

/* -- attributes ----------------------------------------------------------- */

/* What follows the body of a message, which has `size` bytes. */
struct span netlink_attrs(const struct nlmsghdr *m, size_t size);

/* The payload of the first attribute of a type. False: there is none, or they
 * are malformed before it. */
bool netlink_attr(struct span attrs, unsigned type, struct span *ret);
/* The same for a string: its text without the NUL; false also when it has no
 * NUL at its end, or one before. */
bool netlink_attr_str(struct span attrs, unsigned type, struct span *ret);
/* The same for a number in host order. */
bool netlink_attr_u32(struct span attrs, unsigned type, uint32_t *ret);
