/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - which version of its API a Docker daemon is asked for
 *
 * What we use has been the same since 1.41 (Docker 20.10). A daemon that has
 * given that version up says from where on it serves: that is asked for then.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/docker/inside.h"
#include "src/text/json.h"

enum { ASKED_MAJOR = 1, ASKED_MINOR = 41 };

struct meeting {
	struct docker *docker;
	docker_fn *fn;
	void *ctx;
};

struct version {
	uint64_t major, minor;
};

static bool version_parse(struct span text, struct version *ret)
{
	struct span major = span_cut(&text, '.');

	return span_parse_u64(major, &ret->major) &&
	       span_parse_u64(text, &ret->minor) && ret->major < 100 &&
	       ret->minor < 10000;
}

static bool version_before(const struct version *a, const struct version *b)
{
	return a->major < b->major ||
	       (a->major == b->major && a->minor < b->minor);
}

static void version_take(struct docker *d, const struct version *least,
			 const struct version *newest)
{
	const struct version asked = { ASKED_MAJOR, ASKED_MINOR };

	d->major = newest->major;
	d->minor = newest->minor;
	if (version_before(&asked, least))
		(void)snprintf(d->version, sizeof(d->version), "%u.%u",
			       (unsigned)least->major, (unsigned)least->minor);
}

bool docker_serves(const struct docker *d, unsigned major, unsigned minor)
{
	const struct version newest = { d->major, d->minor };
	const struct version wanted = { major, minor };

	return !version_before(&newest, &wanted);
}

static void on_version(void *ctx, const struct docker_answer *a)
{
	const struct version asked = { ASKED_MAJOR, ASKED_MINOR };
	struct version least, newest;
	struct docker_answer no = *a;
	struct meeting *m = ctx;
	struct docker *d = m->docker;

	if (docker_is_ok(a)) {
		if (!version_parse(json_text(json_find(a->json, "ApiVersion")),
				   &newest) ||
		    !version_parse(
			    json_text(json_find(a->json, "MinAPIVersion")),
			    &least)) {
			no.status = -EPROTO;
			no.message = "the Docker daemon did not say which "
				     "versions of its API it serves";
		} else if (version_before(&newest, &asked)) {
			no.status = -EPROTO;
			no.message = "the Docker daemon is older than 20.10";
		} else {
			version_take(d, &least, &newest);
		}
	}
	m->fn(m->ctx, &no);
}

void docker_meet(struct docker *d, docker_fn *fn, void *ctx)
{
	static const struct docker_request q = {
		.method = "GET",
		.path = "/version",
		.unversioned = true,
	};
	struct meeting *m = must_alloc(sizeof(*m));

	*m = (struct meeting){ d, fn, ctx };
	docker_begin(d, &q, on_version, m)->owns_ctx = true;
}
