/* SPDX-License-Identifier: Apache-2.0 */
/* kek.c - read a key or a passphrase from a file that only its owner can read
 *
 * The file is opened once and judged by that descriptor, so what was checked
 * is what is read. Bytes go straight into a struct secret. An error names the
 * file and what is wrong with it, and never repeats a byte of it.
 */

#include "vault/kek.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/base/chars.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/secret.h"
#include "vault/envelope.h"

enum { KEK_HEX_SIZE = 2 * KEK_SIZE, SCRYPT_BLOCK = 8, SCRYPT_PARALLEL = 1 };

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

static bool is_passphrase(const struct kek_source *source)
{
	return source->passphrase_file != NULL;
}

void kek_params_new(const struct kek_source *source, struct kek_params *ret)
{
	*ret = (struct kek_params){ .method = KEK_RAW };
	if (!is_passphrase(source))
		return;
	ret->method = KEK_SCRYPT;
	ret->log2_n = KEK_SCRYPT_DEFAULT;
	ret->block = SCRYPT_BLOCK;
	ret->parallel = SCRYPT_PARALLEL;
	envelope_random(ret->salt, sizeof(ret->salt));
}

bool kek_params_are_sane(const struct kek_params *p)
{
	if (p->method == KEK_RAW)
		return true;
	return p->method == KEK_SCRYPT && p->log2_n >= KEK_SCRYPT_MIN &&
	       p->log2_n <= KEK_SCRYPT_MAX && p->block == SCRYPT_BLOCK &&
	       p->parallel == SCRYPT_PARALLEL;
}

static int mode_check(int fd, const char *path, struct diag *d)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return diag_set(d, 0, 0, "%s could not be read: %s", path,
				err_text(errno));
	if (!S_ISREG(st.st_mode))
		return diag_set(d, 0, 0, "%s is not a regular file", path);
	if (st.st_mode & 077)
		return diag_set(d, 0, 0,
				"%s has mode %04o, expected 0600 or 0400: a "
				"key that others may read is no key",
				path, (unsigned)st.st_mode & 07777);
	return 0;
}

/* At most max bytes and one more, so that too long is seen. */
static int file_read(const char *path, size_t max, struct secret **ret,
		     struct diag *d)
{
	CLEANUP(cleanup_secret) struct secret *s = NULL;
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t at = 0;
	ssize_t len;
	int r;

	if (fd < 0)
		return diag_set(d, 0, 0, "%s could not be opened: %s", path,
				err_text(errno));
	r = mode_check(fd, path, d);
	if (!r)
		r = secret_new(max + 1, &s);
	if (r)
		return r;
	while (at < max + 1) {
		len = read(fd, secret_fill(s) + at, max + 1 - at);
		if (len < 0)
			return diag_set(d, 0, 0, "%s could not be read: %s",
					path, err_text(errno));
		if (!len)
			break;
		at += (size_t)len;
	}
	secret_truncate(s, at);
	*ret = take_ptr(s);
	return 0;
}

/* Cuts one line end. */
static void line_end_cut(struct secret *s)
{
	struct span text = secret_open(s);
	size_t len = text.len;

	if (len && text.ptr[len - 1] == '\n')
		len--;
	if (len < text.len && len && text.ptr[len - 1] == '\r')
		len--;
	secret_truncate(s, len);
}

