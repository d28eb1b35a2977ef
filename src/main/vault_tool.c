/* SPDX-License-Identifier: Apache-2.0 */
/* vault_tool.c - the verbs of sallyport-vault: one table, one function each
 *
 * For a node whose daemon does not run (the lock file sees to that), and for
 * what only the owner of the key can do. Values come from stdin or a file and
 * are never printed.
 */

#include "src/main/vault_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/main/vault_ca.h"
#include "src/main/vault_words.h"
#include "vault/vault.h"

/* A verb at work. */
struct job {
	struct words words;
	struct vault *vault; /* open, but for init */
	struct diag d;
};

static struct span scope_of(const struct job *j)
{
	return j->words.sandbox ? span_str(j->words.sandbox) : SPAN("");
}

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

/* -- values -------------------------------------------------------------- */

/* One byte more than may be, so that too long is noticed; one line end is
 * cut, because editors and echo add it. */
static int value_read(const char *from, struct secret **ret, struct diag *d)
{
	CLEANUP(cleanup_secret) struct secret *s = NULL;
	const bool is_file = from && from[0] == '@';
	CLEANUP_FD int fd = is_file ? open(from + 1, O_RDONLY | O_CLOEXEC)
				    : dup(STDIN_FILENO);
	const size_t max = VAULT_CREDENTIAL_MAX + 3;
	size_t at = 0;
	ssize_t len;
	int r;

	if (fd < 0)
		return diag_set(d, 0, 0, "%s could not be opened: %s",
				is_file ? from + 1 : "stdin", err_text(errno));
	r = secret_new(max, &s);
	if (r)
		return r;
	while (at < max) {
		len = read(fd, secret_fill(s) + at, max - at);
		if (len < 0)
			return diag_set(d, 0, 0,
					"the value could not be read: %s",
					err_text(errno));
		if (!len)
			break;
		at += (size_t)len;
	}
	if (at && secret_open(s).ptr[at - 1] == '\n')
		at--;
	if (at && at < max && secret_open(s).ptr[at - 1] == '\r' &&
	    secret_open(s).ptr[at] == '\n')
		at--;
	secret_truncate(s, at);
	*ret = take_ptr(s);
	return 0;
}

static int change_commit(struct vault_txn *t, int r, struct diag *d)
{
	if (!r)
		return vault_commit(t, NULL, d);
	vault_abort(t);
	return r;
}

/* -- the verbs ----------------------------------------------------------- */

static int verb_put(struct job *j)
{
	CLEANUP(cleanup_secret) struct secret *value = NULL;
	const char *from = j->words.rest[1];
	struct vault_txn *t;
	int r;

	if (from && strcmp(from, "-") != 0 && from[0] != '@')
		return diag_set(&j->d, 0, 0,
				"a value is never taken from the command line, "
				"where every process can read it: give it on "
				"stdin, or as @FILE");
	r = value_read(from, &value, &j->d);
	if (!r)
		r = vault_begin(j->vault, scope_of(j), -1, &t, &j->d);
	if (r)
		return r;
	r = vault_put(t, VAULT_CREDENTIAL, span_str(j->words.rest[0]),
		      secret_open(value), &j->d);
	return change_commit(t, r, &j->d);
}

static int verb_rm(struct job *j)
{
	const struct span name = span_str(j->words.rest[0]);
	struct vault_txn *t;
	int r;

	if (vault_is_named(j->vault, scope_of(j), name))
		return diag_set(&j->d, 0, 0,
				"a binding still names the credential: remove "
				"or change the binding first");
	r = vault_begin(j->vault, scope_of(j), -1, &t, &j->d);
	if (r)
		return r;
	return change_commit(t, vault_remove(t, VAULT_CREDENTIAL, name, &j->d),
			     &j->d);
}

static void item_print(const struct vault_item *item, bool with_kind)
{
	char name[300], scope[300];

	log_escape(item->name, name, sizeof(name));
	if (with_kind)
		printf("%-16s %-12s ", log_escape(item->scope, scope, 300),
		       vault_kind_name(item->kind));
	printf("%8llu  %s\n", (unsigned long long)item->revision, name);
}

static void kind_print_all(struct vault *v, uint8_t kind)
{
	struct vault_item item = { .scope = SPAN(""), .name = SPAN("") };

	while (!vault_next_any(v, item.scope, kind, item.name, &item))
		item_print(&item, true);
}

