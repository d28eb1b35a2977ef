/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - parts of a form become files
 *
 * How it works: a metadata part makes a pair, which waits; a file part opens
 * the oldest pair that waits and writes it. Pairs stay in their order; when the
 * form is whole each is put in place. The first OPEN_MAX stay open until then,
 * so that a daemon that is killed leaves nothing behind; more than that wait
 * under a hidden name.
 */

#include "src/execd/files/upload.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/list.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/path.h"
#include "src/execd/files/save.h"
#include "src/text/json.h"
#include "src/wire/multipart.h"

struct pair {
	struct list link;
	char *path;
	struct permission permission;
	struct save save;
};

enum { OPEN_MAX = 64 };

enum part { PART_NONE, PART_METADATA, PART_FILE, PART_OTHER };

struct upload {
	struct multipart form;
	enum part part;
	struct buf metadata; /* of the part being read */
	struct list waiting, written;
	struct pair *pair;   /* being written */
	struct span pending; /* bytes of it that wait for a FIFO */
	size_t memory;
	unsigned metadata_count, file_count;
	bool checked;
};

static int wrong(struct fault *f, enum answer_code code, const char *text)
{
	return fault_set(f, 400, code, "%s", text);
}

struct upload *upload_new(struct span content_type, struct fault *f)
{
	struct upload *u = must_alloc(sizeof(*u));
	enum multipart_error error;

	list_init(&u->waiting);
	list_init(&u->written);
	buf_init(&u->metadata, UPLOAD_METADATA_MAX);
	error = multipart_init(&u->form, content_type);
	if (!error)
		return u;
	(void)wrong(f, ANSWER_INVALID_FILE, multipart_error_text(error));
	return upload_free(u);
}

static void pair_free(struct pair *p)
{
	list_remove(&p->link);
	save_fini(&p->save);
	free(p->path);
	free(p);
}

struct upload *upload_free(struct upload *u)
{
	struct pair *p;

	if (!u)
		return NULL;
	while ((p = list_first(&u->waiting, struct pair, link)))
		pair_free(p);
	while ((p = list_first(&u->written, struct pair, link)))
		pair_free(p);
	multipart_fini(&u->form);
	buf_fini(&u->metadata);
	free(u);
	return NULL;
}

/* -- metadata ------------------------------------------------------------- */

static int metadata_fault(struct fault *f, unsigned count, const struct diag *d)
{
	return fault_set(f, 400, ANSWER_INVALID_FILE_METADATA,
			 "metadata part %u: %s", count, d->msg);
}

/* The pair that a metadata part describes, at the end of those that wait. */
static int pair_add(struct upload *u, const struct json *j, struct diag *d)
{
	struct span path = SPAN("");
	char expanded[PATH_BYTES];
	struct permission permission;
	struct pair *p;
	int r;

	r = json_want(j, JSON_KIND_OBJECT, "metadata", d);
	if (!r)
		r = json_get_text(j, "metadata", "path", &path, d);
	if (r < 0)
		return r;
	r = path_expand(path, expanded, d);
	if (!r)
		r = permission_parse(j, &permission, d);
	if (r)
		return r;

	u->memory += sizeof(*p) + 3 * strlen(expanded) + 128;
	if (u->memory > UPLOAD_PENDING_MAX)
		return diag_set(d, 0, 0,
				"found more files than one form may bring");
	p = must_alloc(sizeof(*p));
	save_init(&p->save);
	list_init(&p->link);
	list_push(&u->waiting, &p->link);
	p->path = must_strdup(expanded);
	p->permission = permission;
	return 0;
}

static int metadata_end(struct upload *u, struct fault *f)
{
	struct json *j CLEANUP_JSON = NULL;
	struct diag d = { 0 };
	int r;

	r = json_parse(buf_peek(&u->metadata), &j, &d);
	if (!r)
		r = pair_add(u, j, &d);
	buf_clear(&u->metadata);
	return r ? metadata_fault(f, u->metadata_count, &d) : 0;
}

/* -- parts ---------------------------------------------------------------- */

static int file_begin(struct upload *u, struct fault *f)
{
	struct pair *p = list_first(&u->waiting, struct pair, link);

	if (!p)
		return fault_set(f, 400, ANSWER_INVALID_FILE,
				 "file part %u came before its metadata part",
				 u->file_count);
	list_remove(&p->link);
	list_push(&u->written, &p->link);
	u->pair = p;
	return save_open(&p->save, p->path, &p->permission, f);
}

