/* SPDX-License-Identifier: Apache-2.0 */
/* id.c - random identifiers and tokens as text */

#include "src/control/lifecycle/id.h"

#include <stdio.h>
#include <sys/random.h>

#include "src/base/base64.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum { TOKEN_BYTES = 32 };

void id_make(char dst[BOX_ID_SIZE])
{
	uint8_t b[16];
	size_t i, at = 0;

	must(getrandom(b, sizeof(b), 0) == (ssize_t)sizeof(b));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	for (i = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			dst[at++] = '-';
		(void)snprintf(dst + at, 3, "%02x", b[i]);
		at += 2;
	}
}

void token_make(char dst[BOX_TOKEN_SIZE])
{
	char text[BASE64_SIZE(TOKEN_BYTES)];
	uint8_t b[TOKEN_BYTES];
	size_t i;

	must(getrandom(b, sizeof(b), 0) == (ssize_t)sizeof(b));
	base64_encode(span_of(b, sizeof(b)), text);
	for (i = 0; i < sizeof(text) && text[i] != '='; i++)
		dst[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
	dst[i] = '\0';
	secret_wipe(b, sizeof(b));
	secret_wipe(text, sizeof(text));
}
