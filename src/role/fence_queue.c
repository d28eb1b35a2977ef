/* SPDX-License-Identifier: Apache-2.0 */
/* fence_queue.c - nft's queue statement, or the rule of iptables in its place
 *
 * How it works: some kernels have NFQUEUE only as a target of xtables. Then
 * one rule per family, first in the mangle table's PREROUTING, takes what has
 * our mark. It is told from others' by what it says: the mark is ours. Before
 * a rule is made it is looked for, so that there is never more than one.
 *
 * Of the two programs of that name the one that speaks to nf_tables is asked
 * for: it is there whatever the node has chosen for itself, and it works in a
 * confined service, while the legacy one wants CAP_NET_RAW and a lock file in
 * /run. The kernel runs the rules of both.
 *
 * Where the rule is missing, or was never possible, the table's last step
 * drops what it should have taken.
 */

#include "src/role/fence_queue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/role/config.h"
#include "src/role/flow_mark.h"
#include "src/role/netlink.h"
#include "src/role/nfnl.h"
#include "src/role/nft.h"
#include "src/role/tool.h"

enum {
	TOOL_TIMEOUT_MS = 10 * 1000,
	OUTPUT_BYTES_MAX = 64 * 1024,
	SCRIPT_BYTES_MAX = 1024,
	SAID_BYTES_MAX = 300,
	RULES_MAX = 8, /* of ours that are taken away at once */
};

static const char *tool_path(const char *const paths[])
{
	for (; paths[1]; paths++) /* the last one is named in the log */
		if (access(paths[0], X_OK) == 0)
			break;
	return paths[0];
}

static const char *iptables_path(bool ipv6)
{
	static const char *const v4[] = { "/usr/sbin/iptables-nft",
					  "/sbin/iptables-nft",
					  "/usr/sbin/iptables",
					  "/sbin/iptables", NULL };
	static const char *const v6[] = { "/usr/sbin/ip6tables-nft",
					  "/sbin/ip6tables-nft",
					  "/usr/sbin/ip6tables",
					  "/sbin/ip6tables", NULL };

	return tool_path(ipv6 ? v6 : v4);
}

/* verb: "-C", "-I" or "-D". 0, the status of iptables, or -errno. */
static int rule_do(const struct config *config, bool ipv6, const char *verb,
		   struct buf *said)
{
	char mark[16], number[16];
	const char *const argv[] = {
		iptables_path(ipv6),
		"-w",
		"5",
		"-t",
		"mangle",
		verb,
		"PREROUTING",
		"-m",
		"mark",
		"--mark",
		mark,
		"-j",
		"NFQUEUE",
		"--queue-num",
		number,
		NULL,
	};

	(void)snprintf(mark, sizeof(mark), "0x%x", FLOW_MARK_ASK);
	(void)snprintf(number, sizeof(number), "%u", config->queue_number);
	return tool_run(argv, SPAN_NONE, said, TOOL_TIMEOUT_MS);
}

static bool rule_stands(const struct config *config, bool ipv6)
{
	struct buf said = BUF_INIT(OUTPUT_BYTES_MAX);
	int r = rule_do(config, ipv6, "-C", &said);

	buf_fini(&said);
	return r == 0;
}

static bool rule_install(const struct config *config, bool ipv6)
{
	struct buf said = BUF_INIT(OUTPUT_BYTES_MAX);
	char line[SAID_BYTES_MAX];
	int r;

	if (rule_stands(config, ipv6))
		return true;
	r = rule_do(config, ipv6, "-I", &said);
	if (r)
		log_warn("%s could not make the rule of the queue: %s",
			 iptables_path(ipv6),
			 r < 0 ? err_text(r)
			       : log_escape(buf_peek(&said), line,
					    sizeof(line)));
	buf_fini(&said);
	return r == 0;
}

/* iptables keeps a table in nf_tables, made for its first rule; when ours was
 * the only one, nothing is left of it. */
static void table_remove_empty(bool ipv6)
{
	const struct nfnl_table mangle = {
		.family = ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4,
		.name = "mangle",
	};
	CLEANUP_FD int fd = -1;
	uint32_t port;
	struct nfnl n;

	fd = nfnl_open(&port);
	if (fd < 0)
		return;
	nfnl_init(&n);
	nfnl_remove_empty(&n, &mangle, "PREROUTING");
	(void)!nfnl_commit(&n, fd); /* others use it */
	nfnl_fini(&n);
}

static void rule_remove(const struct config *config, bool ipv6)
{
	struct buf said = BUF_INIT(OUTPUT_BYTES_MAX);
	unsigned i;

	for (i = 0; i < RULES_MAX && rule_stands(config, ipv6); i++)
		if (rule_do(config, ipv6, "-D", &said))
			break;
	if (i)
		table_remove_empty(ipv6);
	buf_fini(&said);
}

/* nft reads the statement, the kernel looks whether it could do it, and
 * nothing is changed. */
static bool native_works(const struct config *config)
{
	struct buf script = BUF_INIT(SCRIPT_BYTES_MAX);
	bool works;
	int r;

	r = buf_putf(&script,
		     "table inet sallyport_probe {\n"
		     "\tchain queue {\n"
		     "\t\ttype filter hook prerouting priority mangle;\n"
		     "\t\tmeta mark 0x%x queue num %u\n"
		     "\t}\n}\n",
		     FLOW_MARK_ASK, config->queue_number);
	works = !r && nft_would(buf_peek(&script));
	buf_fini(&script);
	return works;
}

enum queue_kind fence_queue_install(const struct config *config, bool ipv6)
{
	if (native_works(config)) {
		fence_queue_remove(config);
		return QUEUE_NATIVE;
	}
	if (!rule_install(config, false)) {
		log_warn("found no way to ask about packets (neither the queue "
			 "statement of nft nor NFQUEUE of iptables): all but "
			 "TCP and DNS is dropped");
		return QUEUE_NONE;
	}
	if (ipv6 && !rule_install(config, true))
		log_warn("over IPv6 all but TCP and DNS is dropped");
	return QUEUE_XTABLES;
}

void fence_queue_remove(const struct config *config)
{
	rule_remove(config, false);
	rule_remove(config, true);
}

bool fence_queue_stands(const struct config *config, enum queue_kind kind,
			bool ipv6)
{
	if (kind != QUEUE_XTABLES)
		return true;
	return rule_stands(config, false) &&
	       (!ipv6 || rule_stands(config, true));
}

/* One request: delete the entries whose mark has the tag. */
int fence_queue_forget(void)
{
	struct {
		struct nlmsghdr head;
		struct nfgenmsg family;
		struct nlattr mark_attr;
		uint32_t mark;
		struct nlattr mask_attr;
		uint32_t mask;
	} q = {
		.head = {
			.nlmsg_len = sizeof(q),
			.nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 |
				      IPCTNL_MSG_CT_DELETE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
		.family = { .nfgen_family = AF_UNSPEC },
		.mark_attr = { NLA_HDRLEN + sizeof(q.mark), CTA_MARK },
		.mark = htonl(FLOW_MARK_TAG),
		.mask_attr = { NLA_HDRLEN + sizeof(q.mask), CTA_MARK_MASK },
		.mask = htonl(FLOW_MARK_MASK),
	};
	CLEANUP_FD int fd = netlink_open(NETLINK_NETFILTER);
	int r;

	if (fd < 0)
		return fd == -EPROTONOSUPPORT ? 0 : fd;
	r = netlink_do(fd, &q.head);
	/* no connection tracking */
	return r == -EINVAL || r == -ENOENT ? 0 : r;
}
