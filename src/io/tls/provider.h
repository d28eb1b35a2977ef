/* SPDX-License-Identifier: Apache-2.0 */
/* provider.h - the key schedule of TLS 1.3 for OpenSSL's handshakes
 *
 * OpenSSL lets providers bring implementations of an algorithm (provider(7)).
 * This one brings TLS13-KDF only (EVP_KDF-TLS13_KDF(7)), in a quarter of the
 * time of OpenSSL 3.0's own, of which a handshake asks some twenty times. And
 * it is the place where the secrets of a connection's traffic come by; the
 * other one that OpenSSL has, its log of keys, prints five of them as text each
 * time.
 */
#pragma once

#include "src/base/span.h"

struct tls_handover;

/* Contexts made with this as their properties use it; all else stays OpenSSL's
 * default. */
#define TLS_PROVIDER_QUERY "?provider=sallyport"
/* Before the first such context. Any number of times, from any thread. */
void tls_provider_init(void);

/* From here on this thread's secrets of application traffic are told to
 * tls_handover_hear(); NULL: to nobody. */
void tls_provider_tell(struct tls_handover *h);
