/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c - what the daemon is told: flags, environment, secrets */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/config.h"

enum { WORDS_MAX = 16 };

/* A command line that may be written to, as a real one. */
struct line {
	char *words[WORDS_MAX + 2];
	int count;
};

static void line_make(struct line *l, const char *const *words)
{
	*l = (struct line){ .count = 1 };
	l->words[0] = must_strdup("sallyport-execd");
	for (; words && *words; words++)
		l->words[l->count++] = must_strdup(*words);
}

static void line_free(struct line *l)
{
	for (int i = 0; i < l->count; i++)
		free(l->words[i]);
}

static const char *const variables[] = {
	"EXECD_LISTEN",
	"EXECD_ACCESS_TOKEN",
	"JUPYTER_HOST",
	"JUPYTER_TOKEN",
	"EXECD_JUPYTER_IDLE_POLL_INTERVAL",
	"EXECD_SHELL",
	"EXECD_INIT",
	"EXECD_API_GRACE_SHUTDOWN",
};

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	return 0;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Texts of s that point into the words are not looked at behind this. */
static int reads(const char *const *words, struct execd_settings *s,
		 struct diag *d)
{
	struct line l;
	int r;

	*d = (struct diag){ 0 };
	line_make(&l, words);
	r = config_read(l.count, l.words, s, d);
	line_free(&l);
	return r;
}

static void refuses(const char *const *words, const char *part)
{
	struct execd_settings s;
	struct diag d;

	assert_int_equal(reads(words, &s, &d), -EINVAL);
	if (!strstr(d.msg, part))
		fail_msg("no \"%s\" in: %s", part, d.msg);
}

static void config__has_defaults(void **state)
{
	struct execd_settings s;
	char text[ADDR_TEXT_SIZE];
	struct diag d;

	(void)state;
	assert_int_equal(reads(NULL, &s, &d), 0);
	assert_string_equal(
		addr_text_port(&s.config.listen, text, sizeof(text)),
		"[::]:44772");
	assert_null(s.config.token);
	assert_null(s.config.jupyter_host);
	assert_null(s.config.entrypoint);
	assert_false(s.config.init);
	assert_int_equal(s.config.jupyter_poll_ms, 100);
	assert_int_equal(s.config.runtime_port, 44771);
	assert_int_equal(s.log_level, LOG_INFO);
}

static void config__takes_flags_in_every_spelling(void **state)
{
	const char *const *rows[] = {
		WORDS("--listen", "127.0.0.1:99", "--access-token", "tok"),
		WORDS("--listen=127.0.0.1:99", "--access-token=tok"),
		WORDS("-listen", "127.0.0.1", "-port=99", "-access-token",
		      "tok"),
	};
	struct execd_settings s;
	char text[ADDR_TEXT_SIZE];
	struct diag d;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (reads(rows[i], &s, &d))
			fail_msg("%zu: %s", i, d.msg);
		addr_text_port(&s.config.listen, text, sizeof(text));
		assert_string_equal(text, "127.0.0.1:99");
		assert_string_equal(s.config.token, "tok");
	}
}

static void config__flags_win_over_the_environment(void **state)
{
	struct execd_settings s;
	struct diag d;

	(void)state;
	setenv("EXECD_ACCESS_TOKEN", "of-the-environment", 1);
	setenv("EXECD_JUPYTER_IDLE_POLL_INTERVAL", "2s", 1);
	setenv("EXECD_INIT", "1", 1);
	assert_int_equal(
		reads(WORDS("--jupyter-idle-poll-interval", "250ms"), &s, &d),
		0);
	assert_string_equal(s.config.token, "of-the-environment");
	assert_int_equal(s.config.jupyter_poll_ms, 250);
	assert_true(s.config.init);

	setenv("EXECD_ACCESS_TOKEN", "of-the-environment", 1);
	assert_int_equal(
		reads(WORDS("--access-token", "flag", "--init=false"), &s, &d),
		0);
	assert_string_equal(s.config.token, "flag");
	assert_false(s.config.init);

	/* set to nothing is not set */
	setenv("EXECD_ACCESS_TOKEN", "", 1);
	setenv("JUPYTER_HOST", "", 1);
	assert_int_equal(reads(NULL, &s, &d), 0);
	assert_null(s.config.token);
	assert_null(s.config.jupyter_host);
}

