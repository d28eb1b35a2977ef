/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the gateway is told about the insides of sandboxes
 *
 * Sent in the order of the changes. A sandbox that is being made has its
 * address there already, so that the confirmations of its policy and of its
 * registration, which come later, tell of this too; one that does not run has
 * none. Tokens go as hashes.
 */
#pragma once

#include "src/base/span.h"

struct box;
struct lifecycle;

void inside_publish(struct lifecycle *l, const struct box *b);
void inside_drop(struct lifecycle *l, struct span id);
/* Everything: to a gateway that knows nothing yet. */
void inside_publish_all(struct lifecycle *l);
