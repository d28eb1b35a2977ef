/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - what the daemon is told: flags first, else the environment
 *
 * How it works: one table has a row for each setting, with its flag, its
 * variable and the function that takes its text. The environment is taken
 * first and the flags after it, so that the flag wins. The rows marked SECRET
 * are moved: copied into locked memory and overwritten where they stood.
 */

#include "src/execd/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/fd.h"
#include "src/base/secret.h"
#include "src/execd/code/runtime.h"

/* name: the flag or the variable, for sentences. */
typedef int take_fn(const char *name, struct execd_settings *s,
		    struct span text, struct diag *d);

enum row_kind {
	ROW_VALUE, /* takes a value */
	ROW_SECRET,
	ROW_SWITCH, /* takes none: "--init"; "--init=false" is fine too */
};

struct row {
	const char *flag, *variable; /* NULL: none of that kind */
	enum row_kind kind;
	take_fn *take;
	const char *value, *help; /* for people */
};

static const char *text_keep(struct span text)
{
	/* a span of argv or of the environment: ends with its NUL */
	return text.ptr;
}

/* -- what the rows take --------------------------------------------------- */

static int take_listen(const char *name, struct execd_settings *s,
		       struct span text, struct diag *d)
{
	if (addr_parse_port(text, EXECD_PORT, &s->config.listen) &&
	    s->config.listen.port)
		return 0;
	return diag_set(d, 0, 0,
			"%s is \"%.*s\", expected an address with or without a "
			"port, such as [::]:44772 or 127.0.0.1",
			name, SPAN_FMT(text));
}

static int take_port(const char *name, struct execd_settings *s,
		     struct span text, struct diag *d)
{
	uint64_t port;

	if (!span_parse_u64(text, &port) || !port || port > UINT16_MAX)
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected a port from 1 to "
				"65535",
				name, SPAN_FMT(text));
	s->config.listen.port = (uint16_t)port;
	return 0;
}

static int secret_keep(const char *name, struct span text, const char **ret,
		       struct diag *d)
{
	struct secret *kept;
	size_t i;

	if (text.len > EXECD_TOKEN_MAX)
		return diag_set(d, 0, 0, "%s is longer than %d bytes", name,
				EXECD_TOKEN_MAX);
	for (i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] <= ' ' || text.ptr[i] == 0x7f)
			return diag_set(d, 0, 0,
					"%s holds a space or a control "
					"character, which no header can carry",
					name);
	/* Kept for the life of the process. The NUL behind it is there:
	 * secrets are zeroed. */
	if (secret_new(text.len + 1, &kept))
		return diag_set(d, 0, 0, "there is no memory for %s", name);
	memcpy(secret_fill(kept), text.ptr, text.len);
	*ret = text.len ? secret_open(kept).ptr : NULL;
	return 0;
}

static int take_token(const char *name, struct execd_settings *s,
		      struct span text, struct diag *d)
{
	return secret_keep(name, text, &s->config.token, d);
}

static int take_jupyter_token(const char *name, struct execd_settings *s,
			      struct span text, struct diag *d)
{
	return secret_keep(name, text, &s->config.jupyter_token, d);
}

/* The first line of the file; the file stays. */
static int take_token_file(const char *name, struct execd_settings *s,
			   struct span text, struct diag *d)
{
	char bytes[EXECD_TOKEN_MAX + 2];
	const char *path = text_keep(text);
	int fd CLEANUP_FD = open(path, O_RDONLY | O_CLOEXEC);
	struct span token, rest;
	ssize_t n;
	int r;

	n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	if (n < 0)
		return diag_set(d, 0, 0, "%s: %s could not be read: %s", name,
				path, strerror(errno));
	rest = span_of(bytes, (size_t)n);
	token = span_trim(span_cut(&rest, '\n'));
	if (token.len && token.ptr[token.len - 1] == '\r')
		token.len--;
	if (token.len)
		r = secret_keep(name, token, &s->config.token, d);
	else
		r = diag_set(d, 0, 0,
			     "%s: %s is empty, expected the token in its first "
			     "line",
			     name, path);
	secret_wipe(bytes, sizeof(bytes));
	return r;
}

