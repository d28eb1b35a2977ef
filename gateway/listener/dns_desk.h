/* SPDX-License-Identifier: Apache-2.0 */
/* dns_desk.h - who may resolve what: the DNS server's questions, answered */
#pragma once

#include "src/base/attrib.h"

struct dns_server;
struct worker;

/* A DNS server that asks the worker's facts and policy. 0 or -errno. */
WUNRES int dns_desk_open(struct worker *w, struct dns_server **ret);
