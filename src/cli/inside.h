/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what `sallyport run` prepares inside a sandbox before CMD starts
 *
 * All of it runs in the sandbox's first process (cmd_run_init.c), in its own
 * mount, network, process, IPC and host name namespaces, still with every
 * capability. Errors are a sentence on stderr and -errno.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/cli/opts.h"

/* The sandbox's own folder, on its private /run. */
#define INSIDE_FOLDER "/run/sandbox"

/* -- inside_mounts.c ------------------------------------------------------ */

struct inside_view {
	struct opt_list masks; /* files and folders that must not be seen */
	const char *resolver;  /* address for resolv.conf */
	const char *hostname;
};

/* Fresh /proc, /sys, /dev and /run; masks; resolv.conf. */
WUNRES int inside_mount(const struct inside_view *view);
/* Puts the file `from` in the place of `over`, which may not be there (then
 * nothing is done). */
WUNRES int inside_replace(const char *from, const char *over);

/* -- inside_trust.c ------------------------------------------------------- */

/* Writes the CA bundles, puts them in the place of the system's, and sets the
 * variables that clients read. `ca` is the CA as PEM. */
WUNRES int inside_trust(struct span ca);

/* -- inside_drop.c -------------------------------------------------------- */

/* Capabilities down to what an ordinary container has, no new privileges, a
 * fresh session keyring. */
WUNRES int inside_drop(void);
