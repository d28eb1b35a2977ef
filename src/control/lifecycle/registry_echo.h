/* SPDX-License-Identifier: Apache-2.0 */
/* registry_echo.h - does a registry's refusal repeat what it was sent?
 *
 * Pure. A registry is a stranger, and its words end up in the log.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

/* message: a sentence of the Docker client (docker.h), escaped and maybe cut.
 * True when it has the password or the Basic credentials in it, whole or, where
 * it was cut, their beginning. Of less than four characters nothing is looked
 * for: every sentence has them. */
WUNRES bool registry_echoes(const char *message, struct span user,
			    struct span password);
