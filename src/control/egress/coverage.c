/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.c - the policy is asked as the gateway will ask it */

#include "src/control/egress/coverage.h"

#include <stdio.h>

#include "policy/binding.h"
#include "policy/policy.h"
#include "src/base/diag.h"
#include "src/base/log.h"
#include "src/control/egress/net_policy.h"
#include "src/wire/host.h"

enum { SHOWN = 128, PROBE_SIZE = HOST_MAX + 16 };

static int refuse_host(const struct binding *b, struct span host,
		       const char *why, struct diag *d)
{
	char name[SHOWN];

	return diag_set(d, 0, 0, "binding \"%s\" host \"%.*s\" %s",
			log_escape(b->name, name, sizeof(name)), SPAN_FMT(host),
			why);
}

static int host_check(const struct binding *b, struct span host,
		      const struct snapshot *overlay,
		      const struct snapshot *policy, struct diag *d)
{
	struct policy_query q = {
		.stage = POLICY_CONNECT,
		.protocol = PROTOCOL_TCP,
		.host = host,
	};
	char probe[PROBE_SIZE];
	struct verdict v = { 0 };
	unsigned i;

	if (span_starts(host, SPAN("*."))) {
		(void)snprintf(probe, sizeof(probe), "probe.%.*s",
			       SPAN_FMT(span_from(host, 2)));
		q.host = span_str(probe);
	}
	for (i = 0; i < b->port_count; i++) {
		q.port = b->ports[i];
		policy_match(overlay, policy, &q, &v);
		if (v.kind == VERDICT_ALLOW)
			continue;
		return refuse_host(b, host,
				   v.source == VERDICT_DEFAULT
					   ? "is not covered by an explicit "
					     "allow egress rule"
					   : "is denied by an egress rule",
				   d);
	}
	return 0;
}

int coverage_check(const struct binding *b, const struct net_policy *p,
		   const struct snapshot *overlay,
		   const struct snapshot *policy, struct diag *d)
{
	unsigned i;
	int r = 0;

	if (!p->count && !p->default_allow)
		return diag_set(d, 0, 0,
				"credential bindings require explicit "
				"networkPolicy.egress allow rules");
	for (i = 0; i < b->hosts.count && !r; i++)
		r = host_check(b, b->hosts.items[i], overlay, policy, d);
	return r;
}

int coverage_check_ports(const struct binding *b, struct diag *d)
{
	char name[SHOWN];
	unsigned i;

	for (i = 0; i < b->port_count; i++)
		if (b->ports[i] != 80 && b->ports[i] != 443)
			return diag_set(d, 0, 0,
					"binding \"%s\" port %u is not a "
					"configured transparent intercept port",
					log_escape(b->name, name, sizeof(name)),
					b->ports[i]);
	return 0;
}
