/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - file work whose answer is one piece
 *
 * A handler makes something that begins with a struct job, fills in what was
 * asked and starts it. run() is called on a thread, over and over, and does one
 * bounded bit each time; when it says false the answer is sent from the loop.
 * Texts of the request (its query, its body) stay valid until then.
 */
#pragma once

#include <stdbool.h>

#include "src/base/buf.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/workers.h"

struct execd;
struct httpd_request;

struct job {
	struct work work;
	struct httpd_request *request;
	/* A bit of work. False: it is over, well or with .fault set. */
	bool (*run)(struct job *j);
	/* Frees what belongs to it, and itself. In the loop. */
	void (*free)(struct job *j);
	struct fault fault; /* answered when set, else */
	struct buf json;    /* is, with 200, else an empty 200 */
	bool over;
};

/* run and free are set; the rest is set here. Takes j and the request. */
void job_start(struct execd *e, struct httpd_request *r, struct job *j);
