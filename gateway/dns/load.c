/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - what each client of the DNS server has under way */

#include "gateway/dns/question.h"
#include "src/base/err.h"

static void load_key(const struct dns_client *client, uint8_t key[20])
{
	memcpy(key, client->source.ip, 16);
	memcpy(key + 16, &client->ifindex, 4);
}

struct client_load *load_at(struct dns_server *s,
			    const struct dns_client *client)
{
	struct client_load *load;
	uint8_t key[20];

	load_key(client, key);
	load = map_find(&s->loads, span_of(key, sizeof(key)));
	if (load)
		return load;
	load = must_alloc(sizeof(*load));
	load->server = s;
	memcpy(load->key, key, sizeof(key));
	(void)map_set(&s->loads, span_of(key, sizeof(key)), load);
	return load;
}

void load_settle(struct client_load *load)
{
	if (load->questions || load->connections)
		return;
	(void)map_take(&load->server->loads,
		       span_of(load->key, sizeof(load->key)));
	free(load);
}
