/* SPDX-License-Identifier: Apache-2.0 */
/* id.h - names of executions, sessions, terminals: 128 random bits in
 * hexadecimal */
#pragma once

enum { ID_SIZE = 33 };

void id_draw(char dst[ID_SIZE]);
