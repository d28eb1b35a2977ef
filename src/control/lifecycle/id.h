/* SPDX-License-Identifier: Apache-2.0 */
/* id.h - names and secrets of a sandbox, from the kernel's random bytes */
#pragma once

#include "src/control/lifecycle/box.h"

/* A random UUID (RFC 9562, version 4). */
void id_make(char dst[BOX_ID_SIZE]);
/* 32 bytes in base64url (RFC 4648 5), without padding. */
void token_make(char dst[BOX_TOKEN_SIZE]);
