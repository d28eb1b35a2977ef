/* SPDX-License-Identifier: Apache-2.0 */
/* home.h - the files and folders that the supervisor makes for the roles */
#pragma once

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/diag.h"

struct config;
struct privilege_user;

/* The whole of a file of at most max bytes into out (which holds more). 0;
 * -EINVAL with diag. */
WUNRES int home_read(const char *path, size_t max, struct buf *out,
		     struct diag *d);

/* stateDir (0700) and runDir (0755) of the roles' user, the folder of the
 * audit file. What exists and holds something keeps its owner. 0; -EINVAL
 * with diag. */
WUNRES int home_make(const struct config *config,
		     const struct privilege_user *user, struct diag *d);

/* One supervisor per runDir: an fd that holds the lock while it is open.
 * The fd, or -EINVAL with diag. */
WUNRES int home_lock(const struct config *config, struct diag *d);

/* The audit file for appending, made 0640 with the group of the roles. The
 * fd, or -EINVAL with diag. */
WUNRES int home_open_audit(const struct config *config,
			   const struct privilege_user *user, struct diag *d);
