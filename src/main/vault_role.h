/* SPDX-License-Identifier: Apache-2.0 */
/* vault_role.h - the vault role's process */
#pragma once

/* Runs as started by the supervisor; returns the exit status. */
int vault_role_run(void);