/* The bytes are gone from where they came, also when something else is
 * wrong. */
static void config__overwrites_secrets(void **state)
{
	const char *const words[] = { "--jupyter-token=hush",
				      "--access-token",
				      "secret",
				      "--port",
				      "x",
				      NULL };
	struct execd_settings s;
	struct diag d = { 0 };
	char *value;
	struct line l;

	(void)state;
	setenv("EXECD_ACCESS_TOKEN", "elsewhere", 1);
	value = getenv("EXECD_ACCESS_TOKEN");
	line_make(&l, words);
	assert_int_equal(config_read(l.count, l.words, &s, &d), -EINVAL);
	assert_string_equal(l.words[1], "--jupyter-token=");
	assert_string_equal(l.words[3], "");
	assert_int_equal(value[0] | value[4] | value[8], 0);
	assert_null(getenv("EXECD_ACCESS_TOKEN"));
	line_free(&l);
}

static void config__reads_the_token_from_a_file(void **state)
{
	char path[] = "/tmp/execd-token-XXXXXX";
	struct execd_settings s;
	struct diag d;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "  from-a-file\r\nnot this\n", 24), 24);
	assert_int_equal(reads(WORDS("--token-file", path), &s, &d), 0);
	assert_string_equal(s.config.token, "from-a-file");
	assert_int_equal(ftruncate(fd, 0), 0);
	refuses(WORDS("--token-file", path), "is empty");
	close(fd);
	unlink(path);
	refuses(WORDS("--token-file", path), "No such file");
}

static void config__takes_what_a_token_hashes_to(void **state)
{
	static const char hash[] = "ba7816bf8f01cfea414140de5dae2223b00361a396"
				   "177a9cb410ff61F20015AD"; /* of abc */
	struct execd_settings s;
	uint8_t digest[SHA256_SIZE];
	struct diag d = { 0 };
	char wrong[sizeof(hash)];

	(void)state;
	sha256(SPAN("abc"), digest);
	assert_int_equal(reads(WORDS("--token-sha256", hash), &s, &d), 0);
	assert_true(s.config.has_token_hash);
	assert_false(s.config.has_proxy_hash);
	assert_memory_equal(s.config.token_hash, digest, sizeof(digest));
	assert_int_equal(reads(WORDS("--proxy-token-sha256", hash), &s, &d), 0);
	assert_true(s.config.has_proxy_hash);
	assert_false(s.config.has_token_hash);
	assert_memory_equal(s.config.proxy_hash, digest, sizeof(digest));
	refuses(WORDS("--token-sha256", hash + 1), "expected 64 hex digits");
	refuses(WORDS("--token-sha256", ""), "expected 64 hex digits");
	memcpy(wrong, hash, sizeof(wrong));
	wrong[63] = 'g';
	refuses(WORDS("--token-sha256", wrong), "expected 64 hex digits");
	refuses(WORDS("--proxy-token-sha256", wrong), "expected 64 hex digits");
}

static void config__takes_the_program_of_an_init(void **state)
{
	const char *const words[] = { "--init", "--",	  "tail",
				      "-f",	"--port", NULL };
	struct execd_settings s;
	struct diag d = { 0 };
	struct line l;

	(void)state;
	line_make(&l, words);
	assert_int_equal(config_read(l.count, l.words, &s, &d), 0);
	assert_string_equal(s.config.entrypoint[0], "tail");
	assert_string_equal(s.config.entrypoint[2], "--port");
	assert_null(s.config.entrypoint[3]);
	line_free(&l);
	assert_int_equal(reads(WORDS("--init", "--"), &s, &d), 0);
	assert_null(s.config.entrypoint);
}

