/* SPDX-License-Identifier: Apache-2.0 */
/* vault_ca.h - the node CA as two sealed records of the vault */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"

struct ca;
struct diag;
struct vault;

/* The CA of this vault, made when there is none. 0 or an error with d. */
WUNRES int vault_ca_at(struct vault *v, uint64_t now_ms, struct ca **ret,
		       struct diag *d);
/* A fresh CA in place of the one that may be there: all sandboxes must learn
 * to trust it. */
WUNRES int vault_ca_renew(struct vault *v, uint64_t now_ms, struct ca **ret,
			  struct diag *d);
