/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - which header fields go on, whatever version of HTTP is spoken
 *
 * One place decides; the emitters of HTTP/1.1 and HTTP/2 ask it. What only one
 * version needs (Upgrade, TE, Host) they keep or add themselves.
 */
#pragma once

#include <stdbool.h>

#include "gateway/pipeline/request.h"

/* Does a field of the request go on to the origin? Not what is of one hop (RFC
 * 9110 7.6.1: by its name, or named by Connection), what frames the message,
 * what injection sets, or what must not be asked for. */
bool field_goes_on(const struct request *req, const struct headers *all,
		   const struct header *h);
/* Does a field of the answer come back to the client? Not what is of one hop,
 * nor Alt-Svc, which would lead around us. */
bool field_comes_back(const struct headers *all, const struct header *h);
/* Is one of the protocols of an Upgrade HTTP again (h2c), or TLS with HTTP in
 * it (RFC 2817)? Requests behind it would be decided by nobody. */
bool field_upgrades_to_http(struct span protocols);
