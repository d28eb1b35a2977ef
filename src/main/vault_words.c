/* SPDX-License-Identifier: Apache-2.0 */
/* vault_words.c - parse the command line, complete it from the configuration */

#include "src/main/vault_words.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/role/config.h"
#include "src/role/home.h"

#define CONFIG_FILE "/etc/sallyport/sallyport.json"

static const struct option {
	const char *name;
	size_t text_at; /* of a const char *; 0: it takes no word */
	size_t flag_at; /* of a bool */
} options[] = {
	{ "--config", offsetof(struct words, config), 0 },
	{ "--state", offsetof(struct words, state_dir), 0 },
	{ "--sandbox", offsetof(struct words, sandbox), 0 },
	{ "--key-file", offsetof(struct words, kek.key_file), 0 },
	{ "--credential", offsetof(struct words, kek.credential), 0 },
	{ "--passphrase-file", offsetof(struct words, kek.passphrase_file), 0 },
	{ "--new-key-file", offsetof(struct words, new_kek.key_file), 0 },
	{ "--new-credential", offsetof(struct words, new_kek.credential), 0 },
	{ "--new-passphrase-file",
	  offsetof(struct words, new_kek.passphrase_file), 0 },
	{ "--all", 0, offsetof(struct words, all) },
	{ "--generate-key", 0, offsetof(struct words, generate_key) },
	{ "--renew", 0, offsetof(struct words, renew) },
	{ "--yes", 0, offsetof(struct words, yes) },
	{ "--help", 0, offsetof(struct words, help) },
	{ "-h", 0, offsetof(struct words, help) },
};

static int unknown(const char *word, struct diag *d)
{
	const char *names[ARRAY_LEN(options) + 1] = { NULL };
	const char *near;
	size_t i;

	for (i = 0; i < ARRAY_LEN(options); i++)
		names[i] = options[i].name;
	near = diag_suggest(word, names);
	(void)diag_set(d, 0, 0, "unknown option \"%s\"%s%s%s", word,
		       near ? ", did you mean \"" : "", near ? near : "",
		       near ? "\"?" : "");
	return WORDS_E_USAGE;
}

/* Consumes argv[*at], and its word. */
static int option_take(char **argv, int *at, struct words *w, struct diag *d)
{
	const char *word = argv[(*at)++];
	const struct option *o = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(options) && !o; i++)
		if (!strcmp(options[i].name, word))
			o = &options[i];
	if (!o)
		return unknown(word, d);
	if (!o->text_at) {
		*(bool *)((char *)w + o->flag_at) = true;
		return 0;
	}
	if (!argv[*at]) {
		(void)diag_set(d, 0, 0, "%s wants a word behind it", word);
		return WORDS_E_USAGE;
	}
	*(const char **)((char *)w + o->text_at) = argv[(*at)++];
	return 0;
}

int words_parse(int argc, char **argv, struct words *ret, struct diag *d)
{
	int at = 1, r = 0;

	*ret = (struct words){ 0 };
	while (at < argc && !r) {
		if (argv[at][0] == '-' && argv[at][1]) {
			r = option_take(argv, &at, ret, d);
		} else if (!ret->verb) {
			ret->verb = argv[at++];
		} else if (ret->rest_count < WORDS_MAX) {
			ret->rest[ret->rest_count++] = argv[at++];
		} else {
			/* not repeated: it may be a value in the wrong place */
			(void)diag_set(d, 0, 0,
				       "there are more words than \"%s\" takes",
				       ret->verb);
			r = WORDS_E_USAGE;
		}
	}
	return r;
}

static bool kek_is_given(const struct kek_source *k)
{
	return k->key_file || k->credential || k->passphrase_file;
}

static const char *none_if_empty(const char *s)
{
	return s && *s ? s : NULL;
}

static int config_read(const char *path, struct config **ret, struct diag *d)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(CONFIG_TEXT_MAX + 1);
	int r;

	r = home_read(path, CONFIG_TEXT_MAX, &text, d);
	if (!r)
		r = config_parse(buf_peek(&text), ret, d);
	if (r && !d->file[0])
		(void)snprintf(d->file, sizeof(d->file), "%s", path);
	return r;
}

int words_complete(struct words *w, struct diag *d)
{
	int r;

	if (w->state_dir && kek_is_given(&w->kek))
		return 0;
	r = config_read(w->config ? w->config : CONFIG_FILE, &w->owned, d);
	if (r)
		return r;
	if (!w->state_dir)
		w->state_dir = w->owned->state_dir;
	if (kek_is_given(&w->kek))
		return 0;
	w->kek = (struct kek_source){
		.key_file = none_if_empty(w->owned->vault_key_file),
		.credential = none_if_empty(w->owned->vault_credential),
		.passphrase_file =
			none_if_empty(w->owned->vault_passphrase_file),
	};
	return 0;
}

void words_fini(struct words *w)
{
	w->owned = w->owned ? config_free(w->owned) : NULL;
}
