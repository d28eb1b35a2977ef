/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - pins, hosts file, name servers and own addresses into JSON */

#include "src/control/node.h"

#include <ifaddrs.h>
#include <stdlib.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/map.h"
#include "src/control/file.h"
#include "src/role/config.h"
#include "src/text/hosts.h"
#include "src/text/json.h"
#include "src/wire/host.h"

enum {
	HOSTS_FILE_MAX = 8 * 1024 * 1024,
	RESOLV_MAX = 64 * 1024,
	DNS_PORT = 53
};

#define RESOLV_CONF "/etc/resolv.conf"

/* -- pins ----------------------------------------------------------------- */

static void addr_put(struct json_out *o, const struct addr *a)
{
	char text[ADDR_TEXT_SIZE];

	json_put_str(o, NULL, addr_text(a, text, sizeof(text)));
}

static void pins_put(struct json_out *o, const struct config *config)
{
	const struct config_pin *pin;
	unsigned i, j;

	json_open_object(o, "pins");
	for (i = 0; i < config->pin_count; i++) {
		pin = &config->pins[i];
		json_open_array(o, pin->name);
		for (j = 0; j < pin->addr_count; j++)
			addr_put(o, &pin->addrs[j]);
		json_close(o);
	}
	json_close(o);
}

/* -- hosts: gathered by name, since a name may stand on several lines ------ */

struct named {
	struct named *next; /* in order of appearance */
	struct host host;
	struct addr *addrs;
	unsigned count;
};

struct gathered {
	struct map by_name;
	struct named *first, **last;
};

static void on_host(void *ctx, struct span name, const struct addr *address)
{
	struct gathered *all = ctx;
	struct named *named;
	struct host host;

	if (!host_canon(name, &host))
		return;
	named = map_find(&all->by_name, host_span(&host));
	if (!named) {
		named = must_alloc(sizeof(*named));
		named->host = host;
		*all->last = named;
		all->last = &named->next;
		(void)map_set(&all->by_name, host_span(&host), named);
	}
	named->addrs = must_realloc(named->addrs,
				    (named->count + 1) * sizeof(struct addr));
	named->addrs[named->count++] = *address;
}

static void named_put(struct json_out *o, struct named *named)
{
	unsigned i;

	json_open_array(o, named->host.text);
	for (i = 0; i < named->count; i++)
		addr_put(o, &named->addrs[i]);
	json_close(o);
	free(named->addrs);
	free(named);
}

static void hosts_put(struct json_out *o, const char *path)
{
	struct gathered all = { .last = &all.first };
	struct buf text = BUF_INIT(HOSTS_FILE_MAX);
	struct named *it, *next;

	map_init(&all.by_name);
	if (path[0] && !file_read(path, &text))
		(void)hosts_parse(buf_peek(&text), on_host, &all);
	buf_fini(&text);

	json_open_object(o, "hosts");
	for (it = all.first; it; it = next) {
		next = it->next;
		named_put(o, it);
	}
	json_close(o);
	map_fini(&all.by_name);
}

/* -- name servers --------------------------------------------------------- */

static void server_put(struct json_out *o, const struct addr *a)
{
	char text[ADDR_TEXT_SIZE];

	json_put_str(o, NULL, addr_text_port(a, text, sizeof(text)));
}

/* The "nameserver" lines of resolv.conf(5). */
static void resolv_put(struct json_out *o)
{
	struct buf text = BUF_INIT(RESOLV_MAX);
	struct span rest, line, word;
	struct addr a;
	size_t i;

	if (file_read(RESOLV_CONF, &text))
		buf_clear(&text);
	rest = buf_peek(&text);
	while (rest.len) {
		line = span_trim(span_cut(&rest, '\n'));
		if (!span_starts(line, SPAN("nameserver")))
			continue;
		word = span_trim(span_from(line, 10));
		for (i = 0; i < word.len; i++)
			if (word.ptr[i] == ' ' || word.ptr[i] == '\t')
				break;
		word.len = i;
		if (!addr_parse(word, &a))
			continue;
		a.port = DNS_PORT;
		server_put(o, &a);
	}
	buf_fini(&text);
}

static void upstreams_put(struct json_out *o, const struct config *config)
{
	unsigned i;

	json_open_array(o, "upstreams");
	for (i = 0; i < config->dns_upstream_count; i++)
		server_put(o, &config->dns_upstreams[i]);
	if (!config->dns_upstream_count)
		resolv_put(o);
	json_close(o);
}

/* -- own addresses -------------------------------------------------------- */

static void own_put(struct json_out *o)
{
	struct ifaddrs *all = NULL, *it;
	char text[ADDR_TEXT_SIZE];
	struct cidr cidr;
	struct addr a;

	json_open_array(o, "own");
	if (getifaddrs(&all)) {
		log_warn("could not list the node's addresses");
		all = NULL;
	}
	for (it = all; it; it = it->ifa_next) {
		if (!it->ifa_addr || !addr_from_sockaddr(it->ifa_addr, &a))
			continue;
		memcpy(cidr.ip, a.ip, sizeof(cidr.ip));
		cidr.prefix = 128;
		json_put_str(o, NULL, cidr_text(&cidr, text, sizeof(text)));
	}
	freeifaddrs(all);
	json_close(o);
}

int node_emit(const struct config *config, struct buf *out)
{
	struct json_out o;

	json_start(&o, out);
	json_open_object(&o, NULL);
	pins_put(&o, config);
	hosts_put(&o, config->hosts_file ? config->hosts_file : "");
	upstreams_put(&o, config);
	own_put(&o);
	json_close(&o);
	return json_done(&o);
}
