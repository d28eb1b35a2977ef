/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - the path parameters of a query: ?path=a&path=b */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct httpd_request;

struct paths {
	struct span *items; /* as given; valid until the reply */
	unsigned count, next;
};

/* False: one is no proper percent-encoding; the request was answered. */
WUNRES bool paths_take(struct httpd_request *r, struct paths *ret);
void paths_fini(struct paths *p);
