/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - build a policy set from texts: files in name order, one schema
 *
 * How it works: each text becomes a tree (src/text/doc.h), the tree becomes
 * policies and overlay rules in the set's arena, and the tree is freed before
 * the next text is read. Overlays are gathered as pieces, one a file, and
 * joined at the end, because a rule's index counts over all files. Files of two
 * names are overlays without a tree (policy/always.h). The set reaches the
 * caller only when everything held.
 */

#include "policy/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "policy/always.h"
#include "policy/parse.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/map.h"
#include "src/text/doc.h"

enum { SET_MAX_BYTES = 1024 * 1024 * 1024 };

/* Overlay rules of one file. */
struct piece {
	struct piece *next;
	const struct policy_rule *rules;
	unsigned count;
};

struct overlay {
	struct piece *first, *last;
	unsigned count;
};

struct loader {
	struct policy_set *set;
	struct policy_model *last;
	struct map names; /* of policies */
	struct overlay deny, allow;
	struct diag *diag;
};

static void loader_init(struct loader *l, struct diag *d)
{
	*l = (struct loader){ .diag = d };
	l->set = must_alloc(sizeof(*l->set));
	arena_init(&l->set->arena, SET_MAX_BYTES);
	map_init(&l->names);
}

static void loader_fini(struct loader *l)
{
	map_fini(&l->names);
	l->set = policy_set_free(l->set);
}

static int load_memory(struct loader *l)
{
	return diag_set(l->diag, 0, 0,
			"found more policy than fits into memory");
}

static int load_policy(struct loader *l, const struct policy_parser *p,
		       const struct doc_node *n, struct span name)
{
	const struct policy_model *same;
	struct policy_model *m;
	int r;

	r = policy_parse_one(p, n, name, &m);
	if (r)
		return r;
	same = map_set(&l->names, m->name, m);
	if (same)
		return diag_set(l->diag, n->line, n->col,
				"found a second policy %.*s, expected one (the "
				"first is at %.*s:%u)",
				SPAN_FMT(m->name), SPAN_FMT(same->file),
				same->line);
	if (l->last)
		l->last->next = m;
	else
		l->set->policies = m;
	l->last = m;
	l->set->policy_count++;
	return 0;
}

/* Behind those that are there. line, col: where the piece is. */
static int join_piece(struct loader *l, struct piece *piece, struct overlay *o,
		      uint32_t line, uint32_t col)
{
	if (o->last)
		o->last->next = piece;
	else
		o->first = piece;
	o->last = piece;
	o->count += piece->count;
	if (o->count > POLICY_RULES_MAX)
		return diag_set(l->diag, line, col,
				"found %u overlay rules in all files, expected "
				"at most %d",
				o->count, POLICY_RULES_MAX);
	return 0;
}

static struct overlay *overlay_of(struct loader *l, enum verdict_kind action)
{
	return action == VERDICT_ALLOW ? &l->allow : &l->deny;
}

static int load_overlay(struct loader *l, const struct policy_parser *p,
			const struct doc_node *n, enum verdict_kind action)
{
	struct piece *piece = arena_alloc(p->arena, sizeof(*piece));
	int r;

	if (!piece)
		return load_memory(l);
	r = policy_parse_overlay(p, n, action, &piece->rules, &piece->count);
	return r ? r
		 : join_piece(l, piece, overlay_of(l, action), n->line, n->col);
}

static int load_always(struct loader *l, const struct policy_parser *p,
		       struct span text, enum verdict_kind action)
{
	struct piece *piece = arena_alloc(p->arena, sizeof(*piece));
	int r;

	if (!piece)
		return load_memory(l);
	r = policy_parse_always(p, text, action, &piece->rules, &piece->count);
	return r ? r : join_piece(l, piece, overlay_of(l, action), 0, 0);
}

static int load_root(struct loader *l, const struct policy_parser *p,
		     const struct doc_node *root)
{
	static const char *const known[] = { "policies", "deny", "allow",
					     NULL };
	const struct doc_node *policies = doc_find(root, "policies");
	const struct doc_node *deny = doc_find(root, "deny");
	const struct doc_node *allow = doc_find(root, "allow");
	int r;

	r = doc_check_keys(root, known, l->diag);
	if (!r && policies) {
		r = doc_expect(policies, DOC_LIST, l->diag);
		doc_for_each(it, policies) r =
			r ? r : load_policy(l, p, it, SPAN_NONE);
	}
	if (!r && deny)
		r = load_overlay(l, p, deny, VERDICT_DENY);
	if (!r && allow)
		r = load_overlay(l, p, allow, VERDICT_ALLOW);
	return r;
}

static int load_source(struct loader *l, struct span text, const char *name)
{
	struct policy_parser p = { .arena = &l->set->arena, .diag = l->diag };
	CLEANUP_DOC struct doc *doc = NULL;
	enum verdict_kind action;
	int r;

	if (!diag_is_set(l->diag))
		(void)snprintf(l->diag->file, sizeof(l->diag->file), "%s",
			       name);
	p.file = arena_dup(p.arena, span_str(name));
	if (!p.file.ptr)
		return load_memory(l);
	if (policy_is_always(p.file, &action))
		return load_always(l, &p, text, action);
	r = doc_parse(text, &doc, l->diag);
	return r ? r : load_root(l, &p, doc_root(doc));
}