static int part_begin(struct upload *u, const struct multipart_event *ev,
		      struct fault *f)
{
	bool is_metadata = span_eq(ev->name, SPAN("metadata"));
	bool is_file = span_eq(ev->name, SPAN("file"));

	u->part = is_metadata ? PART_METADATA
		  : is_file   ? PART_FILE
			      : PART_OTHER;
	if (u->part != PART_OTHER && !ev->filename.len)
		return wrong(f,
			     is_metadata ? ANSWER_INVALID_FILE_METADATA
					 : ANSWER_INVALID_FILE_CONTENT,
			     is_metadata
				     ? "found a part \"metadata\" without a "
				       "filename: it has to be sent as a file"
				     : "found a part \"file\" without a "
				       "filename: it has to be sent as a file");
	u->metadata_count += is_metadata;
	u->file_count += is_file;
	return is_file ? file_begin(u, f) : 0;
}

static int part_bytes(struct upload *u, struct span bytes, struct fault *f)
{
	int r;

	if (u->part == PART_METADATA && buf_put(&u->metadata, bytes))
		return wrong(f, ANSWER_INVALID_FILE_METADATA,
			     "found a metadata part of more than 64 KiB");
	if (u->part != PART_FILE)
		return 0;
	r = save_write(&u->pair->save, &bytes, f);
	if (r == SAVE_WAIT)
		u->pending = bytes;
	return r;
}

static int file_end(struct upload *u, struct fault *f)
{
	int r;

	r = save_close(&u->pair->save, f);
	return r || u->file_count <= OPEN_MAX ? r
					      : save_shelve(&u->pair->save, f);
}

static int part_end(struct upload *u, struct fault *f)
{
	enum part part = u->part;

	u->part = PART_NONE;
	if (part == PART_METADATA)
		return metadata_end(u, f);
	return part == PART_FILE ? file_end(u, f) : 0;
}

static int on_event(struct upload *u, const struct multipart_event *ev,
		    struct fault *f)
{
	switch (ev->kind) {
	case MULTIPART_PART:
		return part_begin(u, ev, f);
	case MULTIPART_BYTES:
		return part_bytes(u, ev->bytes, f);
	case MULTIPART_PART_END:
		return part_end(u, f);
	case MULTIPART_END:
		return 0;
	}
	abort();
}

/* -- the form ------------------------------------------------------------- */

int upload_feed(struct upload *u, struct span *in, struct fault *f)
{
	struct multipart_event ev;
	int r = 0;

	if (u->pending.len)
		r = save_write(&u->pair->save, &u->pending, f);
	while (!r) {
		r = multipart_next(&u->form, in, &ev);
		if (!r)
			return 0;
		r = r < 0 ? wrong(f, ANSWER_INVALID_FILE,
				  multipart_error_text((enum multipart_error) -
						       r))
			  : on_event(u, &ev, f);
	}
	return r;
}

size_t upload_pending(const struct upload *u)
{
	return u->pending.len;
}

static int check(struct upload *u, struct fault *f)
{
	enum multipart_error error = multipart_end(&u->form);

	if (error)
		return wrong(f, ANSWER_INVALID_FILE,
			     multipart_error_text(error));
	if (!u->metadata_count)
		return wrong(f, ANSWER_INVALID_FILE_METADATA,
			     "found no part \"metadata\"");
	if (!u->file_count)
		return wrong(f, ANSWER_INVALID_FILE_CONTENT,
			     "found no part \"file\"");
	if (u->metadata_count != u->file_count)
		return fault_set(f, 400, ANSWER_INVALID_FILE,
				 "found %u metadata parts and %u file parts, "
				 "expected as many of both",
				 u->metadata_count, u->file_count);
	return 0;
}

int upload_finish(struct upload *u, struct fault *f)
{
	struct pair *p;
	int r;

	if (!u->checked) {
		r = check(u, f);
		if (r)
			return r;
		u->checked = true;
	}
	p = list_first(&u->written, struct pair, link);
	if (!p)
		return 0;
	r = save_commit(&p->save, f);
	if (r)
		return r;
	pair_free(p);
	return UPLOAD_MORE;
}