static int verb_list(struct job *j)
{
	struct vault_item item = { .name = SPAN("") };
	unsigned kind;

	if (j->words.all) {
		printf("%-16s %-12s %8s  %s\n", "SANDBOX", "KIND", "REVISION",
		       "NAME");
		for (kind = 1; kind <= VAULT_KIND_MAX; kind++)
			kind_print_all(j->vault, (uint8_t)kind);
		return 0;
	}
	printf("%8s  %s\n", "REVISION", "NAME");
	while (!vault_next(j->vault, scope_of(j), VAULT_CREDENTIAL, item.name,
			   &item))
		item_print(&item, false);
	return 0;
}

static int verb_rotate_kek(struct job *j)
{
	struct kek_source *new = &j->words.new_kek;
	int r;

	if (j->words.rest[0]) {
		if (new->key_file)
			return diag_set(&j->d, 0, 0,
					"the new key file is given twice");
		new->key_file = j->words.rest[0];
	}
	r = vault_rotate_kek(j->vault, new, &j->d);
	if (!r)
		printf("The vault opens with the new key only. Name it in the "
		       "configuration before the daemon starts.\n");
	return r;
}

static int verb_rotate_dek(struct job *j)
{
	int r = vault_rotate_dek(j->vault, &j->d);

	if (!r)
		printf("Every record was sealed again under a new data key.\n");
	return r;
}

static void finding_print(void *ctx, const struct vault_finding *f)
{
	(void)ctx;
	printf("%s: %s\n", vault_error_name(f->error), f->text);
}

static void counts_print(const struct vault_counts *c)
{
	printf("%llu records in %llu scopes, %llu findings\n",
	       (unsigned long long)c->records, (unsigned long long)c->scopes,
	       (unsigned long long)c->findings);
}

static int verb_verify(struct job *j)
{
	struct vault_counts counts;
	int r = vault_verify(j->vault, finding_print, NULL, &counts);

	if (r)
		return r;
	counts_print(&counts);
	return counts.findings ? diag_set(&j->d, 0, 0,
					  "the vault is damaged, see above")
			       : 0;
}

static int verb_repair(struct job *j)
{
	struct vault_counts counts;
	int r;

	if (!j->words.yes)
		return diag_set(&j->d, 0, 0,
				"repair takes what is in the store for the "
				"truth, even if somebody put older records "
				"back, and drops what does not open: look at "
				"\"verify\" first, then add --yes");
	r = vault_repair(j->vault, finding_print, NULL, &counts, &j->d);
	if (!r)
		counts_print(&counts);
	return r;
}

static int verb_ca(struct job *j)
{
	CLEANUP(buf_fini) struct buf pem = BUF_INIT(2 * CERT_DER_MAX);
	struct ca *ca;
	int r;

	r = j->words.renew
		    ? vault_ca_renew(j->vault, clock_wall_ms(), &ca, &j->d)
		    : vault_ca_at(j->vault, clock_wall_ms(), &ca, &j->d);
	if (r)
		return r;
	r = cert_der_to_pem(ca_cert_der(ca), &pem);
	ca_free(ca);
	if (!r)
		printf("%.*s", SPAN_FMT(buf_peek(&pem)));
	return r;
}

/* Runs without an open vault, and opens it to make the CA. */
static int verb_init(struct job *j)
{
	const struct vault_options o = { .state_dir = j->words.state_dir,
					 .kek = j->words.kek };
	struct ca *ca;
	int r = 0;

	if (j->words.generate_key && !j->words.kek.key_file)
		return diag_set(&j->d, 0, 0,
				"--generate-key makes a key file, but the "
				"vault's key is not one");
	if (j->words.generate_key)
		r = kek_file_new(j->words.kek.key_file, &j->d);
	if (!r)
		r = vault_init(&o, &j->d);
	if (!r)
		r = vault_open(&o, &j->vault, &j->d);
	if (!r)
		r = vault_ca_at(j->vault, clock_wall_ms(), &ca, &j->d);
	if (r)
		return r;
	ca_free(ca);
	printf("Made a vault in %s/vault.\n", o.state_dir);
	return 0;
}

/* -- the table ----------------------------------------------------------- */

static const struct verb {
	const char *name;
	const char *takes;
	int min, max; /* words behind it */
	enum { OPENS, OPENS_DAMAGED, OPENS_NOTHING } opens;
	int (*run)(struct job *j);
	const char *help;
} verbs[] = {
	{ "init", "", 0, 0, OPENS_NOTHING, verb_init,
	  "make an empty vault and the node CA; with --generate-key the key "
	  "file too" },
	{ "put", "NAME [@FILE]", 1, 2, OPENS, verb_put,
	  "set a credential to what stdin or FILE holds" },
	{ "list", "", 0, 0, OPENS, verb_list,
	  "names and revisions of credentials; with --all of every record" },
	{ "rm", "NAME", 1, 1, OPENS, verb_rm, "remove a credential" },
	{ "rotate-kek", "[NEWKEYFILE]", 0, 1, OPENS, verb_rotate_kek,
	  "wrap the data key with another key (--new-...)" },
	{ "rotate-dek", "", 0, 0, OPENS, verb_rotate_dek,
	  "make a new data key, seal every record again" },
	{ "verify", "", 0, 0, OPENS_DAMAGED, verb_verify,
	  "open every record; name what is damaged or rolled back" },
	{ "repair", "", 0, 0, OPENS_DAMAGED, verb_repair,
	  "accept the store as it is, drop what does not open (--yes)" },
	{ "ca", "", 0, 0, OPENS, verb_ca,
	  "print the node CA's certificate; with --renew of a new one" },
};

