/* SPDX-License-Identifier: Apache-2.0 */
/* description.h - docs/openapi/lifecycle.yaml, as the build has embedded it */
#pragma once

#include <stddef.h>

extern const char lifecycle_yaml[];
extern const size_t lifecycle_yaml_len;
