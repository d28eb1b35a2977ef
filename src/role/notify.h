/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - tells the service manager how the daemon is doing */
#pragma once

/* Sends state ("READY=1") to $NOTIFY_SOCKET, sd_notify(3). Without one, and
 * on any failure, nothing happens: the manager will notice. */
void notify_manager(const char *state);
