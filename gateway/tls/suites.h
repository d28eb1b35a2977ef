/* SPDX-License-Identifier: Apache-2.0 */
/* suites.h - what TLS 1.3 suites we like best, on both sides
 *
 * The first is the cheapest where AES is in hardware. A client that prefers
 * ChaCha20 has no such hardware and gets what it prefers.
 */
#pragma once

#define TLS_SUITES                                       \
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:" \
	"TLS_CHACHA20_POLY1305_SHA256"
