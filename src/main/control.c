/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - the control role: policies, sandboxes, the admin API
 *
 * Everything that needs root is opened first: the admin socket, the listener
 * over TCP with the operator's certificate, the trust roots. Then the rights
 * go, then the loop runs.
 */

#include <stdlib.h>
#include <unistd.h>

#include "certs/trust.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/webhook.h"
#include "src/httpd/httpd.h"
#include "src/role/config.h"
#include "src/role/privilege.h"
#include "src/role/role.h"

/* What is opened before the role is confined. */
struct opened {
	int unix_fd, tcp_fd, lifecycle_fd; /* -1 = none */
	struct ssl_ctx_st *tls, *lifecycle_tls;
	struct lifecycle_secrets secrets;
	struct trust *trust;
};

static NORETURN void die(const char *what, const char *why)
{
	log_error("could not use %s: %s", what, why);
	exit(EXIT_FAILURE);
}

/* The roles' user may use the socket too (see api.c). */
static void open_unix(const struct config *config, struct opened *o)
{
	struct privilege_user user;

	o->unix_fd = httpd_bind_unix(config->admin_socket, 0660);
	if (o->unix_fd < 0)
		die(config->admin_socket, err_text(o->unix_fd));
	if (!privilege_find_user(config->user, &user) &&
	    chown(config->admin_socket, user.uid, user.gid))
		log_warn("could not give %s to the user of the roles",
			 config->admin_socket);
}

static void open_tcp(const struct config *config, struct opened *o)
{
	char at[ADDR_TEXT_SIZE], why[512];

	o->tcp_fd = -1;
	if (!config->admin_listen.port)
		return;
	addr_text_port(&config->admin_listen, at, sizeof(at));
	if (!config->admin_certificate || !config->admin_certificate[0] ||
	    !config->admin_key || !config->admin_key[0])
		die(at, "\"admin\" needs \"certificate\" and \"key\" for it");
	if (httpd_tls_new(config->admin_certificate, config->admin_key, why,
			  sizeof(why), &o->tls))
		die(at, why);
	o->tcp_fd = httpd_bind_tcp(&config->admin_listen);
	if (o->tcp_fd < 0)
		die(at, err_text(o->tcp_fd));
	log_info("the admin API listens on %s", at);
}

static void open_lifecycle(const struct config *config, struct opened *o)
{
	char at[ADDR_TEXT_SIZE], why[512];
	struct diag d = { 0 };

	o->lifecycle_fd = -1;
	lifecycle_secrets_init(&o->secrets);
	if (lifecycle_secrets_load(config, &o->secrets, &d))
		die("the keys of the lifecycle API or the ingress", d.msg);
	if (!config->lifecycle_listen.port)
		return;
	addr_text_port(&config->lifecycle_listen, at, sizeof(at));
	if (config->lifecycle_insecure)
		log_warn("the lifecycle API at %s asks nobody for a key: who "
			 "reaches it can make containers on this node",
			 at);
	if (config->lifecycle_certificate[0] &&
	    httpd_tls_new(config->lifecycle_certificate, config->lifecycle_key,
			  why, sizeof(why), &o->lifecycle_tls))
		die(at, why);
	o->lifecycle_fd = httpd_bind_tcp(&config->lifecycle_listen);
	if (o->lifecycle_fd < 0)
		die(at, err_text(o->lifecycle_fd));
	log_info("the lifecycle API listens on %s", at);
}

static void open_trust(const struct config *config, struct opened *o)
{
	struct diag d = { 0 };
	char text[1024];

	if (trust_new(config->trust_system, config->trust_files.items,
		      config->trust_files.count, &o->trust, &d))
		die("the trust roots", diag_text(&d, text, sizeof(text)));
}

static int lifecycle_listen(struct control *c, struct opened *o)
{
	lifecycle_give_secrets(c->lifecycle, &o->secrets);
	return httpd_listen_fd(c->lifecycle->httpd, o->lifecycle_fd,
			       o->lifecycle_tls);
}

static struct control *start(struct loop *loop, const struct config *config,
			     struct opened *o)
{
	struct control *c;
	int r;

	r = control_new(loop, config, o->trust, ROLE_FD_SUPERVISOR, &c);
	if (r)
		die("the event loop", err_text(r));
	c->admin_tls = o->tls;
	c->lifecycle_tls = o->lifecycle_tls;
	r = httpd_listen_fd(c->httpd, o->unix_fd, NULL);
	if (!r && o->tcp_fd >= 0)
		r = httpd_listen_fd(c->httpd, o->tcp_fd, o->tls);
	if (!r && o->lifecycle_fd >= 0)
		r = lifecycle_listen(c, o);
	if (r)
		die("the listeners of the admin API", err_text(r));
	if (!c->lifecycle) {
		c->route_keys = o->secrets.routes_text;
		o->secrets.routes_text = (struct buf){ 0 };
	}
	return c;
}

int main(void)
{
	struct opened opened = { 0 };
	struct config *config;
	struct control *c;
	struct loop *loop;
	int status;

	role_init(ROLE_CONTROL, &config);
	open_unix(config, &opened);
	open_tcp(config, &opened);
	open_lifecycle(config, &opened);
	open_trust(config, &opened);
	webhook_prepare(config);
	role_confine(ROLE_CONTROL, config);

	if (loop_new(&loop))
		die("the event loop", "out of descriptors");
	c = start(loop, config, &opened);
	status = control_run(c);

	control_free(c);
	httpd_tls_free(opened.tls);
	httpd_tls_free(opened.lifecycle_tls);
	trust_free(opened.trust);
	loop_free(loop);
	config_free(config);
	return status;
}
