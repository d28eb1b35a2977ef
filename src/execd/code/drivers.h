/* SPDX-License-Identifier: Apache-2.0 */
/* drivers.h - driver.py, driver.js and driver.sh as the build embedded them */
#pragma once

#include <stddef.h>

extern const char driver_py[], driver_js[], driver_sh[];
extern const size_t driver_py_len, driver_js_len, driver_sh_len;
