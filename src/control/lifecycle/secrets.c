/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - the key files of the lifecycle API */

#include "src/control/lifecycle/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certs/signed_keys.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/role/config.h"

void lifecycle_secrets_init(struct lifecycle_secrets *s)
{
	memset(s, 0, sizeof(*s));
	arena_init(&s->arena, KEY_FILE_MAX);
	buf_init(&s->routes_text, KEY_FILE_MAX);
}

void lifecycle_secrets_fini(struct lifecycle_secrets *s)
{
	buf_wipe(&s->routes_text);
	arena_wipe(&s->arena);
	secret_wipe(s, sizeof(*s));
	lifecycle_secrets_init(s);
}

int lifecycle_key_parse(struct span text, struct lifecycle_secrets *s,
			struct diag *d)
{
	struct span key = span_cut(&text, '\n');
	size_t i;

	if (span_ends(key, SPAN("\r")))
		key.len--;
	if (key.len < API_KEY_MIN || key.len > API_KEY_MAX)
		return diag_set(d, 1, 1,
				"found a key of %zu characters, expected %d to "
				"%d",
				key.len, API_KEY_MIN, API_KEY_MAX);
	for (i = 0; i < key.len; i++)
		if (key.ptr[i] <= ' ' || key.ptr[i] > '~')
			return diag_set(d, 1, (unsigned)i + 1,
					"expected a key of printable ASCII "
					"without spaces");
	token_hash(key, s->key_hash);
	s->has_key = true;
	return 0;
}

bool lifecycle_key_is(const struct lifecycle_secrets *s, struct span text)
{
	unsigned char hash[TOKEN_HASH_SIZE];

	token_hash(text, hash);
	return secret_eq(span_of(hash, sizeof(hash)),
			 span_of(s->key_hash, sizeof(s->key_hash))) &&
	       s->has_key;
}

/* -- files ---------------------------------------------------------------- */

static int file_read(const char *path, struct buf *out, struct diag *d)
{
	int fd CLEANUP_FD = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n = 1;
	char *at;

	if (fd < 0 || fstat(fd, &st) != 0)
		return diag_set(d, 0, 0, "%s: %s", path, err_text(-errno));
	if (!S_ISREG(st.st_mode) || st.st_size >= KEY_FILE_MAX)
		return diag_set(d, 0, 0,
				"%s: expected a file of at most %d "
				"bytes",
				path, KEY_FILE_MAX - 1);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		log_warn("%s can be read by others than its owner", path);
	while (n > 0) {
		if (buf_reserve(out, 4096, &at))
			return diag_set(d, 0, 0,
					"%s: it grows while it is read", path);
		n = read(fd, at, 4096);
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
	if (n < 0)
		return diag_set(d, 0, 0, "%s: %s", path, err_text(-errno));
	return 0;
}

static int key_load(const char *path, struct lifecycle_secrets *s,
		    struct diag *d)
{
	struct buf text = BUF_INIT(KEY_FILE_MAX + 4096);
	struct diag inner = { 0 };
	int r;

	r = file_read(path, &text, d);
	if (!r && lifecycle_key_parse(buf_peek(&text), s, &inner))
		r = diag_set(d, inner.line, inner.col, "%s: %s", path,
			     inner.msg);
	buf_wipe(&text);
	return r;
}

static int routes_load(const char *path, struct lifecycle_secrets *s,
		       struct diag *d)
{
	struct diag inner = { 0 };
	int r;

	s->routes_text.max = KEY_FILE_MAX + 4096;
	r = file_read(path, &s->routes_text, d);
	if (!r && signed_keys_parse(buf_peek(&s->routes_text), &s->arena,
				    &s->routes, &inner))
		r = diag_set(d, inner.line, inner.col, "%s: line %u: %s", path,
			     inner.line, inner.msg);
	return r;
}

int lifecycle_secrets_load(const struct config *config,
			   struct lifecycle_secrets *s, struct diag *d)
{
	int r = 0;

	if (config->lifecycle_key_file[0])
		r = key_load(config->lifecycle_key_file, s, d);
	if (!r && config->ingress_keys_file[0])
		r = routes_load(config->ingress_keys_file, s, d);
	return r;
}
