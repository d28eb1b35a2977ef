/* SPDX-License-Identifier: Apache-2.0 */
/* policies.c - loading, compiling and exchanging the node's policies */

#include "src/control/policies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "policy/compile.h"
#include "policy/load.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/sandboxes.h"
#include "src/text/json.h"

enum { SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024 };

/* A restarted control counts from elsewhere, so that a gateway that lives on
 * never takes a new policy for one that it had before. */
void policies_init(struct policies *p)
{
	uint32_t start = 0;

	must(getrandom(&start, sizeof(start), 0) == sizeof(start));
	*p = (struct policies){ .last_id = start >> 1 };
	p->generation = clock_wall_ms();
}

struct policy_entry *policy_entry_free(struct policy_entry *e)
{
	if (!e)
		return NULL;
	policy_set_free(e->own_set);
	buf_fini(&e->bytes);
	free(e);
	return NULL;
}

void policies_fini(struct policies *p)
{
	unsigned i;

	for (i = 0; i < p->count; i++)
		policy_entry_free(p->entries[i]);
	free(p->entries);
	policy_entry_free(p->overlay);
	policy_set_free(p->files);
	free(p->dropped);
	*p = (struct policies){ 0 };
}

/* -- entries -------------------------------------------------------------- */

struct policy_entry *policies_find(const struct policies *p, struct span name)
{
	unsigned i;

	for (i = 0; i < p->count; i++)
		if (span_eq(p->entries[i]->model->name, name))
			return p->entries[i];
	return NULL;
}

struct policy_entry *policies_at(const struct policies *p, uint32_t id)
{
	unsigned i;

	if (id == POLICY_ID_OVERLAY)
		return p->overlay;
	for (i = 0; i < p->count; i++)
		if (p->entries[i]->id == id)
			return p->entries[i];
	return NULL;
}

struct policy_entry *policies_select(const struct policies *p,
				     const struct sandbox *s)
{
	unsigned i;

	/* Without the operator's overlays nobody's policy may hold. */
	if (!p->files)
		return NULL;
	for (i = 0; i < p->count; i++)
		if (policy_chooses(p->entries[i]->model, s->id, s->labels,
				   s->label_count))
			return p->entries[i];
	return NULL;
}

/* The entry of the same name and origin, whose number a new text keeps. */
static struct policy_entry *entry_before(const struct policies *p,
					 struct span name, bool from_api)
{
	unsigned i;

	for (i = 0; i < p->count; i++)
		if (p->entries[i]->from_api == from_api &&
		    span_eq(p->entries[i]->model->name, name))
			return p->entries[i];
	return NULL;
}

static int entry_finish(struct policy_entry *e, int r, const char *what,
			struct diag *d)
{
	struct span bytes = buf_peek(&e->bytes);

	if (!r)
		r = snapshot_open(bytes.ptr, bytes.len, &e->snapshot);
	if (!r)
		return 0;
	(void)diag_set(d, 0, 0, "policy %s could not be compiled: %s", what,
		       err_text(r));
	return r;
}

/* m NULL: the overlay of `set`. An equal snapshot keeps the old generation, so
 * that nothing is sent that did not change. */
static int entry_new(struct policies *p, const struct policy_model *m,
		     const struct policy_set *set, bool from_api,
		     struct policy_entry **ret, struct diag *d)
{
	struct policy_entry *e = must_alloc(sizeof(*e)), *before;
	int r;

	before = m ? entry_before(p, m->name, from_api) : p->overlay;
	e->model = m;
	e->from_api = from_api;
	e->generation = before ? before->generation : p->generation + 1;
	buf_init(&e->bytes, SNAPSHOT_BYTES_MAX);
	r = m ? policy_compile(m, e->generation, &e->bytes)
	      : policy_compile_overlay(set, e->generation, &e->bytes);
	if (!r && before &&
	    !span_eq(buf_peek(&before->bytes), buf_peek(&e->bytes))) {
		buf_fini(&e->bytes);
		e->generation = p->generation + 1;
		r = m ? policy_compile(m, e->generation, &e->bytes)
		      : policy_compile_overlay(set, e->generation, &e->bytes);
	}
	e->dirty =
		!before || before->dirty || e->generation != before->generation;
	e->id = !m ? POLICY_ID_OVERLAY : before ? before->id : ++p->last_id;
	r = entry_finish(e, r, m ? m->name.ptr : "overlay", d);
	if (r)
		policy_entry_free(e);
	else
		*ret = e;
	return r;
}

static void policies_drop_id(struct policies *p, uint32_t id)
{
	p->dropped = must_realloc(p->dropped,
				  (p->dropped_count + 1) * sizeof(*p->dropped));
	p->dropped[p->dropped_count++] = id;
}

void policies_clear_dropped(struct policies *p)
{
	p->dropped_count = 0;
}

/* -- files ---------------------------------------------------------------- */

/* Everything that is compiled before anything is exchanged. */
struct exchange {
	struct policy_set *set;
	struct policy_entry *overlay;
	struct policy_entry **entries;
	unsigned count;
};

static void exchange_free(struct exchange *x)
{
	unsigned i;

	for (i = 0; i < x->count; i++)
		policy_entry_free(x->entries[i]);
	free(x->entries);
	policy_entry_free(x->overlay);
	policy_set_free(x->set);
}

/* Rules of the overlay that need an opened connection, against the API
 * policies' passthrough lists: load.h could not know of those. */
static int overlay_check(const struct policies *p, const struct policy_set *set,
			 struct diag *d)
{
	const struct policy_model *m;
	unsigned i;
	int r = 0;

	for (i = 0; i < p->api_count && !r; i++) {
		m = p->entries[i]->model;
		r = policy_check_passthrough(m, set->deny, set->deny_count, d);
		if (!r)
			r = policy_check_passthrough(m, set->allow,
						     set->allow_count, d);
	}
	return r;
}

