/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the control role: what the operator says becomes what holds
 *
 * Control reads policies, keeps the registry of sandboxes and the names of
 * credentials, writes values to the vault (and never reads one back), and
 * tells the gateway. It sees no traffic.
 *
 * How it works: the supervisor's channel brings channels to the vault and to
 * the gateway, again whenever one of them was restarted. A new vault channel
 * means: read everything again (load.c). A new gateway channel means: send
 * everything again. Until the vault was read the first time nothing is
 * published, so that a gateway never acts on half of the facts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/control/change.h"
#include "src/control/egress/net_policies.h"
#include "src/control/locks.h"
#include "src/control/policies.h"
#include "src/control/sandboxes.h"
#include "src/control/tokens.h"
#include "src/control/vault_scopes.h"
#include "src/io/loop.h"

struct audit_tails;
struct chan;
struct config;
struct egress_api;
struct file_watch;
struct gateway_link;
struct httpd;
struct lifecycle;
struct load;
struct trust;
struct vault_link;
struct vault_state;
struct webhook;

enum { POLICY_QUIET_MS = 100, CONTROL_REST_MS = 1000 };

/* Of a container: the archive that is put into it has room for so much. */
enum { CA_INSIDE_MAX = 1024 * 1024 };

struct control {
	struct loop *loop;
	const struct config *config;
	const struct trust *trust; /* borrowed; NULL: our CA alone */
	struct chan *supervisor;   /* NULL: it is gone, so we end */
	struct vault_link *vault;
	struct gateway_link *gateway;
	struct httpd *httpd;
	struct audit_tails *tails;
	struct file_watch *policy_watch;
	struct timer node_timer;
	struct timer drain_timer;
	struct timer rest_timer;
	struct change_queue changes;
	int exit_status;
	unsigned draining; /* servers that still answer somebody */

	/* what is known */
	bool loaded;	   /* the vault was read and is there */
	bool ever_loaded;  /* publishing may begin */
	struct load *load; /* a reading that runs */
	struct vault_state *node;
	struct vault_scopes scopes; /* of sandboxes */
	struct net_policies net_policies;
	struct sandboxes sandboxes;
	struct locks locks;
	struct policies policies;
	struct tokens tokens;
	struct buf node_json; /* as last published */
	struct buf ca_pem, ca_bundle;
	struct buf ca_inside;  /* what a container is made to trust, at most
				  CA_INSIDE_MAX */
	struct buf route_keys; /* of an ingress without lifecycle API: the
				  file, for the gateway */
	struct egress_api *egress;
	struct webhook *webhook;     /* NULL: nobody is told */
	struct lifecycle *lifecycle; /* NULL: it is off */
	struct list status_calls;    /* questions to the supervisor */
	/* of the listeners, borrowed; NULL: without TLS. Set by main() */
	struct ssl_ctx_st *admin_tls, *lifecycle_tls;
};

/* Takes supervisor_fd. The config and trust are borrowed. Listeners are added
 * by control_listen(). */
WUNRES int control_new(struct loop *loop, const struct config *config,
		       const struct trust *trust, int supervisor_fd,
		       struct control **ret);
struct control *control_free(struct control *c);
/* For main(): runs the loop until drained; the exit status. */
int control_run(struct control *c);

/* Reads the vault again (what we know is old, or the channel is new). */
void control_reload_vault(struct control *c);
/* Was called by load.c: everything was read. */
void control_loaded(struct control *c);
/* Was called by locks.c: every sandbox is locked to its interface. */
void control_locked(struct control *c);
/* Something is done that needs memory for a moment: a rest follows, in which
 * the system gets it back. */
void control_busy(struct control *c);
/* Files changed, or somebody asked; r may be NULL. */
struct httpd_request;
void control_reload_policies(struct control *c, struct httpd_request *r);
