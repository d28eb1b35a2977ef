/* SPDX-License-Identifier: Apache-2.0 */
/* chain.c - which connections leave by way of the proxy */

#include "gateway/upstream/chain.h"

#include "gateway/upstream/relay.h"
#include "src/base/err.h"
#include "src/role/config.h"

struct chain {
	struct authority proxy;
	bool tls, resolves;
	/* noProxy, taken apart */
	struct cidr *nets;
	struct host *names;
	unsigned net_count, name_count;
	struct list relays;
};

/* An address is a network of one. The parser of the configuration let nothing
 * else pass. */
static void chain_except(struct chain *c, struct span text)
{
	struct host *name = &c->names[c->name_count];
	struct cidr *net = &c->nets[c->net_count];

	if (cidr_parse(text, net))
		c->net_count++;
	else if (host_canon(span_from(text, span_starts(text, SPAN("."))),
			    name))
		c->name_count++;
}

struct chain *chain_new(const struct config *config)
{
	const struct config_strings *except = &config->no_proxy;
	struct chain *c;
	unsigned i;

	if (!config->upstream_proxy[0])
		return NULL;
	c = must_alloc(sizeof(*c));
	must(authority_parse(span_str(config->upstream_proxy), 0, &c->proxy));
	c->tls = config->upstream_proxy_tls;
	c->resolves = config->upstream_proxy_resolves;
	c->nets = must_alloc((except->count + 1) * sizeof(*c->nets));
	c->names = must_alloc((except->count + 1) * sizeof(*c->names));
	for (i = 0; i < except->count; i++)
		chain_except(c, span_str(except->items[i]));
	list_init(&c->relays);
	return c;
}

struct chain *chain_free(struct chain *c)
{
	if (!c)
		return NULL;
	relays_free(&c->relays);
	free(c->nets);
	free(c->names);
	free(c);
	return NULL;
}

static bool is_direct_name(const struct chain *c, struct span host)
{
	unsigned i;

	for (i = 0; host.len && i < c->name_count; i++)
		if (span_eq(host, host_span(&c->names[i])) ||
		    host_is_below(host, host_span(&c->names[i])))
			return true;
	return false;
}

static bool is_direct_address(const struct chain *c, const struct addr *address)
{
	unsigned i;

	for (i = 0; address && i < c->net_count; i++)
		if (cidr_has(&c->nets[i], address))
			return true;
	return false;
}

bool chain_takes(const struct chain *c, struct span host,
		 const struct addr *address)
{
	return c && !is_direct_name(c, host) && !is_direct_address(c, address);
}

bool chain_resolves(const struct chain *c, struct span host)
{
	return c && c->resolves && !is_direct_name(c, host);
}

const struct authority *chain_proxy(const struct chain *c)
{
	return &c->proxy;
}

bool chain_tls(const struct chain *c)
{
	return c->tls;
}

struct list *chain_relays(struct chain *c)
{
	return &c->relays;
}