/* Looked at before all else (init/mounts.c). */
static int take_confirmed(const char *name, struct execd_settings *s,
			  struct span text, struct diag *d)
{
	(void)s;
	return span_find(text, ':') < text.len
		       ? 0
		       : diag_set(d, 0, 0,
				  "%s is \"%.*s\", expected PATH:FOLDER", name,
				  SPAN_FMT(text));
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = span_lower_char(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Who may read it can check a token, and make none. */
static int hash_parse(const char *name, struct span text,
		      uint8_t dst[SHA256_SIZE], struct diag *d)
{
	int high, low;
	size_t i;

	for (i = 0; text.len == 2 * SHA256_SIZE && i < SHA256_SIZE; i++) {
		high = digit_value(text.ptr[2 * i]);
		low = digit_value(text.ptr[2 * i + 1]);
		if (high < 0 || low < 0)
			break;
		dst[i] = (uint8_t)(high << 4 | low);
	}
	if (i < SHA256_SIZE)
		return diag_set(d, 0, 0,
				"%s is no SHA-256: expected 64 hex digits",
				name);
	return 0;
}

static int take_token_hash(const char *name, struct execd_settings *s,
			   struct span text, struct diag *d)
{
	s->config.has_token_hash = true;
	return hash_parse(name, text, s->config.token_hash, d);
}

static int take_proxy_hash(const char *name, struct execd_settings *s,
			   struct span text, struct diag *d)
{
	s->config.has_proxy_hash = true;
	return hash_parse(name, text, s->config.proxy_hash, d);
}

static int take_jupyter_host(const char *name, struct execd_settings *s,
			     struct span text, struct diag *d)
{
	if (!text.len) {
		s->config.jupyter_host = NULL;
		return 0;
	}
	if (!span_starts(text, SPAN("http://")))
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected http://host:port",
				name, SPAN_FMT(text));
	s->config.jupyter_host = text_keep(text);
	return 0;
}

/* "100", "100ms", "2s", "1.5s" is refused: whole numbers only. */
static bool duration_parse(struct span text, uint64_t *ret_ms)
{
	uint64_t value, unit = 1;

	if (span_ends(text, SPAN("ms"))) {
		text.len -= 2;
	} else if (span_ends(text, SPAN("s"))) {
		text.len -= 1;
		unit = 1000;
	}
	if (!span_parse_u64(text, &value) || value > UINT32_MAX / unit)
		return false;
	*ret_ms = value * unit;
	return true;
}

static int take_poll(const char *name, struct execd_settings *s,
		     struct span text, struct diag *d)
{
	uint64_t ms;

	if (!duration_parse(text, &ms) || !ms || ms > 60 * 1000)
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected 1ms to 60s, such as "
				"100ms or 2s",
				name, SPAN_FMT(text));
	s->config.jupyter_poll_ms = (unsigned)ms;
	return 0;
}

/* The variable is the sandbox's, as for trust. */
static int take_runtime_port(const char *name, struct execd_settings *s,
			     struct span text, struct diag *d)
{
	uint64_t port = 0;

	s->config.runtime_port = 0;
	if (span_parse_u64(text, &port) && port <= UINT16_MAX)
		s->config.runtime_port = (uint16_t)port;
	else if (name[0] == '-')
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected a port from 1 to "
				"65535, or 0 for none",
				name, SPAN_FMT(text));
	return 0;
}

static int take_shell(const char *name, struct execd_settings *s,
		      struct span text, struct diag *d)
{
	if (!span_starts(text, SPAN("/")))
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected an absolute path",
				name, SPAN_FMT(text));
	s->config.entrypoint_shell = text_keep(text);
	return 0;
}

static bool bool_parse(struct span text, bool *ret)
{
	static const char *const yes[] = { "", "1", "true", "yes", "on" };
	static const char *const no[] = { "0", "false", "no", "off" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(yes); i++)
		if (span_eq_nocase(text, span_str(yes[i])))
			return *ret = true;
	for (i = 0; i < ARRAY_LEN(no); i++)
		if (span_eq_nocase(text, span_str(no[i]))) {
			*ret = false;
			return true;
		}
	return false;
}

static int take_init(const char *name, struct execd_settings *s,
		     struct span text, struct diag *d)
{
	if (bool_parse(text, &s->config.init))
		return 0;
	return diag_set(d, 0, 0, "%s is \"%.*s\", expected true or false", name,
			SPAN_FMT(text));
}

static int path_take(const char *name, struct span text, const char **ret,
		     struct diag *d)
{
	if (!span_starts(text, SPAN("/")))
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected an absolute path",
				name, SPAN_FMT(text));
	*ret = text_keep(text);
	return 0;
}

/* Who names a CA wants it to be trusted. */
static int take_ca_file(const char *name, struct execd_settings *s,
			struct span text, struct diag *d)
{
	s->config.trust = true;
	return path_take(name, text, &s->config.ca_file, d);
}

static int take_ca_bundle(const char *name, struct execd_settings *s,
			  struct span text, struct diag *d)
{
	return path_take(name, text, &s->config.ca_bundle, d);
}

/* The variable is the sandbox's, not ours: what it cannot mean is "no". */
static int take_trust(const char *name, struct execd_settings *s,
		      struct span text, struct diag *d)
{
	(void)name;
	(void)d;
	if (!bool_parse(text, &s->config.trust))
		s->config.trust = false;
	return 0;
}

