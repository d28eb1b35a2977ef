/* SPDX-License-Identifier: Apache-2.0 */
/* gateway.c - the gateway role: everything that touches live traffic */

#include "gateway/gateway.h"
#include "src/role/role.h"

int main(void)
{
	struct config *config;
	int status;

	role_init(ROLE_GATEWAY, &config);
	status = gateway_run(config);
	(void)config_free(config);
	return status;
}
