/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h - connections of the lifecycle listener that go on at the gateway */
#pragma once

#include "src/control/lifecycle/lifecycle.h"

enum { PROXIES_MAX = 1024 };

void proxies_init(struct lifecycle *l);
/* Ends them. */
void proxies_fini(struct lifecycle *l);
