/* fuzz: role */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config.c - any text as the configuration file */

#include <stdint.h>

#include "src/base/err.h"
#include "src/role/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = NULL;
	struct diag diag = { 0 };

	if (config_parse(span_of(data, size), &config, &diag)) {
		must(!config && diag_is_set(&diag));
		return 0;
	}
	must(!diag_is_set(&diag));
	must(config->admin_socket[0] == '/' && config->interfaces.count > 0);
	config_free(config);
	return 0;
}
