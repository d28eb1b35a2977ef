/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - the pieces of `sallyport run`, each in a file run_<piece>.c
 *
 * Every piece has a start and a stop; stop is safe on a piece that never
 * started (all zero) and is called in reverse order whatever happened.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/cli/api.h"
#include "src/cli/opts.h"

struct secret;

enum {
	RUN_ID_SIZE = 64,
	RUN_ADDRESS_SIZE = 64,
	RUN_CA_MAX = 1024 * 1024,
	/* descriptors of the sandbox's first process */
	RUN_FD_GO = 3, /* one byte: the interface is there */
	RUN_FD_CA = 4, /* the CA as PEM */
};

/* -- run_net.c: one interface, a point-to-point pair of addresses ---------- */

struct run_net {
	char iface[16]; /* our side: sp-<8 hex>; eth0 inside */
	char outer[RUN_ADDRESS_SIZE], inner[RUN_ADDRESS_SIZE];
	char outer6[RUN_ADDRESS_SIZE], inner6[RUN_ADDRESS_SIZE];
	char mac[18]; /* of eth0 */
	bool up;
};

enum { RUN_NET_PREFIX = 30, RUN_NET_PREFIX6 = 64 };

/* Draws a name and addresses that nobody on this machine uses. 0 or -errno
 * after a sentence. */
WUNRES int run_net_choose(struct run_net *net);
/* Makes the interface, its other end inside the namespaces of `pid`. */
WUNRES int run_net_start(struct run_net *net, pid_t pid);
void run_net_stop(struct run_net *net);

/* -- run_daemon.c: a daemon for those who have none ------------------------ */

struct run_daemon {
	int lock; /* shared while we use it; 0: not started (an fd is > 0) */
};

/* Joins the standalone daemon of this machine or starts it: a fresh vault, no
 * policies, everything below one folder on /run that goes with it. The last
 * user stops it. 0 or -errno after a sentence. */
WUNRES int run_daemon_start(struct run_daemon *daemon, struct api *api);
/* keep: leave it running, whoever else uses it. */
void run_daemon_stop(struct run_daemon *daemon, bool keep);

/* -- run_child.c: the process ---------------------------------------------- */

struct run_child {
	pid_t pid; /* 0: none */
	int go;	   /* write end of RUN_FD_GO; 0: none */
	sigset_t before;
};

/* Signals that are passed on from now; blocks them. */
void run_child_signals(struct run_child *child);
/* Clones the first process of the sandbox, which waits. argv begins with
 * "sallyport", "run-init". */
WUNRES int run_child_start(struct run_child *child, struct span ca,
			   char *const *argv, char *const *environment);
/* Did a signal arrive that ends us, while they were blocked? */
bool run_child_is_interrupted(void);
/* Lets it go on, passes signals on, returns CMD's exit status. */
int run_child_wait(struct run_child *child);
void run_child_stop(struct run_child *child);

/* -- run_register.c: what the daemon has to know ----------------------------
 */

enum { RUN_PUTS_MAX = 1024 };

struct run_registration {
	const char *id;
	char *paths[RUN_PUTS_MAX]; /* what was put, in order */
	unsigned count;
};

struct run_secrets;

struct run_wishes {
	const char *policy_file, *binding_file; /* NULL: none */
	const struct opt_list *labels;		/* "key=value" */
	const struct run_secrets *secrets;
	const struct run_net *net;
};

/* Policy, sandbox, credentials, bindings. CLI_OK, or another exit code after a
 * sentence. */
WUNRES int run_register_start(struct run_registration *reg,
			      const struct api *api,
			      const struct run_wishes *wishes);
/* keep: forgets without removing. */
void run_register_stop(struct run_registration *reg, const struct api *api,
		       bool keep);

/* -- run_summary.c: what was allowed, denied, injected ----------------------
 */

/* since: clock_text() of when the run began. */
void run_summary_print(const struct api *api, const char *id,
		       const char *since);

/* -- run_secrets.c: the credentials given with --credential ---------------- */

enum { RUN_CREDENTIALS_MAX = 64 };

struct run_credential {
	struct span name;    /* borrowed from argv */
	char path[PATH_MAX]; /* absolute, to be masked; "" for stdin */
	struct secret *value;
};

struct run_secrets {
	struct run_credential *items;
	unsigned count;
};

/* From "NAME=@FILE" words. */
WUNRES int run_secrets_read(struct run_secrets *s,
			    const struct opt_list *words);
void run_secrets_wipe(struct run_secrets *s);
/* Copies the environment without the variables that hold one of the values;
 * says which on stderr. Free with free(). */
char **run_secrets_environment(const struct run_secrets *s, char **from);
