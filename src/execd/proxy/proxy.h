/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h - ANY /proxy/{port}/...: servers on the sandbox's loopback, for those
 * outside (contract 5.10) */
#pragma once

struct execd;
struct proxy;

struct proxy *proxy_new(struct execd *e);
/* Exchanges under way are cut. NULL is fine; returns NULL. */
struct proxy *proxy_free(struct proxy *p);
