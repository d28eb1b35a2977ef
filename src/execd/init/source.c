/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - the pre-script is sourced by a shell that becomes us again
 *
 * A script that is sourced may export, change directory, set limits or end
 * everything; only a shell that is the same process can honour that. So
 * process 1 becomes the shell, and the shell, behind the script, process 1
 * again. An error in the script ends the container with its status, as it
 * does with the bootstrap of the contract (set -e).
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/config.h"
#include "src/execd/init/init.h"
#include "src/execd/init/trust.h"

#define SCRIPT "EXECD_BOOTSTRAP_PRE_SCRIPT"
#define DONE   "EXECD_BOOTSTRAP_SOURCED"

enum { WORDS_MAX = 4096, POLL_MS = 50 };

static const char *const shells[] = { "/bin/bash", "/usr/bin/bash", "/bin/sh",
				      "/usr/bin/sh", "/busybox/sh" };

static bool is_yes(const char *text)
{
	static const char *const yes[] = { "1", "true", "yes", "on" };
	unsigned i;

	for (i = 0; text && i < ARRAY_LEN(yes); i++)
		if (!strcasecmp(text, yes[i]))
			return true;
	return false;
}

/* The value of a flag of ours in front of "--"; NULL: it is not there. A
 * switch alone has the value "true". */
static const char *flag_find(char **argv, const char *name, bool is_switch)
{
	size_t len = strlen(name);
	const char *at;
	unsigned i;

	for (i = 1; i < WORDS_MAX && argv[i] && strcmp(argv[i], "--") != 0;
	     i++) {
		at = argv[i];
		while (*at == '-')
			at++;
		if (at == argv[i] || strncmp(at, name, len) != 0)
			continue;
		if (at[len] == '=')
			return at + len + 1;
		if (!at[len])
			return is_switch ? "true" : argv[i + 1];
	}
	return NULL;
}

static const char *setting(char **argv, const char *flag, const char *variable,
			   const char *usual)
{
	const char *value = flag_find(argv, flag, false);

	if (!value)
		value = getenv(variable);
	return value && *value ? value : usual;
}

/* Signals that end us are taken while we wait: process 1 has no default for
 * them. */
static void wait_a_moment(void)
{
	const struct timespec moment = { .tv_nsec = POLL_MS * 1000000 };
	sigset_t ending;
	int signal;

	(void)sigemptyset(&ending);
	(void)sigaddset(&ending, SIGTERM);
	(void)sigaddset(&ending, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &ending, NULL);
	signal = sigtimedwait(&ending, NULL, &moment);
	(void)sigprocmask(SIG_UNBLOCK, &ending, NULL);
	if (signal > 0)
		exit(128 + signal);
}

/* The script may speak through the gateway already. */
static void trust_first(char **argv)
{
	const struct trust_config config = {
		.ca = setting(argv, "ca-file", "EXECD_CA_FILE", EXECD_CA_FILE),
		.bundle = setting(argv, "ca-bundle", "EXECD_CA_BUNDLE",
				  EXECD_CA_BUNDLE),
	};
	uint64_t end_ms = clock_ms() + INIT_CA_WAIT_MS;
	int r;

	if (!is_yes(flag_find(argv, "trust-ca", true)) &&
	    !is_yes(getenv("OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT")) &&
	    !flag_find(argv, "ca-file", false) && !getenv("EXECD_CA_FILE"))
		return;
	for (;;) {
		r = trust_install(&config);
		if (r != -ENOENT || clock_ms() >= end_ms)
			return;
		wait_a_moment();
	}
}

static const char *shell_find(void)
{
	const char *named = getenv("BOOTSTRAP_SHELL");
	unsigned i;

	if (named && *named == '/' && !access(named, X_OK))
		return named;
	for (i = 0; i < ARRAY_LEN(shells); i++)
		if (!access(shells[i], X_OK))
			return shells[i];
	return NULL;
}

static void shell_become(const char *shell, const char *script, char **argv)
{
	static const char text[] = "set -e; . \"$0\"; set +e; exec \"$@\"";
	char self[PATH_MAX], *words[WORDS_MAX + 4];
	ssize_t len;
	unsigned i;

	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len <= 0) {
		log_warn(SCRIPT " was not sourced: /proc/self/exe: %s",
			 err_text(errno));
		return;
	}
	self[len] = '\0';
	words[0] = (char *)(uintptr_t)shell;
	words[1] = (char *)(uintptr_t) "-c";
	words[2] = (char *)(uintptr_t)text;
	words[3] = (char *)(uintptr_t)script;
	words[4] = self;
	for (i = 1; i < WORDS_MAX - 1 && argv[i]; i++)
		words[4 + i] = argv[i];
	words[4 + i] = NULL;
	(void)setenv(DONE, script, 1);
	(void)execv(shell, words);
	(void)unsetenv(DONE);
	log_warn(SCRIPT " was not sourced: %s: %s", shell, err_text(errno));
}

/* Whoever made the container could not know which user we are, and so left our
 * folder open to everybody. Nobody else is there yet: the file of variables
 * becomes ours, and what runs as others cannot put one in its place. As root we
 * close the folder; as another user all that runs is ours anyway, or root's. */
static void folder_settle(void)
{
	int fd = open(EXECD_ENVS_FILE,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0644);
	struct stat is;

	if (fd >= 0)
		(void)close(fd);
	if (!geteuid() && !lstat(EXECD_FOLDER, &is) && S_ISDIR(is.st_mode) &&
	    (is.st_mode & 022) && chmod(EXECD_FOLDER, 0755))
		log_warn(EXECD_FOLDER " stays open to everybody: %s",
			 err_text(errno));
}

void init_source(char **argv)
{
	const char *script = getenv(SCRIPT), *shell;
	char path[PATH_MAX];
	int len;

	if (!is_yes(flag_find(argv, "init", true)) &&
	    !is_yes(getenv("EXECD_INIT")))
		return;
	/* clients append to it for the commands after (contract 5.11) */
	(void)setenv("EXECD_ENVS", EXECD_ENVS_FILE, 0);
	folder_settle();
	if (!script || !*script || getenv(DONE))
		return;
	/* a name without a slash would be looked for in PATH */
	len = snprintf(path, sizeof(path), "%s%s",
		       strchr(script, '/') ? "" : "./", script);
	if (len < 0 || (size_t)len >= sizeof(path) || access(path, R_OK)) {
		log_warn(SCRIPT "=%s was not sourced: it is not there or may "
				"not be read",
			 script);
		return;
	}
	shell = shell_find();
	if (!shell) {
		log_warn(SCRIPT "=%s was not sourced: the image has no shell",
			 script);
		return;
	}
	trust_first(argv);
	shell_become(shell, path, argv);
}
