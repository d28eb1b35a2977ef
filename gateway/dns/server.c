/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the DNS server that sandboxes see: limits, birth and death
 *
 * Questions come in by server_udp.c and server_tcp.c and are answered in
 * question.c.
 */

#include "gateway/dns/server.h"

#include "gateway/dns/question.h"
#include "src/base/err.h"

enum {
	IDLE_MS = 10 * 1000,
	QUERIES_MAX = 4096,
	CLIENT_QUERIES_MAX = 256,
	CONNECTIONS_MAX = 1024,
	CLIENT_CONNECTIONS_MAX = 32,
};

static void or_default(unsigned *value, unsigned standard)
{
	if (!*value)
		*value = standard;
}

int dns_server_new(struct loop *loop, struct resolver *resolver,
		   const struct dns_server_config *config,
		   const struct dns_server_ops *ops, void *ctx,
		   struct dns_server **ret)
{
	struct dns_server *s = must_alloc(sizeof(*s));

	must(config->counters != NULL);
	s->loop = loop;
	s->resolver = resolver;
	s->counters = config->counters;
	s->ops = ops;
	s->ctx = ctx;
	s->config = *config;
	or_default(&s->config.idle_ms, IDLE_MS);
	or_default(&s->config.queries_max, QUERIES_MAX);
	or_default(&s->config.client_queries_max, CLIENT_QUERIES_MAX);
	or_default(&s->config.connections_max, CONNECTIONS_MAX);
	or_default(&s->config.client_connections_max, CLIENT_CONNECTIONS_MAX);
	map_init(&s->loads);
	list_init(&s->sockets);
	list_init(&s->connections);
	*ret = s;
	return 0;
}

struct dns_server *dns_server_free(struct dns_server *s)
{
	if (!s)
		return NULL;
	dns_server_close_udp(s);
	dns_server_close_tcp(s);
	must(!s->questions && !map_count(&s->loads));
	map_fini(&s->loads);
	free(s);
	return NULL;
}