/* In place. */
static bool hex_decode(struct secret *s)
{
	char *bytes = secret_fill(s);
	int high, low;
	size_t i;

	for (i = 0; i < KEK_SIZE; i++) {
		high = char_hex(bytes[2 * i]);
		low = char_hex(bytes[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		bytes[i] = (char)(high << 4 | low);
	}
	secret_truncate(s, KEK_SIZE);
	return true;
}

static int raw_read(const char *path, struct secret **ret, struct diag *d)
{
	CLEANUP(cleanup_secret) struct secret *s = NULL;
	size_t len;
	int r;

	r = file_read(path, KEK_HEX_SIZE + 2, &s, d);
	if (r)
		return r;
	len = secret_len(s);
	if (len != KEK_SIZE) {
		line_end_cut(s);
		if (secret_len(s) != KEK_HEX_SIZE || !hex_decode(s))
			return diag_set(d, 0, 0,
					"%s holds no key: found %zu%s bytes, "
					"expected 32 bytes or 64 hex digits",
					path, MIN(len, (size_t)KEK_HEX_SIZE),
					len > KEK_HEX_SIZE ? " or more" : "");
	}
	*ret = take_ptr(s);
	return 0;
}

static int passphrase_read(const char *path, const struct kek_params *params,
			   struct secret **ret, struct diag *d)
{
	CLEANUP(cleanup_secret) struct secret *s = NULL;
	int r;

	r = file_read(path, KEK_PASSPHRASE_MAX, &s, d);
	if (r)
		return r;
	line_end_cut(s);
	if (secret_len(s) < KEK_PASSPHRASE_MIN ||
	    secret_len(s) > KEK_PASSPHRASE_MAX)
		return diag_set(d, 0, 0,
				"the passphrase in %s is %s, expected %d to "
				"%d bytes",
				path,
				secret_len(s) < KEK_PASSPHRASE_MIN ? "too short"
								   : "too long",
				KEK_PASSPHRASE_MIN, KEK_PASSPHRASE_MAX);
	r = envelope_scrypt(s, span_of(params->salt, sizeof(params->salt)),
			    params->log2_n, params->block, params->parallel,
			    ret);
	if (r)
		(void)diag_set(
			d, 0, 0, "scrypt failed: it needs %llu MiB of memory",
			(128ULL * params->block << params->log2_n) >> 20);
	return r;
}

static int credential_read(const char *name, struct secret **ret,
			   struct diag *d)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	char path[4096];

	if (!folder || !*folder)
		return diag_set(d, 0, 0,
				"the key is the credential \"%s\", but "
				"CREDENTIALS_DIRECTORY is not set: expected a "
				"start by systemd with LoadCredential=%s:...",
				name, name);
	if (strchr(name, '/') || name[0] == '.' ||
	    snprintf(path, sizeof(path), "%s/%s", folder, name) >=
		    (int)sizeof(path))
		return diag_set(d, 0, 0,
				"found \"%s\", expected the plain name of a "
				"credential",
				name);
	return raw_read(path, ret, d);
}

int kek_read(const struct kek_source *source, const struct kek_params *params,
	     struct secret **ret, struct diag *d)
{
	int given = !!source->key_file + !!source->credential +
		    !!source->passphrase_file;

	if (given != 1)
		return diag_set(d, 0, 0,
				"found %s source of the vault's key, expected "
				"exactly one of: key file, credential, "
				"passphrase file",
				given ? "more than one" : "no");
	if (is_passphrase(source) != (params->method == KEK_SCRYPT))
		return diag_set(d, 0, 0,
				"the vault is sealed with a %s, but a %s was "
				"given",
				is_passphrase(source) ? "key" : "passphrase",
				is_passphrase(source) ? "passphrase" : "key");
	if (source->key_file)
		return raw_read(source->key_file, ret, d);
	if (source->credential)
		return credential_read(source->credential, ret, d);
	return passphrase_read(source->passphrase_file, params, ret, d);
}

int kek_file_new(const char *path, struct diag *d)
{
	CLEANUP_FD int fd = -1;
	char key[KEK_SIZE];
	ssize_t len;
	int error;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	error = errno;
	if (fd < 0) {
		(void)diag_set(d, 0, 0, "%s could not be made: %s", path,
			       err_text(error));
		return -error;
	}
	envelope_random(key, sizeof(key));
	len = write(fd, key, sizeof(key));
	error = errno;
	secret_wipe(key, sizeof(key));
	if (len != KEK_SIZE || fsync(fd) != 0) {
		(void)unlink(path);
		return diag_set(d, 0, 0, "%s could not be written: %s", path,
				err_text(error));
	}
	return 0;
}
