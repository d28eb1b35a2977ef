/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the HTTP server of the lifecycle API, without a listener yet */
#pragma once

#include "src/base/attrib.h"

struct httpd;
struct lifecycle;

WUNRES int lifecycle_server_new(struct lifecycle *l, struct httpd **ret);
