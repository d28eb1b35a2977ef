/* SPDX-License-Identifier: Apache-2.0 */
/* bindings.h - the bindings of one scope with the values they need
 *
 * Immutable and shared between workers. An exchange that was injected keeps
 * its reference until its response has been redacted; when the last one is
 * gone the leases are wiped.
 */
#pragma once

#include <stdint.h>

#include "policy/binding.h"
#include "src/base/attrib.h"
#include "src/base/diag.h"
#include "src/base/span.h"

struct automaton;
struct bindings;
struct secret;

/* From the JSON of MSG_CONTROL_BINDINGS; no leases yet. */
WUNRES int bindings_new(struct span json, struct bindings **ret,
			struct diag *d);
struct bindings *bindings_ref(struct bindings *b);
struct bindings *bindings_unref(struct bindings *b);

const struct binding_set *bindings_set(const struct bindings *b);
uint64_t bindings_revision(const struct bindings *b);

/* Before leases are fetched: one more credential is needed, whatever the
 * bindings say. name must outlive them. */
void bindings_need(struct bindings *b, struct span name);
/* Names of the credentials, each once; SPAN_NONE after the last. */
struct span bindings_credential(const struct bindings *b, unsigned index);

/* Before it is shared: takes the value of a credential. */
void bindings_give_lease(struct bindings *b, struct span credential,
			 struct secret *value);
/* The value, or NULL when the vault had none. */
const struct secret *bindings_lease(const struct bindings *b,
				    struct span credential);

/* All leases were given: makes what finds them in answers. Costs time once per
 * set; main thread. */
void bindings_settle(struct bindings *b);
/* Finds every form of what the binding injects; NULL: its values are too short
 * to look for in forms, or too many. Borrowed. */
struct automaton *bindings_automaton(const struct bindings *b,
				     const struct binding *binding);
