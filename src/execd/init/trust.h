/* SPDX-License-Identifier: Apache-2.0 */
/* trust.h - make programs in this container trust the gateway's CA (contract
 * 5.11, 13.10)
 *
 * Three ways at once, since programs read different things: variables that
 * name a bundle of all roots and the CA; the system's own stores, for programs
 * that were started without our environment; the stores of Java. Each is done
 * as far as the file system and our user permit. What was not possible is told
 * in the log in one sentence, and never stops anything.
 *
 * No program is run for it: the files are written as the distributions' own
 * tools would leave them, and the CA is laid where these tools will find it
 * when they run next. Doing it again changes nothing; another CA takes the
 * place of the former one.
 */
#pragma once

#include "src/base/attrib.h"

struct trust_config {
	const char *ca;	    /* PEM; one or more certificates */
	const char *bundle; /* to write: all roots and the CA */
};

/* Blocking, some milliseconds. Sets variables of our own environment, which
 * every program we start inherits (process/env.h). 0; -ENOENT: the CA is not
 * there (yet), or empty; -EINVAL, -errno: it cannot be used, with a sentence on
 * the log. Then nothing was changed. */
WUNRES int trust_install(const struct trust_config *config);
