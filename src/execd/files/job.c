/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - from a handler to a thread and back to the answer */

#include "src/execd/files/job.h"

#include "src/base/clock.h"
#include "src/execd/execd.h"
#include "src/execd/files/files.h"

enum { ANSWER_MAX = 64 * 1024 * 1024 };

static enum work_next job_step(struct work *w)
{
	struct job *j = container_of(w, struct job, work);
	uint64_t until = clock_ms() + WORK_SLICE_MS;

	while (j->run(j))
		if (clock_ms() >= until)
			return WORK_AGAIN;
	j->over = true;
	return WORK_DONE;
}

static void job_done(struct work *w)
{
	struct job *j = container_of(w, struct job, work);

	if (!j->over)
		(void)fault_set(&j->fault, 503, ANSWER_RUNTIME_ERROR,
				"the daemon is ending");
	if (fault_is_set(&j->fault))
		fault_answer(&j->fault, j->request);
	else if (buf_len(&j->json))
		answer_json(j->request, 200, &j->json);
	else
		answer_ok(j->request);
	buf_fini(&j->json);
	j->free(j);
}

void job_start(struct execd *e, struct httpd_request *r, struct job *j)
{
	list_init(&j->work.link);
	j->work.step = job_step;
	j->work.done = job_done;
	identity_of(r, &j->work.as);
	j->request = r;
	j->fault = (struct fault){ 0 };
	j->over = false;
	buf_init(&j->json, ANSWER_MAX);
	workers_give(e->files->workers, &j->work);
}
