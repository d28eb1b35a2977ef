/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.c - makes the sandboxes' network, or looks whether it is still right
 *
 * Traffic between containers is off: our lock says the same, and two locks are
 * no harm. Docker rewrites no addresses: nothing of a sandbox leaves under its
 * own address, since the gateway makes the connections and the fence gives
 * flows that it allows the node's address.
 */

#include "src/control/lifecycle/bridge.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/network.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { BODY_MAX = 4096 };

struct ensuring {
	struct docker *docker;
	const struct network *network;
	bool was_taken; /* by another one that made it meanwhile */
	bridge_fn *fn;
	void *ctx;
};

/* What an older network does not have it works without: Docker from 28 on
 * announces the addresses of a container while its port is not in the lock yet.
 * Nobody needs to hear them, as an address goes with a hardware address here.
 */
static const struct {
	const char *name, *value;
	bool is_vital;
} options[] = {
	{ "com.docker.network.bridge.name", CONFIG_BRIDGE, true },
	{ "com.docker.network.bridge.enable_icc", "false", true },
	{ "com.docker.network.bridge.enable_ip_masquerade", "false", true },
	{ "com.docker.network.advertise_addr_nmsgs", "0", false },
};

static void ensuring_end(struct ensuring *e, const char *why)
{
	e->fn(e->ctx, why);
	free(e);
}

/* -- making it ------------------------------------------------------------ */

static void put_subnet(struct json_out *o, const struct cidr *net,
		       const struct addr *gateway)
{
	char text[ADDR_TEXT_SIZE];

	json_open_object(o, NULL);
	json_put_str(o, "Subnet", cidr_text(net, text, sizeof(text)));
	json_put_str(o, "Gateway", addr_text(gateway, text, sizeof(text)));
	json_close(o);
}

static int network_emit(struct buf *out, const struct network *n)
{
	struct addr v4, v6;
	struct json_out o;
	size_t i;

	network_gateways(n, &v4, &v6);
	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "Name", NETWORK_NAME);
	json_put_str(&o, "Driver", "bridge");
	json_put_bool(&o, "CheckDuplicate", true);
	json_put_bool(&o, "EnableIPv6", true);
	json_open_object(&o, "IPAM");
	json_open_array(&o, "Config");
	put_subnet(&o, network_subnet4(n), &v4);
	put_subnet(&o, network_subnet6(n), &v6);
	json_close(&o);
	json_close(&o);
	json_open_object(&o, "Options");
	for (i = 0; i < ARRAY_LEN(options); i++)
		json_put_str(&o, options[i].name, options[i].value);
	json_close(&o);
	json_close(&o);
	return json_done(&o);
}

static void network_look(struct ensuring *e);

static void on_made(void *ctx, const struct docker_answer *a)
{
	struct ensuring *e = ctx;
	char why[512];

	if (a->status == 409 && !e->was_taken) {
		e->was_taken = true;
		network_look(e);
		return;
	}
	(void)snprintf(why, sizeof(why),
		       "the network " NETWORK_NAME " could not be made: %s",
		       a->message);
	ensuring_end(e, docker_is_ok(a) ? NULL : why);
}

static void network_make(struct ensuring *e)
{
	struct buf body = BUF_INIT(BODY_MAX);

	must(!network_emit(&body, e->network));
	(void)docker_ask(e->docker, "POST", "/networks/create", buf_peek(&body),
			 on_made, e);
	buf_fini(&body);
}

/* -- looking at it -------------------------------------------------------- */

static bool has_subnet(const struct json *network, const struct cidr *net)
{
	const struct json *all =
		json_find(json_find(network, "IPAM"), "Config");
	struct cidr found;

	json_for_each(it,
		      all) if (cidr_parse(json_text(json_find(it, "Subnet")),
					  &found) &&
			       found.prefix == net->prefix &&
			       !memcmp(found.ip, net->ip,
				       sizeof(found.ip))) return true;
	return false;
}

/* What is wrong with it, or NULL. */
static const char *network_fault(const struct json *j, const struct network *n)
{
	const struct json *have = json_find(j, "Options");
	size_t i;

	for (i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].is_vital &&
		    !span_eq(json_text(json_find(have, options[i].name)),
			     span_str(options[i].value)))
			return options[i].name;
	if (!has_subnet(j, network_subnet4(n)))
		return "lifecycle.subnet4";
	if (!has_subnet(j, network_subnet6(n)))
		return "lifecycle.subnet6";
	return NULL;
}

static void on_looked(void *ctx, const struct docker_answer *a)
{
	struct ensuring *e = ctx;
	const char *fault;
	char why[512];

	if (a->status == 404) {
		network_make(e);
		return;
	}
	if (!docker_is_ok(a)) {
		ensuring_end(e, a->message);
		return;
	}
	fault = network_fault(a->json, e->network);
	(void)snprintf(why, sizeof(why),
		       "there is a network " NETWORK_NAME " that differs in "
		       "%s: remove it (docker network rm " NETWORK_NAME ")",
		       fault ? fault : "");
	ensuring_end(e, fault ? why : NULL);
}

static void network_look(struct ensuring *e)
{
	(void)docker_ask(e->docker, "GET", "/networks/" NETWORK_NAME, SPAN_NONE,
			 on_looked, e);
}

void bridge_ensure(struct docker *d, const struct network *n, bridge_fn *fn,
		   void *ctx)
{
	struct ensuring *e = must_alloc(sizeof(*e));

	*e = (struct ensuring){ d, n, false, fn, ctx };
	network_look(e);
}
