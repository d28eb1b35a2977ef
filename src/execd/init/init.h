/* SPDX-License-Identifier: Apache-2.0 */
/* init.h - what comes before and around the container's own program (contract
 * 5.11, 12)
 *
 * The CA is installed, the pre-script sourced, and, when the daemon is the
 * container's init, the program behind "--" is started: in a process group of
 * its own, with our standard descriptors, and the terminal if there is one.
 * Signals go to it. Its end is the container's: what is left gets SIGTERM, and
 * SIGKILL after INIT_GRACE_MS; then the daemon ends with its status, 128 + n
 * after signal n. The API answers all the while.
 *
 * Without words behind "--" nothing is started and the daemon runs until
 * SIGTERM.
 */
#pragma once

#include "src/base/attrib.h"

struct execd;
struct init;

enum {
	INIT_GRACE_MS = 3000,
	INIT_CA_WAIT_MS = 300 * 1000, /* for the CA to appear */
	INIT_EXIT_NOT_RUNNABLE = 126,
	INIT_EXIT_NOT_FOUND = 127,
};

/* First thing in main(), before arguments and environment are changed: when
 * the daemon is to be init and EXECD_BOOTSTRAP_PRE_SCRIPT names a file, a shell
 * sources it and becomes this program again, so that what the script exports
 * is everybody's. Returns when there is nothing to source, or the second time.
 * Blocking: it waits for the CA first. */
void init_source(char **argv);

/* Begins. over(ctx, status) is called from the loop when the daemon is to end
 * with this status; again, when SIGTERM or SIGINT ask for it again. 0 or
 * -errno. */
WUNRES int init_new(struct execd *e, void (*over)(void *ctx, int status),
		    void *ctx, struct init **ret);
/* NULL is fine; returns NULL. */
struct init *init_free(struct init *i);
