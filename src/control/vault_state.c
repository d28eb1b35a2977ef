/* SPDX-License-Identifier: Apache-2.0 */
/* vault_state.c - control's copy of a vault scope, and its JSON */

#include "src/control/vault_state.h"

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/text/json.h"

struct vault_state *vault_state_new(const char *scope)
{
	struct vault_state *s = must_alloc(sizeof(*s));

	s->scope = must_strdup(scope);
	map_init(&s->credentials);
	map_init(&s->bindings);
	return s;
}

struct vault_state *vault_state_free(struct vault_state *s)
{
	struct vault_credential *credential;
	struct binding *b;
	struct span key;
	size_t cursor = 0;

	if (!s)
		return NULL;
	while ((credential = map_next(&s->credentials, &cursor, &key))) {
		free((char *)(uintptr_t)credential->name.ptr);
		free(credential);
	}
	cursor = 0;
	while ((b = map_next(&s->bindings, &cursor, &key)))
		binding_free(b);
	map_fini(&s->credentials);
	map_fini(&s->bindings);
	binding_set_free(s->set);
	free(s->scope);
	free(s);
	return NULL;
}

struct vault_credential *vault_state_credential(const struct vault_state *s,
						struct span name)
{
	return map_find(&s->credentials, name);
}

struct binding *vault_state_binding(const struct vault_state *s,
				    struct span name)
{
	return map_find(&s->bindings, name);
}

void vault_state_put_credential(struct vault_state *s, struct span name,
				uint64_t revision)
{
	struct vault_credential *credential = map_find(&s->credentials, name);
	char *copy;

	if (!credential) {
		credential = must_alloc(sizeof(*credential));
		copy = must_alloc(name.len + 1);
		memcpy(copy, name.ptr, name.len);
		credential->name = span_of(copy, name.len);
		(void)map_set(&s->credentials, credential->name, credential);
	}
	credential->revision = revision;
}

void vault_state_remove_credential(struct vault_state *s, struct span name)
{
	struct vault_credential *credential = map_take(&s->credentials, name);

	if (!credential)
		return;
	free((char *)(uintptr_t)credential->name.ptr);
	free(credential);
}

static size_t binding_bytes(const struct binding *b)
{
	struct buf text = BUF_INIT(BINDING_TEXT_MAX);
	size_t len = BINDING_TEXT_MAX;

	if (!binding_emit(b, true, &text))
		len = buf_len(&text);
	buf_fini(&text);
	return len;
}

void vault_state_remove_binding(struct vault_state *s, struct span name)
{
	struct binding *b = map_take(&s->bindings, name);

	if (!b)
		return;
	s->set = binding_set_free(s->set);
	s->binding_bytes -= binding_bytes(b);
	binding_free(b);
}

void vault_state_put_binding(struct vault_state *s, struct binding *b,
			     uint64_t revision)
{
	vault_state_remove_binding(s, b->name);
	s->set = binding_set_free(s->set);
	b->revision = revision;
	s->binding_bytes += binding_bytes(b);
	(void)map_set(&s->bindings, b->name, b);
}

/* -- in order ------------------------------------------------------------- */

static int span_order(struct span x, struct span y)
{
	int r = memcmp(x.ptr, y.ptr, MIN(x.len, y.len));

	return r ? r : (x.len > y.len) - (x.len < y.len);
}

static int binding_order(const void *a, const void *b)
{
	const struct binding *const *x = a, *const *y = b;

	return span_order((*x)->name, (*y)->name);
}

static int credential_order(const void *a, const void *b)
{
	const struct vault_credential *const *x = a, *const *y = b;

	return span_order((*x)->name, (*y)->name);
}

/* The values of a map as an array that the caller frees. */
static void *map_values(const struct map *m, unsigned *ret_count)
{
	void **items = must_alloc((map_count(m) + 1) * sizeof(*items));
	struct span key;
	size_t cursor = 0;
	unsigned count = 0;
	void *value;

	while ((value = map_next(m, &cursor, &key)))
		items[count++] = value;
	*ret_count = count;
	return items;
}

struct binding **vault_state_bindings(const struct vault_state *s,
				      unsigned *ret_count)
{
	struct binding **items = map_values(&s->bindings, ret_count);

	qsort(items, *ret_count, sizeof(*items), binding_order);
	return items;
}

struct vault_credential **vault_state_credentials(const struct vault_state *s,
						  unsigned *ret_count)
{
	struct vault_credential **items =
		map_values(&s->credentials, ret_count);

	qsort(items, *ret_count, sizeof(*items), credential_order);
	return items;
}

/* -- JSON ----------------------------------------------------------------- */

static void bindings_emit(const struct vault_state *s, struct json_out *o)
{
	struct buf text = BUF_INIT(BINDING_TEXT_MAX);
	struct binding **items;
	unsigned count, i;

	items = vault_state_bindings(s, &count);
	json_open_array(o, "bindings");
	for (i = 0; i < count; i++) {
		buf_clear(&text);
		must(!binding_emit(items[i], true, &text));
		json_put_raw(o, NULL, buf_peek(&text));
	}
	json_close(o);
	buf_fini(&text);
	free(items);
}

void vault_credential_emit(struct json_out *o, const char *member,
			   const struct vault_credential *credential)
{
	json_open_object(o, member);
	json_put_text(o, "name", credential->name);
	json_put_str(o, "sourceType", "inline");
	json_put_u64(o, "revision", credential->revision);
	json_close(o);
}

static void credentials_emit(const struct vault_state *s, struct json_out *o)
{
	struct vault_credential **items;
	unsigned count, i;

	items = vault_state_credentials(s, &count);
	json_open_array(o, "credentials");
	for (i = 0; i < count; i++)
		vault_credential_emit(o, NULL, items[i]);
	json_close(o);
	free(items);
}

static int state_emit(const struct vault_state *s, bool credentials,
		      bool bindings, struct buf *out)
{
	struct json_out o;

	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_u64(&o, "revision", s->revision);
	if (credentials)
		credentials_emit(s, &o);
	if (bindings)
		bindings_emit(s, &o);
	json_close(&o);
	return json_done(&o);
}

int vault_state_emit_bindings(const struct vault_state *s, struct buf *out)
{
	return state_emit(s, false, true, out);
}

int vault_state_emit_credentials(const struct vault_state *s, struct buf *out)
{
	return state_emit(s, true, false, out);
}

int vault_state_emit(const struct vault_state *s, struct buf *out)
{
	return state_emit(s, true, true, out);
}

/* The set is read back from what the gateway gets: one truth. */
const struct binding_set *vault_state_set(struct vault_state *s)
{
	struct buf text = BUF_INIT(JSON_TEXT_MAX);
	struct diag d = { 0 };

	if (s->set)
		return s->set;
	if (vault_state_emit_bindings(s, &text) ||
	    binding_set_parse(buf_peek(&text), &s->set, &d))
		log_error("the bindings could not be read back: %s", d.msg);
	buf_fini(&text);
	return s->set;
}
