/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c - sallyportd: reads the command line and the configuration, then
 * runs the daemon (src/role/daemon.c), or checks, or removes the rules
 */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/log.h"
#include "src/role/config.h"
#include "src/role/daemon.h"
#include "src/role/fence.h"
#include "src/role/home.h"
#include "src/role/lock.h"
#include "src/role/msg.h"
#include "src/role/privilege.h"

#define CONFIG_PATH "/etc/sallyport/sallyport.json"

enum action { ACTION_RUN, ACTION_CHECK, ACTION_REMOVE_RULES };

struct options {
	enum action action;
	const char *config_path;
	const char *log_level; /* NULL: as configured */
};

static const char help[] =
	"usage: sallyportd [--config FILE] [--log-level LEVEL]\n"
	"       sallyportd [--config FILE] --check | --remove-rules\n"
	"\n"
	"The guarded double door of this node's sandboxes. Stays in the\n"
	"foreground; TERM and INT stop it, HUP reloads policies and reopens\n"
	"the audit file.\n"
	"\n"
	"  --config FILE      configuration (" CONFIG_PATH ")\n"
	"  --check            read the configuration, say ok or what is wrong\n"
	"  --remove-rules     remove the kernel rules: sandboxes are then no\n"
	"                     longer guarded\n"
	"  --log-level LEVEL  error, warn, info or debug\n"
	"  --version, --help\n"
	"\n"
	"See sallyportd(8) and sallyport.conf(5).\n";

/* True: go on. False: *ret_status is the exit status. */
static bool parse_argv(int argc, char **argv, struct options *o,
		       int *ret_status)
{
	static const struct option words[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, 'n' },
		{ "remove-rules", no_argument, NULL, 'r' },
		{ "log-level", required_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	enum log_level level;
	int c;

	*o = (struct options){ .config_path = CONFIG_PATH };
	*ret_status = 2;
	while ((c = getopt_long(argc, argv, "c:nh", words, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->config_path = optarg;
			break;
		case 'n':
			o->action = ACTION_CHECK;
			break;
		case 'r':
			o->action = ACTION_REMOVE_RULES;
			break;
		case 'l':
			o->log_level = optarg;
			if (log_level_parse(span_str(optarg), &level))
				break;
			(void)fprintf(stderr,
				      "sallyportd: no log level \"%s\""
				      "\n",
				      optarg);
			return false;
		case 'v':
			(void)puts("sallyportd " SALLYPORT_VERSION);
			*ret_status = 0;
			return false;
		case 'h':
			(void)fputs(help, stdout);
			*ret_status = 0;
			return false;
		default:
			(void)fputs("Try sallyportd --help.\n", stderr);
			return false;
		}
	}
	if (optind == argc)
		return true;
	(void)fprintf(stderr, "sallyportd: unexpected \"%s\"\n", argv[optind]);
	return false;
}

/* For a person at a terminal or an editor: "file:line:col: message". */
static void say(const struct diag *diag)
{
	char text[sizeof(*diag) + 64];

	(void)fprintf(stderr, "%s\n", diag_text(diag, text, sizeof(text)));
}

/* Says what is wrong. 0 or -EINVAL. */
static int config_load(const char *path, struct config **ret)
{
	struct buf text = BUF_INIT(2 * CONFIG_TEXT_MAX);
	struct diag diag = { 0 };
	int r = home_read(path, CONFIG_TEXT_MAX, &text, &diag);

	if (!r) {
		(void)snprintf(diag.file, sizeof(diag.file), "%s", path);
		r = config_parse(buf_peek(&text), ret, &diag);
	}
	if (r)
		say(&diag);
	buf_fini(&text);
	return r;
}

static int check(const struct config *config)
{
	struct privilege_user user;

	if (privilege_find_user(config->user, &user))
		log_warn("found no account \"%s\" to run as", config->user);
	(void)puts("ok");
	return 0;
}

static int act(const struct options *o, const struct config *config)
{
	int r;

	switch (o->action) {
	case ACTION_RUN:
		return daemon_run(config);
	case ACTION_CHECK:
		return check(config);
	case ACTION_REMOVE_RULES:
		r = fence_remove(config);
		return r ? r : lock_remove();
	}
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct config *config;
	struct options o;
	int status;
	int r;

	log_init(role_name(ROLE_SUPERVISOR), LOG_INFO);
	if (!parse_argv(argc, argv, &o, &status))
		return status;
	r = config_load(o.config_path, &config);
	if (r)
		return 1;
	if (o.log_level)
		(void)log_level_parse(span_str(o.log_level),
				      &config->log_level);
	log_set_level(config->log_level);
	r = act(&o, config);
	config_free(config);
	return r ? 1 : 0;
}