/* By name, or by the number that other daemons of this kind take: 6 is "as
 * usual", 7 is everything. */
static int take_log_level(const char *name, struct execd_settings *s,
			  struct span text, struct diag *d)
{
	static const enum log_level levels[] = {
		LOG_ERROR, LOG_ERROR, LOG_ERROR, LOG_ERROR,
		LOG_WARN,  LOG_INFO,  LOG_INFO,	 LOG_DEBUG,
	};
	uint64_t number;

	if (log_level_parse(text, &s->log_level))
		return 0;
	if (!span_parse_u64(text, &number) || number >= ARRAY_LEN(levels))
		return diag_set(d, 0, 0,
				"%s is \"%.*s\", expected error, warn, info, "
				"debug, or 0 to 7",
				name, SPAN_FMT(text));
	s->log_level = levels[number];
	return 0;
}

/* Streams end with their last event here; there is nothing to wait for. */
static int take_grace(const char *name, struct execd_settings *s,
		      struct span text, struct diag *d)
{
	uint64_t ms;

	(void)s;
	if (duration_parse(text, &ms))
		return 0;
	return diag_set(d, 0, 0, "%s is \"%.*s\", expected a time such as 1s",
			name, SPAN_FMT(text));
}

/* -- the table ------------------------------------------------------------ */

static const struct row rows[] = {
	{ "listen", "EXECD_LISTEN", ROW_VALUE, take_listen, "ADDRESS[:PORT]",
	  "where to listen; [::]:44772, which is IPv4 too" },
	{ "port", NULL, ROW_VALUE, take_port, "PORT",
	  "the port of that address alone" },
	{ "access-token", "EXECD_ACCESS_TOKEN", ROW_SECRET, take_token, "TOKEN",
	  "what X-EXECD-ACCESS-TOKEN must hold; without it all may ask" },
	{ "token-file", NULL, ROW_VALUE, take_token_file, "FILE",
	  "the same, from the first line of a file" },
	{ "confirm-mount", NULL, ROW_VALUE, take_confirmed, "PATH:FOLDER",
	  "end unless that folder of the node is mounted there" },
	{ "token-sha256", "EXECD_ACCESS_TOKEN_SHA256", ROW_VALUE,
	  take_token_hash, "HASH",
	  "64 hex digits: what the token's SHA-256 must be; then no other "
	  "counts" },
	{ "proxy-token-sha256", NULL, ROW_VALUE, take_proxy_hash, "HASH",
	  "the same of X-Sallyport-Proxy-Token, which opens /proxy alone" },
	{ "jupyter-host", "JUPYTER_HOST", ROW_VALUE, take_jupyter_host, "URL",
	  "the Jupyter server that runs code" },
	{ "jupyter-token", "JUPYTER_TOKEN", ROW_SECRET, take_jupyter_token,
	  "TOKEN", "its token" },
	{ "jupyter-idle-poll-interval", "EXECD_JUPYTER_IDLE_POLL_INTERVAL",
	  ROW_VALUE, take_poll, "TIME", "how often it is asked; 100ms" },
	{ "jupyter-port", "JUPYTER_PORT", ROW_VALUE, take_runtime_port, "PORT",
	  "of 127.0.0.1, to listen on too where code runs without Jupyter; "
	  "44771, 0 for none" },
	{ "shell", "EXECD_SHELL", ROW_VALUE, take_shell, "PATH",
	  "the shell of commands; bash, else sh" },
	{ "init", "EXECD_INIT", ROW_SWITCH, take_init, NULL,
	  "be the init of the container, and start the words behind --" },
	{ "trust-ca", "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", ROW_SWITCH,
	  take_trust, NULL, "make programs trust the gateway's CA" },
	{ "ca-file", "EXECD_CA_FILE", ROW_VALUE, take_ca_file, "FILE",
	  "that CA, as PEM; " EXECD_CA_FILE },
	{ "ca-bundle", "EXECD_CA_BUNDLE", ROW_VALUE, take_ca_bundle, "FILE",
	  "to write: all roots and that CA; " EXECD_CA_BUNDLE },
	{ "log-level", NULL, ROW_VALUE, take_log_level, "LEVEL",
	  "error, warn, info or debug; info" },
	{ "graceful-shutdown-timeout", "EXECD_API_GRACE_SHUTDOWN", ROW_VALUE,
	  take_grace, "TIME", "taken and not needed: streams end at once" },
};