static int exchange_make(struct policies *p, struct exchange *x, struct diag *d)
{
	const struct policy_model *m;
	int r;

	x->entries = must_alloc((x->set->policy_count + 1) *
				sizeof(struct policy_entry *));
	r = overlay_check(p, x->set, d);
	if (!r)
		r = entry_new(p, NULL, x->set, false, &x->overlay, d);
	for (m = x->set->policies; m && !r; m = m->next) {
		r = entry_new(p, m, x->set, false, &x->entries[x->count], d);
		x->count += !r;
	}
	return r;
}

/* Numbers of file entries that are not in the new set. */
static void exchange_drop(struct policies *p, const struct exchange *x)
{
	unsigned i, j;

	for (i = p->api_count; i < p->count; i++) {
		for (j = 0; j < x->count; j++)
			if (x->entries[j]->id == p->entries[i]->id)
				break;
		if (j == x->count)
			policies_drop_id(p, p->entries[i]->id);
	}
}

static void exchange_do(struct policies *p, struct exchange *x)
{
	unsigned i;

	exchange_drop(p, x);
	for (i = p->api_count; i < p->count; i++)
		policy_entry_free(p->entries[i]);
	policy_entry_free(p->overlay);
	policy_set_free(p->files);

	p->overlay = x->overlay;
	p->files = x->set;
	p->count = p->api_count + x->count;
	p->entries = must_realloc(
		p->entries, (p->count + 1) * sizeof(struct policy_entry *));
	memcpy(p->entries + p->api_count, x->entries,
	       x->count * sizeof(struct policy_entry *));
	free(x->entries);
	p->generation++;
}

static int load_dir(const char *dir, struct policy_set **ret, struct diag *d)
{
	if (access(dir, F_OK) && errno == ENOENT)
		return policy_load_texts(NULL, 0, ret, d);
	return policy_load_dir(dir, ret, d);
}

int policies_load_dir(struct policies *p, const char *dir)
{
	struct exchange x = { 0 };
	struct diag d = { 0 };
	int r;

	r = load_dir(dir, &x.set, &d);
	if (!r)
		r = exchange_make(p, &x, &d);
	if (r) {
		exchange_free(&x);
		(void)diag_set(&d, 0, 0, "%s", err_text(r));
		p->error = d;
		return r;
	}
	exchange_do(p, &x);
	p->loaded_ms = clock_wall_ms();
	p->error = (struct diag){ 0 };
	return 0;
}

/* -- by API --------------------------------------------------------------- */

static int api_check(const struct policies *p, const struct policy_model *m,
		     struct diag *d)
{
	const struct policy_entry *there = policies_find(p, m->name);
	int r = 0;

	if (there && !there->from_api)
		return diag_set(d, 0, 0,
				"policy \"%s\" is defined in %s, line %u",
				m->name.ptr, there->model->file.ptr,
				there->model->line);
	if (!there && p->api_count >= POLICY_API_MAX)
		return diag_set(d, 0, 0, "more than %d policies",
				POLICY_API_MAX);
	if (p->files)
		r = policy_check_passthrough(m, p->files->deny,
					     p->files->deny_count, d);
	if (p->files && !r)
		r = policy_check_passthrough(m, p->files->allow,
					     p->files->allow_count, d);
	return r;
}

int policies_make(struct policies *p, struct span text, struct span name,
		  struct policy_entry **ret, struct diag *d)
{
	struct policy_set *set;
	int r;

	r = policy_load_one(text, "api", name, &set, d);
	if (r)
		return r;
	r = api_check(p, set->policies, d);
	if (!r)
		r = entry_new(p, set->policies, set, true, ret, d);
	if (r)
		policy_set_free(set);
	else
		(*ret)->own_set = set;
	return r;
}

/* Where an API policy of this name is or belongs. */
static unsigned api_place(const struct policies *p, struct span name)
{
	unsigned i;

	for (i = 0; i < p->api_count; i++)
		if (strcmp(p->entries[i]->model->name.ptr, name.ptr) >= 0)
			break;
	return i;
}

void policies_put(struct policies *p, struct policy_entry *e)
{
	unsigned at = api_place(p, e->model->name);

	p->generation++;
	if (at < p->api_count && p->entries[at]->id == e->id) {
		policy_entry_free(p->entries[at]);
		p->entries[at] = e;
		return;
	}
	p->entries = must_realloc(
		p->entries, (p->count + 1) * sizeof(struct policy_entry *));
	memmove(p->entries + at + 1, p->entries + at,
		(p->count - at) * sizeof(struct policy_entry *));
	p->entries[at] = e;
	p->count++;
	p->api_count++;
}

bool policies_remove(struct policies *p, struct span name)
{
	struct policy_entry *e = entry_before(p, name, true);
	unsigned at;

	if (!e)
		return false;
	at = api_place(p, name);
	policies_drop_id(p, e->id);
	memmove(p->entries + at, p->entries + at + 1,
		(p->count - at - 1) * sizeof(struct policy_entry *));
	p->count--;
	p->api_count--;
	p->generation++;
	policy_entry_free(e);
	return true;
}

void policy_entry_emit(struct json_out *o, const char *member,
		       const struct policy_entry *e)
{
	json_open_object(o, member);
	json_put_text(o, "name", e->model->name);
	json_put_str(o, "source", e->from_api ? "api" : "file");
	if (!e->from_api) {
		json_put_text(o, "file", e->model->file);
		json_put_u64(o, "line", e->model->line);
	}
	json_put_u64(o, "generation", e->generation);
	json_put_u64(o, "rules", e->model->rule_count);
	json_close(o);
}
