/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - what all file work has in common: threads, and its end */

#include "src/execd/files/files.h"

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/execd.h"
#include "src/execd/files/workers.h"

int files_new(struct execd *e, struct files **ret)
{
	struct files *f = must_alloc(sizeof(*f));
	int r;

	f->execd = e;
	list_init(&f->live);
	r = workers_new(e->loop, &f->workers);
	if (r) {
		free(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct files *files_free(struct files *f)
{
	struct files_live *l;

	if (!f)
		return NULL;
	f->workers = workers_free(f->workers);
	if (f->workers) {
		log_warn("left work on files behind: a file system did not "
			 "answer");
		return NULL;
	}
	while ((l = list_first(&f->live, struct files_live, link))) {
		list_remove(&l->link);
		l->stop(l);
	}
	free(f);
	return NULL;
}
