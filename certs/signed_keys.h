/* SPDX-License-Identifier: Apache-2.0 */
/* signed_keys.h - the keys of signed routes, as a file has them
 *
 *	# the first one signs, all of them verify
 *	b=AAECAwQFBgcICQoLDA0ODw==
 *	a=EBESExQVFhcYGRobHB0eHw==
 */
#pragma once

#include "certs/signed_route.h"
#include "src/base/arena.h"

struct diag;

enum { SIGNED_SECRET_MIN = 16, SIGNED_SECRET_MAX = 1024 };

/* The secrets lie in a, which the caller wipes. 0; -EINVAL with line and
 * sentence, which repeats no key. No line at all is no key. */
WUNRES int signed_keys_parse(struct span text, struct arena *a,
			     struct signed_keys *ret, struct diag *d);
