/* SPDX-License-Identifier: Apache-2.0 */
/* redaction.h - the body of an answer, without the credential of its request
 *
 * Only where the binding asks for it. Encoded bodies are decoded and passed on
 * as identity; what cannot be shown to be clean is not passed on at all.
 */
#pragma once

#include "gateway/session/leg.h"
#include "src/base/attrib.h"

struct exchange;

enum { REDACTION_E_UNCLEAN = 1 }; /* fail closed: the answer ends here */

/* The final head came: begins, and corrects the head. */
WUNRES int redaction_begin(struct exchange *x, struct response *r);
/* Is there something to pass on without reading more? */
bool redaction_has_more(const struct exchange *x);
/* Passes a piece (empty: what is held) on to the front, about room bytes of it.
 * 0; REDACTION_E_UNCLEAN; -errno of the front. */
WUNRES int redaction_feed(struct exchange *x, struct span piece, size_t room);
/* The body is over; more may be left to pass on. As above. */
WUNRES int redaction_finish(struct exchange *x);
