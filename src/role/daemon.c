/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - sallyportd between its command line and its end
 *
 * How it works: a list of steps, each of which needs the ones before it.
 * Nothing is accepted before the rules stand: they are installed before there
 * is any role. The rules outlive us: killed, our listeners are gone and TPROXY
 * drops; stopped in order, we leave a table that drops everything. Only
 * --remove-rules takes it away.
 */

#include "src/role/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/io/loop.h"
#include "src/role/config.h"
#include "src/role/fence.h"
#include "src/role/fence_watch.h"
#include "src/role/home.h"
#include "src/role/listeners.h"
#include "src/role/lock.h"
#include "src/role/notify.h"
#include "src/role/privilege.h"
#include "src/role/spawn.h"
#include "src/role/strays.h"
#include "src/role/supervise.h"

struct daemon {
	const struct config *config;
	struct privilege_user user;
	struct loop *loop;
	struct listeners listeners;
	struct fence_watch *fence;
	struct lock *lock;
	struct strays *strays;
	struct supervise *roles;
	char programs[ROLE_NUM][PATH_MAX];
	int lock_fd, config_fd, audit_fd;
	bool failed;
};

static int say(const struct diag *diag)
{
	char text[sizeof(*diag) + 64];

	log_error("%s", diag_text(diag, text, sizeof(text)));
	return -EINVAL;
}

/* --- what the loop calls --- */

static void on_rules_asked(void *ctx, struct msg_roles *ret)
{
	const struct daemon *d = ctx;

	ret->table_ok = fence_watch_is_ok(d->fence) && lock_is_ok(d->lock);
	ret->queue = fence_watch_rules(d->fence)->queue;
	ret->forwards = fence_forwards();
}

static void on_serving(void *ctx)
{
	(void)ctx;
	log_info("serving");
	notify_manager("READY=1");
}

static void on_ended(void *ctx, bool failed)
{
	struct daemon *d = ctx;

	d->failed = failed;
	loop_stop(d->loop);
}

static void on_stop_signal(void *ctx)
{
	struct daemon *d = ctx;

	log_info("stopping: exchanges may finish for %u ms",
		 d->config->drain_ms);
	notify_manager("STOPPING=1");
	supervise_drain(d->roles);
}

/* Roles read these while they had root's rights; now they have none. */
static void certificate_renew(struct daemon *d, enum certificate_of of,
			      const char *certificate, const char *key)
{
	const char *paths[2] = { certificate, key };
	int fds[2] = { -1, -1 }, i;

	if (!certificate || !*certificate || !key || !*key)
		return;
	for (i = 0; i < 2; i++) {
		fds[i] = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fds[i] < 0)
			break;
	}
	if (i == 2)
		supervise_renew(d->roles, of, fds);
	else
		log_error("could not open %s, the former certificate stays: %s",
			  paths[i], err_text(errno));
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
}

static void certificates_renew(struct daemon *d)
{
	const struct config *c = d->config;

	certificate_renew(d, CERTIFICATE_ADMIN, c->admin_certificate,
			  c->admin_key);
	certificate_renew(d, CERTIFICATE_LIFECYCLE, c->lifecycle_certificate,
			  c->lifecycle_key);
	certificate_renew(d, CERTIFICATE_INGRESS, c->ingress_certificate,
			  c->ingress_key);
}

static void on_reload_signal(void *ctx)
{
	struct diag diag = { 0 };
	struct daemon *d = ctx;
	int fd;

	log_info("reloading policies and certificates, opening the audit file "
		 "again");
	fd = home_open_audit(d->config, &d->user, &diag);
	if (fd < 0)
		(void)say(&diag); /* the old file is better than none */
	else if (supervise_set_audit(d->roles, fd))
		log_error("could not keep the new audit file");
	(void)fd_close(fd);
	supervise_reload(d->roles);
	certificates_renew(d);
}

/* --- the steps --- */

static int prepare_process(void)
{
	struct rlimit files;

	closefrom(STDERR_FILENO + 1);
	secret_process_init();
	(void)umask(022);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	return 0;
}

