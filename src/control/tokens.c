/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - admin tokens by name, looked up by hash */

#include "src/control/tokens.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/text/json.h"

#define TOKEN_PREFIX "sallyport_"

enum { TOKEN_RANDOM = 32 };

static void hex_put(const unsigned char *bytes, size_t len, char *dst)
{
	size_t i;

	for (i = 0; i < len; i++)
		(void)snprintf(dst + 2 * i, 3, "%02x", bytes[i]);
}

static bool hex_read(struct span text, unsigned char *dst, size_t len)
{
	unsigned byte;
	size_t i;
	char pair[3] = { 0 };

	if (text.len != 2 * len)
		return false;
	for (i = 0; i < len; i++) {
		memcpy(pair, text.ptr + 2 * i, 2);
		if (strspn(pair, "0123456789abcdef") != 2 ||
		    sscanf(pair, "%2x", &byte) != 1)
			return false;
		dst[i] = (unsigned char)byte;
	}
	return true;
}

void token_hash(struct span text, unsigned char hash[TOKEN_HASH_SIZE])
{
	must(SHA256((const unsigned char *)text.ptr, text.len, hash));
}

struct token *token_free(struct token *t)
{
	if (!t)
		return NULL;
	free(t->name);
	free(t);
	return NULL;
}

static struct token *token_named(struct span name)
{
	struct token *t = must_alloc(sizeof(*t));

	t->name = must_alloc(name.len + 1);
	memcpy(t->name, name.ptr, name.len);
	return t;
}

struct token *token_new(struct span name, char text[TOKEN_TEXT_SIZE])
{
	static const size_t prefix = sizeof(TOKEN_PREFIX) - 1;
	unsigned char random[TOKEN_RANDOM];
	struct token *t = token_named(name);

	must(getrandom(random, sizeof(random), 0) == sizeof(random));
	memcpy(text, TOKEN_PREFIX, prefix);
	hex_put(random, sizeof(random), text + prefix);
	secret_wipe(random, sizeof(random));
	token_hash(span_str(text), t->hash);
	t->created_ms = clock_wall_ms();
	return t;
}

int token_emit_record(const struct token *t, struct buf *out)
{
	char hex[2 * TOKEN_HASH_SIZE + 1];
	struct json_out o;

	hex_put(t->hash, sizeof(t->hash), hex);
	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "sha256", hex);
	json_put_u64(&o, "created", t->created_ms);
	json_close(&o);
	return json_done(&o);
}

int token_parse_record(struct span name, struct span text, struct token **ret)
{
	struct json *j CLEANUP_JSON = NULL;
	struct token *t;

	if (json_parse(text, &j, NULL))
		return -EINVAL;
	t = token_named(name);
	if (!hex_read(json_text(json_find(j, "sha256")), t->hash,
		      sizeof(t->hash)) ||
	    !json_u64(json_find(j, "created"), &t->created_ms)) {
		token_free(t);
		return -EINVAL;
	}
	*ret = t;
	return 0;
}

void token_emit(struct json_out *o, const char *member, const struct token *t)
{
	char when[CLOCK_TEXT_SIZE];

	clock_text(t->created_ms, when, sizeof(when));
	json_open_object(o, member);
	json_put_str(o, "name", t->name);
	json_put_str(o, "created", when);
	json_close(o);
}

void tokens_init(struct tokens *all)
{
	map_init(&all->by_name);
}

void tokens_fini(struct tokens *all)
{
	struct span key;
	size_t cursor = 0;
	struct token *t;

	while ((t = map_next(&all->by_name, &cursor, &key)))
		token_free(t);
	map_fini(&all->by_name);
}

struct token *tokens_find(const struct tokens *all, struct span name)
{
	return map_find(&all->by_name, name);
}

void tokens_put(struct tokens *all, struct token *t)
{
	token_free(map_set(&all->by_name, span_str(t->name), t));
}

void tokens_remove(struct tokens *all, struct span name)
{
	token_free(map_take(&all->by_name, name));
}

bool tokens_have(const struct tokens *all, struct span text)
{
	unsigned char hash[TOKEN_HASH_SIZE];
	const struct token *t;
	struct span key;
	size_t cursor = 0;
	bool found = false;

	token_hash(text, hash);
	while ((t = map_next(&all->by_name, &cursor, &key)))
		found |= secret_eq(span_of(hash, sizeof(hash)),
				   span_of(t->hash, sizeof(t->hash)));
	return found;
}
