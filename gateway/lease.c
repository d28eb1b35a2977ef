/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - fetch the values that bindings need, then put them in force
 *
 * A job is one set of bindings waiting for its values. The vault answers each
 * request by its serial; a vault that was restarted is asked again for all that
 * is missing. Newer bindings of the same scope replace a job that still waits.
 */

#include <stdio.h>

#include "gateway/inside.h"
#include "gateway/registry/bindings.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/role/config.h"

struct lease_job;

/* One value, asked for and not answered. */
struct lease_request {
	struct list link;	/* in the job */
	struct span credential; /* in the job's bindings */
	uint32_t serial;	/* 0: there was no vault to ask */
};

struct lease_job {
	struct list link; /* in gateway->lease_jobs, oldest first */
	struct list requests;
	struct bindings *bindings;
	char scope[MSG_NAME_SIZE];
};

static void job_free(struct lease_job *job)
{
	struct lease_request *request;

	while ((request = list_first(&job->requests, struct lease_request,
				     link))) {
		list_remove(&request->link);
		free(request);
	}
	(void)bindings_unref(job->bindings);
	list_remove(&job->link);
	free(job);
}

static void request_send(struct gateway *g, const struct lease_job *job,
			 struct lease_request *request)
{
	struct msg_credential body = { 0 };

	request->serial = 0;
	if (!g->vault)
		return;
	(void)snprintf(body.scope, sizeof(body.scope), "%s", job->scope);
	if (!span_copy(request->credential, body.name, sizeof(body.name)))
		return;
	request->serial = chan_serial(g->vault);
	(void)chan_send(g->vault, MSG_GATEWAY_LEASE, request->serial, &body,
			sizeof(body), SPAN_NONE, NULL, 0);
}

/* Everything is here: the workers get it. */
static void job_finish(struct gateway *g, struct lease_job *job)
{
	struct parcel *p = parcel_new(g, PARCEL_BINDINGS);

	bindings_settle(job->bindings);
	(void)snprintf(p->scope, sizeof(p->scope), "%s", job->scope);
	p->bindings = bindings_ref(job->bindings);
	parcel_send(p);
	job_free(job);
	feed_leases_ready(g);
}

static void job_replace(struct gateway *g, const char *scope)
{
	list_for_each(it, &g->lease_jobs)
	{
		struct lease_job *job =
			container_of(it, struct lease_job, link);

		if (strcmp(job->scope, scope) == 0)
			job_free(job);
	}
}

void lease_begin(struct gateway *g, const char *scope, struct bindings *b)
{
	struct lease_job *job = must_alloc(sizeof(*job));
	struct lease_request *request;
	struct span name;
	unsigned i;

	job_replace(g, scope);
	list_init(&job->link);
	list_init(&job->requests);
	job->bindings = b;
	if (!scope[0] && g->config->upstream_proxy_credential[0])
		bindings_need(b,
			      span_str(g->config->upstream_proxy_credential));
	(void)snprintf(job->scope, sizeof(job->scope), "%s", scope);
	list_push(&g->lease_jobs, &job->link);
	for (i = 0; (name = bindings_credential(b, i)).ptr; i++) {
		request = must_alloc(sizeof(*request));
		request->credential = name;
		list_init(&request->link);
		list_push(&job->requests, &request->link);
		request_send(g, job, request);
	}
	if (list_is_empty(&job->requests))
		job_finish(g, job);
}

static struct lease_request *request_find(struct gateway *g, uint32_t serial,
					  struct lease_job **ret_job)
{
	list_for_each(j, &g->lease_jobs)
	{
		*ret_job = container_of(j, struct lease_job, link);
		list_for_each(r, &(*ret_job)->requests)
		{
			struct lease_request *request =
				container_of(r, struct lease_request, link);

			if (request->serial == serial)
				return request;
		}
	}
	return NULL;
}

static void job_take(struct lease_job *job, struct lease_request *request,
		     const struct msg_result *result, struct span value)
{
	struct secret *secret;

	if (result->status)
		log_warn("no lease of credential \"%.*s\": %s",
			 SPAN_FMT(request->credential), result->text);
	else if (secret_dup(value, &secret) == 0)
		bindings_give_lease(job->bindings, request->credential, secret);
	list_remove(&request->link);
	free(request);
}

void lease_on_message(struct gateway *g, struct chan_msg *m)
{
	struct lease_request *request;
	struct lease_job *job;
	struct span value;
	const struct msg_result *result = msg_body(m->type, m->payload, &value);

	if (!result) {
		gateway_accuse(g, ROLE_VAULT);
		return;
	}
	request = m->serial ? request_find(g, m->serial, &job) : NULL;
	if (!request)
		return; /* of a job that was replaced meanwhile */
	job_take(job, request, result, value);
	if (list_is_empty(&job->requests))
		job_finish(g, job);
}

void lease_resume(struct gateway *g)
{
	list_for_each(j, &g->lease_jobs)
	{
		struct lease_job *job = container_of(j, struct lease_job, link);

		list_for_each(r, &job->requests) request_send(
			g, job, container_of(r, struct lease_request, link));
	}
}

void lease_fini(struct gateway *g)
{
	list_for_each(j, &g->lease_jobs)
		job_free(container_of(j, struct lease_job, link));
}
