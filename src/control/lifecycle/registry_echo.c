/* SPDX-License-Identifier: Apache-2.0 */
/* registry_echo.c - does a registry's refusal repeat what it was sent? */

#include "src/control/lifecycle/registry_echo.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/base64.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/control/docker/docker.h"

/* ESCAPED: room for \xNN of each byte that a message could show. */
enum { PAIR_BYTES = 64 * 1024, LEAST = 4, ESCAPED = 4 * DOCKER_MESSAGE_SIZE };

static bool ends_with_beginning(struct span message, const char *secret)
{
	size_t len = MIN(message.len, strlen(secret));

	for (; len >= LEAST; len--)
		if (!memcmp(message.ptr + message.len - len, secret, len))
			return true;
	return false;
}

/* secret: as it would be shown. */
static bool shows(struct span message, const char *secret)
{
	if (strlen(secret) < LEAST)
		return false;
	return strstr(message.ptr, secret) ||
	       ends_with_beginning(message, secret);
}

/* A cut message ends in dots. */
static bool shows_bytes(const char *message, struct span secret)
{
	static const struct span dots = SPAN_INIT("...");
	struct span text = span_str(message);
	char shown[ESCAPED];
	bool found;

	secret.len = MIN(secret.len, (size_t)DOCKER_MESSAGE_SIZE);
	(void)log_escape(secret, shown, sizeof(shown));
	found = shows(text, shown);
	if (!found && text.len > dots.len &&
	    !memcmp(text.ptr + text.len - dots.len, dots.ptr, dots.len))
		found = ends_with_beginning(
			span_of(text.ptr, text.len - dots.len), shown);
	secret_wipe(shown, sizeof(shown));
	return found;
}

/* base64 of user:password, as the registry was sent it */
static bool shows_basic(const char *message, struct span user,
			struct span password)
{
	struct buf pair = BUF_INIT(PAIR_BYTES), text = BUF_INIT(2 * PAIR_BYTES);
	bool found = false;
	size_t len;
	char *at;

	if (!buf_put(&pair, user) && !buf_put_str(&pair, ":") &&
	    !buf_put(&pair, password)) {
		len = BASE64_SIZE(buf_len(&pair));
		if (!buf_reserve(&text, len, &at)) {
			base64_encode(buf_peek(&pair), at);
			buf_commit(&text, len);
			found = shows_bytes(message, buf_peek(&text));
		}
	}
	buf_wipe(&pair);
	buf_wipe(&text);
	return found;
}

bool registry_echoes(const char *message, struct span user,
		     struct span password)
{
	return password.len && (shows_bytes(message, password) ||
				shows_basic(message, user, password));
}
