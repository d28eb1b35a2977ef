/* SPDX-License-Identifier: Apache-2.0 */
/* enter.h - who may have one more connection; the rest is refused at once */
#pragma once

#include "src/base/addr.h"

struct sandbox;
struct worker;

/* An accepted connection. iface: name of the interface it came in by. */
struct entrant {
	struct addr client, original;
	const char *iface;
};

/* The sandbox whose connection it is, charged with it: enter_leave() when it
 * ends. NULL: refused, recorded, fd was reset. Refusing makes nothing but a few
 * system calls, so that a flood of one sandbox takes little of the others'
 * time. */
struct sandbox *enter(struct worker *w, int fd, const struct entrant *e);
void enter_leave(struct sandbox *s);
