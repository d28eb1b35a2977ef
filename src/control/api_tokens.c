/* SPDX-License-Identifier: Apache-2.0 */
/* api_tokens.c - routes of the tokens for the API over TCP */

#include "src/control/api.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/binding.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/control/control.h"
#include "src/control/vault_link.h"

struct wish {
	struct token *token; /* NULL: remove; or already applied */
	char text[TOKEN_TEXT_SIZE];
	char name[BINDING_NAME_MAX + 1];
};

void api_tokens_list(void *ctx, struct httpd_request *r)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	const struct token *t;
	struct control *c = ctx;
	struct json_out o;
	struct span name;
	size_t cursor = 0;

	if (!api_ready(c, r))
		return;
	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_open_array(&o, "tokens");
	while ((t = map_next(&c->tokens.by_name, &cursor, &name)))
		token_emit(&o, NULL, t);
	json_close(&o);
	json_close(&o);
	api_reply_buf(r, 200, json_done(&o), &out);
}

static enum change_step post_check(struct control *c, void *data,
				   struct refusal *no)
{
	struct buf record = BUF_INIT(1024);
	struct wish *w = data;

	if (tokens_find(&c->tokens, span_str(w->name)))
		return api_refuse(no, 409, "EXISTS",
				  "a token of this name already exists");
	if (map_count(&c->tokens.by_name) >= TOKENS_MAX)
		return api_refuse(no, 409, "TOO_MANY", "%d tokens are the most",
				  TOKENS_MAX);
	must(!token_emit_record(w->token, &record));
	change_store_begin(c);
	vault_link_put(c->vault, RECORD_TOKEN, span_str(w->name),
		       buf_peek(&record));
	buf_fini(&record);
	return CHANGE_STORE;
}

static void post_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)revision;
	tokens_put(&c->tokens, take_ptr(w->token));
}

/* The only time anybody sees the token. */
static void post_reply(struct control *c, void *data, struct httpd_request *r)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	const struct wish *w = data;
	struct json_out o;

	(void)c;
	json_start(&o, &out);
	json_open_object(&o, NULL);
	json_put_str(&o, "name", w->name);
	json_put_str(&o, "token", w->text);
	json_close(&o);
	api_reply_buf(r, 201, json_done(&o), &out);
}

static void wish_free(void *data)
{
	struct wish *w = data;

	token_free(w->token);
	secret_wipe(w->text, sizeof(w->text));
	free(w);
}

static int name_read(struct span body, char *dst, size_t size, struct diag *d)
{
	static const char *const known[] = { "name", NULL };
	struct json *j CLEANUP_JSON = NULL;
	struct span name = SPAN_NONE;
	int r;

	r = json_parse(body, &j, d);
	if (!r)
		r = json_want(j, JSON_KIND_OBJECT, "token", d);
	if (!r)
		r = json_refuse_unknown(j, "token", known, d);
	if (!r && json_get_text(j, "token", "name", &name, d) < 0)
		r = -EINVAL;
	if (!r &&
	    (!binding_name_parse(name, &name) || !span_copy(name, dst, size)))
		r = diag_set(d, 0, 0,
			     "token: \"name\": expected 1 to %d bytes without "
			     "control characters",
			     BINDING_NAME_MAX);
	return r;
}

void api_tokens_post(void *ctx, struct httpd_request *r)
{
	static const struct change_ops ops = {
		.check = post_check,
		.apply = post_apply,
		.reply = post_reply,
		.free = wish_free,
		.local = true,
	};
	struct wish *w = must_alloc(sizeof(*w));
	struct diag d = { 0 };

	if (name_read(httpd_body(r), w->name, sizeof(w->name), &d)) {
		api_invalid(r, &d);
		wish_free(w);
		return;
	}
	w->token = token_new(span_str(w->name), w->text);
	change_submit(ctx, &ops, w, r);
}

static enum change_step delete_check(struct control *c, void *data,
				     struct refusal *no)
{
	struct wish *w = data;

	if (!tokens_find(&c->tokens, span_str(w->name)))
		return api_refuse(no, 404, "NOT_FOUND",
				  "there is no such token");
	change_store_begin(c);
	vault_link_remove(c->vault, RECORD_TOKEN, span_str(w->name));
	return CHANGE_STORE;
}

static void delete_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)revision;
	tokens_remove(&c->tokens, span_str(w->name));
}

static void delete_reply(struct control *c, void *data, struct httpd_request *r)
{
	(void)c;
	(void)data;
	httpd_reply_empty(r);
}

void api_token_delete(void *ctx, struct httpd_request *r)
{
	static const struct change_ops ops = {
		.check = delete_check,
		.apply = delete_apply,
		.reply = delete_reply,
		.free = wish_free,
		.local = true,
	};
	struct wish *w = must_alloc(sizeof(*w));

	if (!span_copy(httpd_param(r, "name"), w->name, sizeof(w->name))) {
		api_not_found(r, "token");
		wish_free(w);
		return;
	}
	change_submit(ctx, &ops, w, r);
}