static int join_overlay(struct loader *l, const struct overlay *o,
			const struct policy_rule **ret, unsigned *ret_count)
{
	struct policy_rule *rules;
	const struct piece *piece;
	unsigned at = 0;

	if (!o->count)
		return 0;
	rules = arena_alloc(&l->set->arena, o->count * sizeof(*rules));
	if (!rules)
		return load_memory(l);
	for (piece = o->first; piece; piece = piece->next) {
		memcpy(rules + at, piece->rules, piece->count * sizeof(*rules));
		at += piece->count;
	}
	*ret = rules;
	*ret_count = at;
	return 0;
}

/* Joins the overlays and checks what must hold between files. */
static int load_finish(struct loader *l, struct policy_set **ret)
{
	struct policy_set *set = l->set;
	const struct policy_model *m;
	int r;

	r = join_overlay(l, &l->deny, &set->deny, &set->deny_count);
	if (!r)
		r = join_overlay(l, &l->allow, &set->allow, &set->allow_count);
	for (m = set->policies; !r && m; m = m->next) {
		r = policy_check_passthrough(m, set->deny, set->deny_count,
					     l->diag);
		if (!r)
			r = policy_check_passthrough(m, set->allow,
						     set->allow_count, l->diag);
	}
	if (!r)
		*ret = take_ptr(l->set);
	return r;
}

int policy_load_texts(const struct policy_source *sources, unsigned count,
		      struct policy_set **ret, struct diag *d)
{
	CLEANUP(loader_fini) struct loader l;
	unsigned i;
	int r = 0;

	loader_init(&l, d);
	for (i = 0; !r && i < count; i++)
		r = load_source(&l, sources[i].text, sources[i].name);
	return r ? r : load_finish(&l, ret);
}

int policy_load_text(struct span text, const char *name,
		     struct policy_set **ret, struct diag *d)
{
	const struct policy_source source = { text, name };

	return policy_load_texts(&source, 1, ret, d);
}

int policy_load_one(struct span text, const char *source, struct span name,
		    struct policy_set **ret, struct diag *d)
{
	CLEANUP_DOC struct doc *doc = NULL;
	CLEANUP(loader_fini) struct loader l;
	struct policy_parser p = { .diag = d };
	int r;

	loader_init(&l, d);
	if (!diag_is_set(d))
		(void)snprintf(d->file, sizeof(d->file), "%s", source);
	p.arena = &l.set->arena;
	p.file = arena_dup(p.arena, span_str(source));
	r = doc_parse(text, &doc, d);
	if (!r)
		r = load_policy(&l, &p, doc_root(doc), name);
	return r ? r : load_finish(&l, ret);
}

static int load_io(struct diag *d, const char *path, int error)
{
	if (!diag_is_set(d))
		(void)snprintf(d->file, sizeof(d->file), "%s", path);
	(void)diag_set(d, 0, 0, "could not be read: %s", err_text(error));
	return error < 0 ? error : -error;
}

/* The whole file; it may change while it is read, hence no trust in st_size. */
static int read_whole(int dir, const char *name, struct buf *text,
		      struct diag *d)
{
	CLEANUP_FD int fd =
		openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t got = 1;
	char *room;

	if (fd < 0 || fstat(fd, &st))
		return load_io(d, name, errno);
	if (!S_ISREG(st.st_mode))
		return load_io(d, name, S_ISDIR(st.st_mode) ? EISDIR : ENODEV);
	while (got > 0) {
		if (buf_reserve(text, 65536, &room))
			return load_io(d, name, EFBIG);
		got = read(fd, room, 65536);
		if (got < 0)
			return load_io(d, name, errno);
		buf_commit(text, (size_t)got);
	}
	return 0;
}

static int load_file_at(struct loader *l, int dir, const char *path)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(DOC_TEXT_MAX + 65536);
	const char *slash = strrchr(path, '/');
	int r;

	r = read_whole(dir, path, &text, l->diag);
	return r ? r
		 : load_source(l, buf_peek(&text), slash ? slash + 1 : path);
}

int policy_load_file(const char *path, struct policy_set **ret, struct diag *d)
{
	CLEANUP(loader_fini) struct loader l;
	int r;

	loader_init(&l, d);
	r = load_file_at(&l, AT_FDCWD, path);
	return r ? r : load_finish(&l, ret);
}

static int is_policy_file(const struct dirent *entry)
{
	struct span name = span_str(entry->d_name);
	enum verdict_kind action;

	if (policy_is_always(name, &action))
		return true;
	return name.ptr[0] != '.' && (span_ends(name, SPAN(".json")) ||
				      span_ends(name, SPAN(".yaml")) ||
				      span_ends(name, SPAN(".yml")));
}

/* Bytewise, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int policy_load_dir(const char *path, struct policy_set **ret, struct diag *d)
{
	CLEANUP_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(loader_fini) struct loader l;
	struct dirent **entries;
	int count, i, r = 0;

	loader_init(&l, d);
	if (dir < 0)
		return load_io(d, path, errno);
	count = scandirat(dir, ".", &entries, is_policy_file, by_name);
	if (count < 0)
		return load_io(d, path, errno);
	if (count > POLICY_FILES_MAX)
		r = diag_set(d, 0, 0,
			     "found %d files in %s, expected at most "
			     "%d",
			     count, path, POLICY_FILES_MAX);
	for (i = 0; i < count; i++) {
		if (!r)
			r = load_file_at(&l, dir, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r ? r : load_finish(&l, ret);
}