static int prepare_files(struct daemon *d)
{
	struct diag diag = { 0 };
	int r = privilege_find_user(d->config->user, &d->user);

	if (r) {
		log_error("found no account \"%s\" to run as: adduser --system "
			  "--group %s, or set \"user\"",
			  d->config->user, d->config->user);
		return r;
	}
	r = home_make(d->config, &d->user, &diag);
	if (r)
		return say(&diag);
	d->lock_fd = home_lock(d->config, &diag);
	if (d->lock_fd < 0)
		return say(&diag);
	d->audit_fd = home_open_audit(d->config, &d->user, &diag);
	return d->audit_fd < 0 ? say(&diag) : 0;
}

static int prepare_network(struct daemon *d)
{
	struct fence_rules rules;
	struct diag diag = { 0 };
	int r;

	r = fence_install(d->config, &rules);
	if (!r)
		r = fence_forget_flows();
	if (!r && listeners_open(d->config, rules.ipv6, &d->listeners, &diag))
		r = say(&diag);
	if (!r)
		r = lock_new(d->loop, d->config, rules.tells, &d->lock);
	if (!r)
		d->strays = strays_new(d->loop, d->config);
	if (!r)
		r = fence_watch_new(d->loop, d->config, &rules, &d->fence);
	if (!r && rules.queue && !fence_forwards())
		log_info("this node does not forward (net.ipv4.ip_forward, "
			 "net.ipv6.conf.all.forwarding): UDP and ICMP of "
			 "sandboxes go nowhere, whatever policy allows");
	return r;
}

static int start_roles(struct daemon *d)
{
	struct supervise_setup setup = {
		.loop = d->loop,
		.config_fd = d->config_fd,
		.listeners = &d->listeners,
		.lock = d->lock,
		.grace_ms = d->config->drain_ms,
		.ctx = d,
		.rules = on_rules_asked,
		.serving = on_serving,
		.ended = on_ended,
	};
	int role, r;

	for (role = ROLE_GATEWAY; role < ROLE_NUM; role++) {
		r = spawn_beside(spawn_program((enum role)role),
				 d->programs[role], sizeof(d->programs[role]));
		if (r)
			return r;
		setup.programs[role] = d->programs[role];
	}
	return supervise_new(&setup, d->audit_fd, &d->roles);
}

static int start(struct daemon *d)
{
	int r = prepare_process();

	if (!r)
		r = prepare_files(d);
	if (!r)
		r = privilege_reduce();
	if (!r)
		r = loop_new(&d->loop);
	if (!r)
		r = d->config_fd = spawn_config(d->config);
	if (r >= 0)
		r = prepare_network(d);
	if (!r)
		r = start_roles(d);
	if (!r)
		r = loop_on_signal(d->loop, SIGTERM, on_stop_signal, d);
	if (!r)
		r = loop_on_signal(d->loop, SIGINT, on_stop_signal, d);
	if (!r)
		r = loop_on_signal(d->loop, SIGHUP, on_reload_signal, d);
	return r;
}

/* Whatever happened, a table stays that lets nothing pass. */
static void stop(struct daemon *d)
{
	bool fenced = d->fence != NULL;

	d->roles = supervise_free(d->roles);
	d->fence = fence_watch_free(d->fence);
	d->strays = strays_free(d->strays);
	d->lock = lock_free(d->lock); /* sandboxes stay locked */
	if (fenced && fence_close(d->config) == 0)
		log_info("stopped: sandboxes are cut off until the next start "
			 "or --remove-rules");
	listeners_close(&d->listeners);
	d->loop = loop_free(d->loop);
	(void)fd_close(d->config_fd);
	(void)fd_close(d->audit_fd);
	(void)fd_close(d->lock_fd);
}

int daemon_run(const struct config *config)
{
	static struct daemon d;
	int r;

	d = (struct daemon){
		.config = config,
		.lock_fd = -1,
		.config_fd = -1,
		.audit_fd = -1,
	};
	r = start(&d);
	if (!r)
		loop_run(d.loop);
	else
		log_error("did not start: %s", err_text(r));
	stop(&d);
	if (!r && d.failed)
		r = -ECHILD;
	return r;
}