static void config__takes_the_port_of_the_runtime(void **state)
{
	struct execd_settings s;
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(setenv("JUPYTER_PORT", "45000", 1), 0);
	assert_int_equal(reads(NULL, &s, &d), 0);
	assert_int_equal(s.config.runtime_port, 45000);
	assert_int_equal(reads(WORDS("--jupyter-port", "0"), &s, &d), 0);
	assert_int_equal(s.config.runtime_port, 0);
	/* what is said of it is the sandbox's: no reason not to start */
	assert_int_equal(setenv("JUPYTER_PORT", "notebook", 1), 0);
	assert_int_equal(reads(NULL, &s, &d), 0);
	assert_int_equal(s.config.runtime_port, 0);
	assert_int_equal(unsetenv("JUPYTER_PORT"), 0);
}

static void config__says_what_is_wrong(void **state)
{
	static const struct {
		const char *words[4], *says;
	} rows[] = {
		{ { "--prot", "1" }, "no flag --prot, did you mean --port?" },
		{ { "--port" }, "--port needs a value: PORT" },
		{ { "--port", "0" }, "is \"0\", expected a port from 1" },
		{ { "--port", "65536" }, "expected a port" },
		{ { "--listen", "localhost:1" }, "expected an address" },
		{ { "--listen", "127.0.0.1:0" }, "expected an address" },
		{ { "--jupyter-host", "https://a" }, "expected http://" },
		{ { "--jupyter-idle-poll-interval", "0" }, "1ms to 60s" },
		{ { "--jupyter-idle-poll-interval", "1h" }, "1ms to 60s" },
		{ { "--jupyter-port", "65536" }, "65535, or 0 for none" },
		{ { "--jupyter-port", "x" }, "expected a port from 1" },
		{ { "--shell", "bash" }, "expected an absolute path" },
		{ { "--init=maybe" }, "expected true or false" },
		{ { "--log-level", "loud" }, "expected error, warn" },
		{ { "--log-level", "8" }, "0 to 7" },
		{ { "tail", "-f" }, "expected -- before a program" },
		{ { "--", "tail" }, "expected --init" },
		{ { "--access-token", "a b" }, "no header can carry" },
		{ { "--graceful-shutdown-timeout", "x" }, "such as 1s" },
		{ { "-" }, "the word \"-\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		refuses(rows[i].words, rows[i].says);
	setenv("EXECD_INIT", "perhaps", 1);
	refuses(NULL, "EXECD_INIT is \"perhaps\"");
	unsetenv("EXECD_INIT");
}

/* Neither the token nor its neighbourhood is repeated. */
static void config__keeps_secrets_out_of_sentences(void **state)
{
	struct execd_settings s;
	struct diag d;

	(void)state;
	assert_int_equal(reads(WORDS("--access-token", "hush hush"), &s, &d),
			 -EINVAL);
	assert_null(strstr(d.msg, "hush"));
}

static void config__takes_what_others_of_its_kind_take(void **state)
{
	static const struct {
		const char *word;
		enum log_level level;
	} rows[] = {
		{ "0", LOG_ERROR }, { "4", LOG_WARN },	    { "6", LOG_INFO },
		{ "7", LOG_DEBUG }, { "debug", LOG_DEBUG },
	};
	struct execd_settings s;
	struct diag d;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
			reads(WORDS("-log-level", rows[i].word), &s, &d), 0);
		assert_int_equal(s.log_level, rows[i].level);
	}
	assert_int_equal(
		reads(WORDS("--graceful-shutdown-timeout", "1s"), &s, &d), 0);
	assert_int_equal(reads(WORDS("--help"), &s, &d), CONFIG_E_HELP);
	assert_int_equal(reads(WORDS("-version"), &s, &d), CONFIG_E_VERSION);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(config__has_defaults),
		TEST(config__takes_flags_in_every_spelling),
		TEST(config__flags_win_over_the_environment),
		TEST(config__overwrites_secrets),
		TEST(config__reads_the_token_from_a_file),
		TEST(config__takes_what_a_token_hashes_to),
		TEST(config__takes_the_program_of_an_init),
		TEST(config__takes_the_port_of_the_runtime),
		TEST(config__says_what_is_wrong),
		TEST(config__keeps_secrets_out_of_sentences),
		TEST(config__takes_what_others_of_its_kind_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