static void usage_print(FILE *to)
{
	size_t i;

	fprintf(to, "usage: sallyport-vault VERB [OPTION ...]\n\n");
	for (i = 0; i < ARRAY_LEN(verbs); i++)
		fprintf(to, "  %-11s%-14s %s\n", verbs[i].name, verbs[i].takes,
			verbs[i].help);
	fprintf(to,
		"\n"
		"Which vault, and its key:\n"
		"  --config FILE            the daemon's configuration\n"
		"                           (/etc/sallyport/sallyport.json)\n"
		"  --state DIR              the state directory\n"
		"  --key-file FILE          32 bytes or 64 hex digits, mode "
		"0600\n"
		"  --passphrase-file FILE   a passphrase, mode 0600\n"
		"  --credential NAME        a systemd credential\n"
		"Further:\n"
		"  --sandbox ID             credentials of this sandbox; else "
		"the node's\n"
		"  --new-key-file, --new-passphrase-file, --new-credential\n"
		"                           for rotate-kek\n"
		"\n"
		"While the daemon runs it holds the vault: use \"sallyport "
		"vault\" then.\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static const struct verb *verb_find(const char *name)
{
	size_t i;

	for (i = 0; name && i < ARRAY_LEN(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int usage_fail(const char *text)
{
	fprintf(stderr, "sallyport-vault: %s\n", text);
	fprintf(stderr, "Try \"sallyport-vault --help\".\n");
	return TOOL_USAGE;
}

/* A verb that is not known, or known and used wrongly. */
static int words_check(const struct words *w, const struct verb *verb)
{
	const char *names[ARRAY_LEN(verbs) + 1] = { NULL };
	char text[256];
	const char *near;
	size_t i;

	if (verb && w->rest_count >= verb->min && w->rest_count <= verb->max)
		return 0;
	if (verb) {
		(void)snprintf(text, sizeof(text), "%s takes: %s", verb->name,
			       *verb->takes ? verb->takes : "no words");
		return usage_fail(text);
	}
	if (!w->verb)
		return usage_fail("expected a verb");
	for (i = 0; i < ARRAY_LEN(verbs); i++)
		names[i] = verbs[i].name;
	near = diag_suggest(w->verb, names);
	(void)snprintf(text, sizeof(text), "unknown verb \"%.64s\"%s%s%s",
		       w->verb, near ? ", did you mean \"" : "",
		       near ? near : "", near ? "\"?" : "");
	return usage_fail(text);
}

static int job_run(struct job *j, const struct verb *verb)
{
	struct vault_options o;
	int r;

	r = words_complete(&j->words, &j->d);
	if (r)
		return r;
	o = (struct vault_options){
		.state_dir = j->words.state_dir,
		.kek = j->words.kek,
		.for_repair = verb->opens == OPENS_DAMAGED,
	};
	if (verb->opens != OPENS_NOTHING)
		r = vault_open(&o, &j->vault, &j->d);
	return r ? r : verb->run(j);
}

int vault_tool_run(int argc, char **argv)
{
	struct job j = { 0 };
	const struct verb *verb;
	char text[1024];
	int r;

	secret_process_init();
	log_init("sallyport-vault", LOG_WARN);
	if (words_parse(argc, argv, &j.words, &j.d))
		return usage_fail(j.d.msg);
	if (j.words.help) {
		usage_print(stdout);
		return TOOL_FINE;
	}
	verb = verb_find(j.words.verb);
	r = words_check(&j.words, verb);
	if (r)
		return r;

	r = job_run(&j, verb);
	j.vault = vault_close(j.vault);
	words_fini(&j.words);
	if (fflush(stdout) != 0 && !r)
		r = diag_set(&j.d, 0, 0, "stdout could not be written: %s",
			     err_text(errno));
	if (!r)
		return TOOL_FINE;
	fprintf(stderr, "sallyport-vault: %s\n",
		diag_is_set(&j.d) ? diag_text(&j.d, text, sizeof(text))
				  : err_text(r));
	return TOOL_FAILED;
}