void config_help(void)
{
	size_t i;

	printf("usage: sallyport-execd [flags] [-- program [word...]]\n");
	for (i = 0; i < ARRAY_LEN(rows); i++)
		printf("  --%s%s%s\n        %s%s%s%s\n", rows[i].flag,
		       rows[i].value ? " " : "",
		       rows[i].value ? rows[i].value : "", rows[i].help,
		       rows[i].variable ? " (" : "",
		       rows[i].variable ? rows[i].variable : "",
		       rows[i].variable ? ")" : "");
	printf("  --help, --version\n");
}

static const struct row *row_of_flag(struct span name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (span_eq(name, span_str(rows[i].flag)))
			return &rows[i];
	return NULL;
}

static int flag_unknown(struct span name, struct diag *d)
{
	const char *names[ARRAY_LEN(rows) + 1] = { NULL };
	const char *near;
	char text[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		names[i] = rows[i].flag;
	if (!span_copy(name, text, sizeof(text)))
		return diag_set(d, 0, 0,
				"there is no such flag: a word of "
				"%zu bytes",
				name.len);
	near = diag_suggest(text, names);
	return diag_set(d, 0, 0, "there is no flag --%s%s%s%s", text,
			near ? ", did you mean --" : "", near ? near : "",
			near ? "?" : "");
}

/* -- the environment ------------------------------------------------------ */

static int environment_take(struct execd_settings *s, struct diag *d)
{
	struct span text;
	size_t i;
	char *value;
	int r = 0;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		value = rows[i].variable ? getenv(rows[i].variable) : NULL;
		if (!value)
			continue;
		text = span_str(value);
		/* set to nothing is not set */
		if (!r && text.len)
			r = rows[i].take(rows[i].variable, s, text, d);
		if (rows[i].kind != ROW_SECRET)
			continue;
		secret_wipe(value, text.len);
		(void)unsetenv(rows[i].variable);
	}
	return r;
}

/* -- flags ---------------------------------------------------------------- */

/* Consumes argv[*at], and the next word if it is its value. */
static int flag_take(char **argv, int *at, struct execd_settings *s,
		     struct diag *d)
{
	struct span name, value = SPAN_NONE;
	const struct row *row;
	char spelled[64];
	size_t cut;
	int r;

	name = span_str(argv[(*at)++]);
	name = span_from(name, span_starts(name, SPAN("--")) ? 2 : 1);
	cut = span_find(name, '=');
	if (cut < name.len) {
		value = span_from(name, cut + 1);
		name.len = cut;
	}
	if (span_eq(name, SPAN("help")) || span_eq(name, SPAN("h")))
		return CONFIG_E_HELP;
	if (span_eq(name, SPAN("version")))
		return CONFIG_E_VERSION;
	row = row_of_flag(name);
	if (!row)
		return flag_unknown(name, d);
	if (!value.ptr && row->kind == ROW_SWITCH)
		value = SPAN("true");
	if (!value.ptr && !argv[*at])
		return diag_set(d, 0, 0, "--%s needs a value: %s", row->flag,
				row->value);
	if (!value.ptr)
		value = span_str(argv[(*at)++]);
	(void)snprintf(spelled, sizeof(spelled), "--%s", row->flag);
	r = row->take(spelled, s, value, d);
	if (row->kind == ROW_SECRET)
		secret_wipe((char *)(uintptr_t)value.ptr, value.len);
	return r;
}

static int flags_take(char **argv, struct execd_settings *s, struct diag *d)
{
	int at = 1, r;

	while (argv[at]) {
		if (!strcmp(argv[at], "--")) {
			at++;
			break;
		}
		if (argv[at][0] != '-' || !argv[at][1])
			return diag_set(d, 0, 0,
					"found the word \"%s\" among the "
					"flags, expected -- before a program",
					argv[at]);
		r = flag_take(argv, &at, s, d);
		if (r)
			return r;
	}
	if (argv[at])
		s->config.entrypoint = (const char *const *)&argv[at];
	return 0;
}

static int settings_check(const struct execd_settings *s, struct diag *d)
{
	if (s->config.entrypoint && !s->config.init)
		return diag_set(d, 0, 0,
				"found a program behind --, expected --init "
				"with it");
	return 0;
}

int config_read(int argc, char **argv, struct execd_settings *ret,
		struct diag *d)
{
	struct execd_settings s = {
		.config.listen.port = EXECD_PORT, /* [::] */
		.config.jupyter_poll_ms = EXECD_POLL_MS,
		.config.runtime_port = RUNTIME_PORT,
		.config.ca_file = EXECD_CA_FILE,
		.config.ca_bundle = EXECD_CA_BUNDLE,
		.log_level = LOG_INFO,
	};
	int r;

	(void)argc;
	r = environment_take(&s, d);
	if (!r)
		r = flags_take(argv, &s, d);
	if (!r)
		r = settings_check(&s, d);
	if (!r)
		*ret = s;
	return r;
}
