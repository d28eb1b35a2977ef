/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c - routing, the table and the way to the queue, put in place together
 *
 * What the table says is fence_script.c. nft makes one kernel transaction of
 * it, so that there is no moment without rules.
 */

#include "src/role/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/role/config.h"
#include "src/role/drop.h"
#include "src/role/fence_queue.h"
#include "src/role/nft.h"
#include "src/role/route.h"
#include "src/role/tool.h"

enum {
	SCRIPT_BYTES_MAX = 128 * 1024,
	LIST_TIMEOUT_MS = 20 * 1000,
};

#define TABLE FENCE_TABLE

static int table_replace(const struct config *config,
			 const struct fence_rules *rules)
{
	struct buf script = BUF_INIT(SCRIPT_BYTES_MAX);
	int r = fence_script(config, rules, &script);

	if (!r)
		r = nft_script(buf_peek(&script), false);
	buf_fini(&script);
	return r;
}

int fence_route(const struct config *config, bool ipv6)
{
	int r = route_install(AF_INET, config->fwmark, config->route_table);

	if (!r && ipv6)
		r = route_install(AF_INET6, config->fwmark,
				  config->route_table);
	return r;
}

int fence_install(const struct config *config, struct fence_rules *ret)
{
	struct fence_rules rules = { .ipv6 = true };
	int r = fence_route(config, true);

	if (r == -EAFNOSUPPORT) {
		log_info(
			"found no IPv6 on this node: sandboxes have IPv4 only");
		rules.ipv6 = false;
		r = 0;
	}
	if (r) {
		log_error("could not route marked packets to ourselves: %s%s",
			  err_text(r),
			  r == -ENETDOWN ? " (is the interface lo up?)" : "");
		return r;
	}
	rules.queue = fence_queue_install(config, rules.ipv6);
	rules.tells = drop_may_tell(config);
	if (!rules.tells)
		log_info("this kernel has no packet log (NFLOG) for our rules: "
			 "dropped packets are recorded without addresses");
	r = table_replace(config, &rules);
	if (!r)
		*ret = rules;
	return r;
}

static bool is_on(const char *path)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	char digit = '0';

	return fd >= 0 && read(fd, &digit, 1) == 1 && digit != '0';
}

unsigned fence_forwards(void)
{
	return (is_on("/proc/sys/net/ipv4/ip_forward") ? FENCE_FORWARDS_V4
						       : 0u) |
	       (is_on("/proc/sys/net/ipv6/conf/all/forwarding")
			? FENCE_FORWARDS_V6
			: 0u);
}

int fence_forget_flows(void)
{
	int r = fence_queue_forget();

	if (r)
		log_error("could not end the flows of an earlier daemon: %s",
			  err_text(r));
	return r;
}

static int unroute(const struct config *config)
{
	int v4 = route_remove(AF_INET, config->fwmark, config->route_table);
	int v6 = route_remove(AF_INET6, config->fwmark, config->route_table);
	int r = v4 ? v4 : v6;

	if (r)
		log_error("could not remove the routing rule: %s", err_text(r));
	return r;
}

int fence_close(const struct config *config)
{
	int r = table_replace(config, NULL);

	fence_queue_remove(config);
	return r ? r : unroute(config);
}

int fence_remove(const struct config *config)
{
	int r = nft_script(SPAN("table " TABLE "\ndelete table " TABLE "\n"),
			   false);

	fence_queue_remove(config);
	return r ? r : unroute(config);
}

int fence_read(struct buf *out)
{
	/* not the counters, not who asked lately */
	const char *const argv[] = { nft_path(), "-s",	 "-t",	      "list",
				     "table",	 "inet", "sallyport", NULL };
	int r = tool_run(argv, SPAN_NONE, out, LIST_TIMEOUT_MS);

	if (r > 0) {
		buf_clear(out); /* the complaint: there is no such table */
		return 0;
	}
	return r;
}
