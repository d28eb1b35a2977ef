/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - the queue role: packets that wait for a decision */

#include <stdlib.h>

#include "src/queue/queue.h"
#include "src/role/role.h"

int main(void)
{
	struct config *config;
	struct queue *queue;
	int status;

	role_init(ROLE_QUEUE, &config);
	if (queue_open(config, &queue))
		return EXIT_FAILURE;
	role_confine(ROLE_QUEUE, config);
	status = queue_run(queue, ROLE_FD_SUPERVISOR);
	queue_free(queue);
	(void)config_free(config);
	return status;
}
