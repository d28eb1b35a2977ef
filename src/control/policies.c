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
	map_init(&p->by_name);
	chooser_init(&p->chooser);
	stashes_init(&p->stashes);
}

struct policy_entry *policy_entry_free(struct policy_entry *e)
{
	if (!e)
		return NULL;
	stash_drop(&e->all->stashes, e->compiled);
	free(e->model);
	free(e);
	return NULL;
}

void policies_fini(struct policies *p)
{
	unsigned i;

	chooser_fini(&p->chooser);
	map_fini(&p->by_name);
	for (i = 0; i < p->count; i++)
		policy_entry_free(p->entries[i]);
	free(p->entries);
	policy_entry_free(p->overlay);
	policy_set_free(p->checks);
	stashes_fini(&p->stashes);
	free(p->dropped);
	*p = (struct policies){ 0 };
}

/* -- entries -------------------------------------------------------------- */

struct name_key {
	char bytes[1 + POLICY_NAME_MAX];
	size_t len;
};

static struct span name_key(struct span name, bool from_api,
			    struct name_key *ret)
{
	must(name.len < sizeof(ret->bytes));
	ret->bytes[0] = from_api ? 'a' : 'f';
	if (name.len)
		memcpy(ret->bytes + 1, name.ptr, name.len);
	return span_of(ret->bytes, 1 + name.len);
}

/* The entry of the name and origin, whose number a new text keeps. */
static struct policy_entry *entry_before(const struct policies *p,
					 struct span name, bool from_api)
{
	struct name_key key;

	if (name.len > POLICY_NAME_MAX)
		return NULL;
	return map_find(&p->by_name, name_key(name, from_api, &key));
}

/* Becomes findable, or ceases to be. */
static void entry_enter(struct policies *p, struct policy_entry *e)
{
	struct name_key key;

	(void)map_set(&p->by_name, name_key(e->model->name, e->from_api, &key),
		      e);
	chooser_add(&p->chooser, e);
}

static void entry_leave(struct policies *p, const struct policy_entry *e)
{
	struct name_key key;

	(void)map_take(&p->by_name,
		       name_key(e->model->name, e->from_api, &key));
	chooser_remove(&p->chooser, e);
}

struct policy_entry *policies_find(const struct policies *p, struct span name)
{
	struct policy_entry *e = entry_before(p, name, true);

	return e ? e : entry_before(p, name, false);
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

bool policy_entry_precedes(const struct policy_entry *a,
			   const struct policy_entry *b)
{
	if (a->from_api != b->from_api)
		return a->from_api;
	if (a->from_api)
		return strcmp(a->model->name.ptr, b->model->name.ptr) < 0;
	return a->rank < b->rank;
}

struct policy_entry *policies_select(const struct policies *p,
				     const struct sandbox *s)
{
	struct policy_entry *e;

	if (!p->loaded) /* without the operator's overlays none may hold */
		return NULL;
	e = chooser_find(&p->chooser, s);
	return e || !s->default_policy.len
		       ? e
		       : policies_find(p, s->default_policy);
}

/* -- packing -------------------------------------------------------------- */

void policy_entry_open(const struct policy_entry *e, struct policy_opened *ret)
{
	struct span bytes;

	*ret = (struct policy_opened){ 0 };
	buf_init(&ret->bytes, SNAPSHOT_BYTES_MAX);
	if (!e)
		return;
	stash_open(e->compiled, &ret->bytes);
	bytes = buf_peek(&ret->bytes);
	/* it was sound when it was packed */
	must(!snapshot_open(bytes.ptr, bytes.len, &ret->snapshot));
	ret->snapshot.generation = e->generation;
	if (e->model)
		ret->snapshot.name = e->model->name;
}

void policy_opened_fini(struct policy_opened *o)
{
	buf_fini(&o->bytes);
}

const struct snapshot *policy_opened_get(const struct policy_opened *o)
{
	return o->snapshot.head ? &o->snapshot : NULL;
}

int policy_entry_text(const struct policy_entry *e, struct buf *out)
{
	struct policy_opened opened;
	int r;

	policy_entry_open(e, &opened);
	r = policy_emit_compiled(e->model, &opened.snapshot, out);
	policy_opened_fini(&opened);
	return r;
}

/* Compiled, found sound, packed. */
static int entry_compile(struct policy_entry *e, const struct policy_model *m,
			 const struct policy_set *set)
{
	struct buf bytes CLEANUP(buf_fini) = BUF_INIT(SNAPSHOT_BYTES_MAX);
	struct snapshot snapshot;
	int r;

	r = m ? policy_compile(m, &bytes) : policy_compile_overlay(set, &bytes);
	if (!r)
		r = snapshot_open(buf_peek(&bytes).ptr, buf_len(&bytes),
				  &snapshot);
	if (r)
		return r;
	e->rule_count = snapshot_rule_count(&snapshot);
	e->compiled = stash_keep(&e->all->stashes, buf_peek(&bytes));
	return 0;
}

/* m NULL: the overlay of `set`. To entry_number() before it is used. */
static int entry_new(struct policies *p, const struct policy_model *m,
		     const struct policy_set *set, bool from_api,
		     struct policy_entry **ret, struct diag *d)
{
	struct policy_entry *e = must_alloc(sizeof(*e));
	int r;

