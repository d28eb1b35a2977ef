/* SPDX-License-Identifier: Apache-2.0 */
/* ping.c - is the daemon there? */

#include "src/execd/answer.h"
#include "src/execd/execd.h"

void ping_get(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	answer_ok(r);
}
