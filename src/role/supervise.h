/* SPDX-License-Identifier: Apache-2.0 */
/* supervise.h - keeps the roles running and connected to each other
 *
 * Gateway, vault, control and queue are started, told about each other,
 * restarted when they end, and ended when the daemon stops. All of it runs on
 * one loop; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct listeners;
struct lock;
struct loop;
struct supervise;

/* Everything is borrowed for the life of the supervision. */
struct supervise_setup {
	struct loop *loop;
	const char *programs[ROLE_NUM]; /* paths of the roles to run */
	int config_fd;			/* memfd: configuration text */
	const struct listeners *listeners;
	struct lock *lock; /* NULL: none, and who asks for one is wrong */
	uint32_t grace_ms; /* how long exchanges may finish */
	void *ctx;
	/* how the kernel's rules stand: table_ok, queue, forwards */
	void (*rules)(void *ctx, struct msg_roles *ret);
	/* every role said that it serves; once */
	void (*serving)(void *ctx);
	/* no role is left and none will be started: after supervise_drain()
	 * (failed false), or because a role never came up (true); once. The
	 * supervision may not be freed inside. */
	void (*ended)(void *ctx, bool failed);
};

/* Starts the roles. The audit file goes to each gateway; audit_fd is
 * duplicated. 0 or -errno (then nothing runs). */
WUNRES int supervise_new(const struct supervise_setup *setup, int audit_fd,
			 struct supervise **ret);
/* Kills what still runs. NULL is fine; returns NULL. */
struct supervise *supervise_free(struct supervise *s);

/* Gateway and control finish what runs, then vault and queue end too. What is
 * left after the grace is killed. A second call kills at once. */
void supervise_drain(struct supervise *s);
/* Control reads its files again. */
void supervise_reload(struct supervise *s);
/* The role that listens with it takes these open files (certificate, key; the
 * caller keeps them) or says why not. */
void supervise_renew(struct supervise *s, enum certificate_of of,
		     const int fds[2]);
/* The audit file was opened again; audit_fd is duplicated. 0 or -errno. */
WUNRES int supervise_set_audit(struct supervise *s, int audit_fd);

/* 0 when it does not run. */
int supervise_pid(const struct supervise *s, enum role role);