	e->all = p;
	e->id = POLICY_ID_NONE;
	e->from_api = from_api;
	r = entry_compile(e, m, set);
	if (r) {
		(void)diag_set(d, 0, 0, "policy %s could not be compiled: %s",
			       m ? m->name.ptr : "overlay", err_text(r));
		policy_entry_free(e);
		return r;
	}
	e->model = m ? policy_model_brief(m) : NULL;
	*ret = e;
	return 0;
}

/* As the successor of what there is now. What compiles to the same keeps the
 * old generation, so that nothing is sent that did not change. */
static void entry_number(struct policies *p, struct policy_entry *e)
{
	const struct policy_entry *before =
		e->model ? entry_before(p, e->model->name, e->from_api)
			 : p->overlay;

	e->generation = before && before->compiled == e->compiled
				? before->generation
				: p->generation + 1;
	e->dirty =
		!before || before->dirty || e->generation != before->generation;
	if (!e->model)
		e->id = POLICY_ID_OVERLAY;
	else if (before)
		e->id = before->id;
	else
		e->id = ++p->last_id;
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
	if (!r)
		entry_number(p, x->overlay);
	for (m = x->set->policies; m && !r; m = m->next) {
		r = entry_new(p, m, x->set, false, &x->entries[x->count], d);
		if (r)
			break;
		entry_number(p, x->entries[x->count]);
		x->entries[x->count]->rank = x->count;
		x->count++;
	}
	return r;
}

/* Numbers of file entries that are not in the new set. */
static void exchange_drop(struct policies *p)
{
	unsigned i;

	for (i = p->api_count; i < p->count; i++)
		if (entry_before(p, p->entries[i]->model->name, false) ==
		    p->entries[i])
			policies_drop_id(p, p->entries[i]->id);
}

static bool has_constrained(const struct policy_rule *rules, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (policy_rule_is_constrained(&rules[i]))
			return true;
	return false;
}

/* What checks of policies by API will need of it stays. */
static void exchange_set(struct policies *p, struct policy_set *set)
{
	p->deny_count = set->deny_count;
	p->allow_count = set->allow_count;
	policy_set_free(p->checks);
	p->checks = set;
	if (!has_constrained(set->deny, set->deny_count) &&
	    !has_constrained(set->allow, set->allow_count))
		p->checks = policy_set_free(set);
}

static void exchange_do(struct policies *p, struct exchange *x)
{
	unsigned i;

	for (i = p->api_count; i < p->count; i++)
		chooser_remove(&p->chooser, p->entries[i]);
	for (i = 0; i < x->count; i++)
		entry_enter(p, x->entries[i]);
	exchange_drop(p); /* those whose names nobody took */
	for (i = p->api_count; i < p->count; i++) {
		if (entry_before(p, p->entries[i]->model->name, false) ==
		    p->entries[i])
			entry_leave(p, p->entries[i]);
		policy_entry_free(p->entries[i]);
	}
	policy_entry_free(p->overlay);

	p->overlay = x->overlay;
	p->count = p->api_count + x->count;
	p->entries = must_realloc(
		p->entries, (p->count + 1) * sizeof(struct policy_entry *));
	memcpy(p->entries + p->api_count, x->entries,
	       x->count * sizeof(struct policy_entry *));
	free(x->entries);
	exchange_set(p, x->set);
	p->loaded = true;
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
	if (p->checks)
		r = policy_check_passthrough(m, p->checks->deny,
					     p->checks->deny_count, d);
	if (p->checks && !r)
		r = policy_check_passthrough(m, p->checks->allow,
					     p->checks->allow_count, d);
	return r;
}

int policies_make(struct policies *p, struct span text, struct span name,
		  struct policy_entry **ret, struct buf *ret_text,
		  struct diag *d)
{
	CLEANUP_POLICY_SET struct policy_set *set = NULL;
	int r;

	r = policy_load_one(text, "api", name, &set, d);
	if (!r && ret_text)
		r = policy_emit(set->policies, ret_text);
	return r ? r : entry_new(p, set->policies, set, true, ret, d);
}

int policies_check(struct policies *p, struct policy_entry *e, struct diag *d)
{
	int r = api_check(p, e->model, d);

	if (!r)
		entry_number(p, e);
	return r;
}

/* Where an API policy of this name is or belongs. */
static unsigned api_place(const struct policies *p, struct span name)
{
	unsigned low = 0, high = p->api_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(p->entries[middle]->model->name.ptr, name.ptr) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void policies_put(struct policies *p, struct policy_entry *e)
{
	unsigned at = api_place(p, e->model->name);

	p->generation++;
	if (at < p->api_count && p->entries[at]->id == e->id) {
		entry_leave(p, p->entries[at]);
		policy_entry_free(p->entries[at]);
		p->entries[at] = e;
		entry_enter(p, e);
		return;
	}
	p->entries = must_realloc(
		p->entries, (p->count + 1) * sizeof(struct policy_entry *));
	memmove(p->entries + at + 1, p->entries + at,
		(p->count - at) * sizeof(struct policy_entry *));
	p->entries[at] = e;
	p->count++;
	p->api_count++;
	entry_enter(p, e);
}

bool policies_remove(struct policies *p, struct span name)
{
	struct policy_entry *e = entry_before(p, name, true);
	unsigned at;

	if (!e)
		return false;
	at = api_place(p, e->model->name);
	policies_drop_id(p, e->id);
	memmove(p->entries + at, p->entries + at + 1,
		(p->count - at - 1) * sizeof(struct policy_entry *));
	p->count--;
	p->api_count--;
	p->generation++;
	entry_leave(p, e);
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
	json_put_u64(o, "rules", e->rule_count);
	json_close(o);
}
