/* SPDX-License-Identifier: Apache-2.0 */
/* vault.c - the vault role; with words behind it, the operator's tool */

#include "src/main/vault_role.h"
#include "src/main/vault_tool.h"

int main(int argc, char **argv)
{
	if (argc > 1)
		return vault_tool_run(argc, argv);
	return vault_role_run();
}
