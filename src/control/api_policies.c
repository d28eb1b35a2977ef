/* SPDX-License-Identifier: Apache-2.0 */
/* api_policies.c - routes of policies, and the reload of their files */

#include "src/control/api.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/changes.h"
#include "src/control/control.h"
#include "src/control/publish.h"
#include "src/control/status.h"
#include "src/control/vault_link.h"
#include "src/role/config.h"

struct wish {
	struct buf text;	    /* as it is stored, while it waits */
	struct policy_entry *entry; /* NULL: remove; or already applied */
	bool is_new;
	int error;	  /* that it could not be made, */
	struct diag diag; /* and why */
	changed_fn *fn;	  /* who asked from inside, or NULL */
	void *ctx;
	char name[POLICY_NAME_MAX + 1];
};

/* -- reading -------------------------------------------------------------- */

static void diag_put(struct json_out *o, const char *member,
		     const struct diag *d)
{
	if (!diag_is_set(d)) {
		json_put_null(o, member);
		return;
	}
	json_open_object(o, member);
	json_put_str(o, "file", d->file);
	json_put_u64(o, "line", d->line);
	json_put_u64(o, "column", d->col);
	json_put_str(o, "message", d->msg);
	json_close(o);
}

static void policies_put_state(struct json_out *o, const struct policies *p)
{
	char when[CLOCK_TEXT_SIZE];

	json_put_u64(o, "generation", p->generation);
	if (p->loaded_ms) {
		clock_text(p->loaded_ms, when, sizeof(when));
		json_put_str(o, "loadedAt", when);
	} else {
		json_put_null(o, "loadedAt");
	}
	diag_put(o, "error", &p->error);
}

void policies_status_put(struct json_out *o, const char *member,
			 const struct policies *p)
{
	json_open_object(o, member);
	json_put_u64(o, "count", p->count);
	policies_put_state(o, p);
	json_close(o);
}

static void reply_list(struct control *c, struct httpd_request *r)
{
	struct buf out = BUF_INIT(API_REPLY_MAX);
	const struct policies *p = &c->policies;
	struct json_out o;
	unsigned i;

	json_start(&o, &out);
	json_open_object(&o, NULL);
	policies_put_state(&o, p);
	json_open_object(&o, "overlay");
	json_put_u64(&o, "deny", p->deny_count);
	json_put_u64(&o, "allow", p->allow_count);
	json_close(&o);
	json_open_array(&o, "policies");
	for (i = 0; i < p->count; i++)
		policy_entry_emit(&o, NULL, p->entries[i]);
	json_close(&o);
	json_close(&o);
	api_reply_buf(r, 200, json_done(&o), &out);
}

void api_policies_list(void *ctx, struct httpd_request *r)
{
	if (api_ready(ctx, r))
		reply_list(ctx, r);
}

static void reply_policy(struct control *c, struct httpd_request *r,
			 struct span name, unsigned status)
{
	const struct policy_entry *e = policies_find(&c->policies, name);
	struct buf text = BUF_INIT(API_REPLY_MAX);
	struct buf out = BUF_INIT(API_REPLY_MAX);
	struct json_out o;
	int error;

	if (!e) {
		api_not_found(r, "policy");
		return;
	}
	error = policy_entry_text(e, &text);
	json_start(&o, &out);
	json_open_object(&o, NULL);
	policy_entry_emit(&o, "entry", e);
	json_put_raw(&o, "policy", buf_peek(&text));
	json_close(&o);
	buf_fini(&text);
	api_reply_buf(r, status, error ? error : json_done(&o), &out);
}

void api_policy_get(void *ctx, struct httpd_request *r)
{
	if (api_ready(ctx, r))
		reply_policy(ctx, r, httpd_param(r, "name"), 200);
}

/* -- put ------------------------------------------------------------------ */

static bool wish_claim(struct control *c, const void *data, struct map *claims)
{
	const struct wish *w = data;

	return change_claim(claims, 'p', span_str(w->name)) &&
	       c->policies.api_count + CHANGES_TOGETHER_MAX <= POLICY_API_MAX;
}

static bool is_of_sandbox(const struct control *c, const struct wish *w)
{
	return net_policies_own(&c->net_policies, span_str(w->name));
}

static enum change_step refuse_of_sandbox(const struct wish *w,
					  struct refusal *no)
{
	return api_refuse(no, 409, "OF_SANDBOX",
			  "policy \"%s\" is that of a sandbox of the lifecycle "
			  "API; change it through its egress API",
			  w->name);
}

static enum change_step put_check(struct control *c, void *data,
				  struct refusal *no)
{
	struct wish *w = data;

	if (is_of_sandbox(c, w))
		return refuse_of_sandbox(w, no);
	if (w->error == -ENOBUFS)
		return api_refuse(no, 413, "POLICY_TOO_LARGE",
				  "a policy put by API has at most %d bytes; "
				  "larger ones belong into a file",
				  MSG_TAIL_MAX);
	w->is_new = !policies_find(&c->policies, span_str(w->name));
	if (w->error || policies_check(&c->policies, w->entry, &w->diag)) {
		no->code = "POLICY_INVALID";
		(void)diag_text(&w->diag, no->diag.msg, sizeof(no->diag.msg));
		return CHANGE_REFUSE;
	}
	change_store_begin(c);
	vault_link_put(c->vault, RECORD_POLICY, span_str(w->name),
		       buf_peek(&w->text));
	return CHANGE_STORE;
}

static void put_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)revision;
	policies_put(&c->policies, take_ptr(w->entry));
	change_publish_policies(c);
}

static void put_reply(struct control *c, void *data, struct httpd_request *r)
{
	const struct wish *w = data;

	reply_policy(c, r, span_str(w->name), w->is_new ? 201 : 200);
}

static void wish_free(void *data)
{
	struct wish *w = data;

	policy_entry_free(w->entry);
	buf_fini(&w->text);
	free(w);
}

static void wish_done(struct control *c, void *data, const struct refusal *why)
{
	struct wish *w = data;

	(void)c;
	if (w->fn)
		w->fn(w->ctx, why);
}

/* NULL: the name is too long. */
static struct wish *wish_new(struct span name)
{
	struct wish *w = must_alloc(sizeof(*w));

	buf_init(&w->text, MSG_TAIL_MAX);
	if (span_copy(name, w->name, sizeof(w->name)))
		return w;
	wish_free(w);
	return NULL;
}

/* Parses and compiles it before its turn comes. */
static void wish_make(struct control *c, struct wish *w, struct span text)
{
	w->error = policies_make(&c->policies, text, span_str(w->name),
				 &w->entry, &w->text, &w->diag);
}

static const struct change_ops put_ops = {
	.claim = wish_claim,
	.check = put_check,
	.apply = put_apply,
	.reply = put_reply,
	.done = wish_done,
	.free = wish_free,
};

void api_policy_put(void *ctx, struct httpd_request *r)
{
	struct wish *w = wish_new(httpd_param(r, "name"));

	if (!w) {
		httpd_reply_error(r, 400, "INVALID",
				  "a policy's name has at most %d bytes",
				  POLICY_NAME_MAX);
		return;
	}
	wish_make(ctx, w, httpd_body(r));
	change_submit(ctx, &put_ops, w, r);
}

void policy_change_put(struct control *c, struct span name, struct span text,
		       changed_fn *fn, void *ctx)
{
	struct wish *w = wish_new(name);

	must(w);
	w->fn = fn;
	w->ctx = ctx;
	wish_make(c, w, text);
	change_submit(c, &put_ops, w, NULL);
}

/* -- delete --------------------------------------------------------------- */

static enum change_step delete_check(struct control *c, void *data,
				     struct refusal *no)
{
	struct wish *w = data;
	const struct policy_entry *e =
		policies_find(&c->policies, span_str(w->name));

	if (!e)
		return api_refuse(no, 404, "NOT_FOUND",
				  "there is no such policy");
	if (is_of_sandbox(c, w))
		return refuse_of_sandbox(w, no);
	if (!e->from_api)
		return api_refuse(no, 409, "IN_FILE",
				  "policy \"%s\" is defined in %s, line %u",
				  w->name, e->model->file.ptr, e->model->line);
	change_store_begin(c);
	vault_link_remove(c->vault, RECORD_POLICY, span_str(w->name));
	return CHANGE_STORE;
}

static void delete_apply(struct control *c, void *data, uint64_t revision)
{
	struct wish *w = data;

	(void)revision;
	(void)policies_remove(&c->policies, span_str(w->name));
	change_publish_policies(c);
}

static void delete_reply(struct control *c, void *data, struct httpd_request *r)
{
	(void)c;
	(void)data;
	httpd_reply_empty(r);
}

static const struct change_ops delete_ops = {
	.claim = wish_claim,
	.check = delete_check,
	.apply = delete_apply,
	.reply = delete_reply,
	.done = wish_done,
	.free = wish_free,
};

void api_policy_delete(void *ctx, struct httpd_request *r)
{
	struct wish *w = wish_new(httpd_param(r, "name"));

	if (!w)
		api_not_found(r, "policy");
	else
		change_submit(ctx, &delete_ops, w, r);
}

void policy_change_remove(struct control *c, struct span name, changed_fn *fn,
			  void *ctx)
{
	struct wish *w = wish_new(name);

	must(w);
	w->fn = fn;
	w->ctx = ctx;
	change_submit(c, &delete_ops, w, NULL);
}

/* -- reload --------------------------------------------------------------- */

static enum change_step reload_check(struct control *c, void *data,
				     struct refusal *no)
{
	const struct policies *p = &c->policies;
	uint64_t before = p->generation;
	char text[1024];

	(void)data;
	control_busy(c);
	if (policies_load_dir(&c->policies, c->config->policy_dir)) {
		log_error("the policies stay as they were: %s",
			  diag_text(&p->error, text, sizeof(text)));
		return api_refuse(no, 400, "POLICY_INVALID", "%s", text);
	}
	log_info("loaded %u policies from files, generation %llu to %llu",
		 p->count - p->api_count, (unsigned long long)before,
		 (unsigned long long)p->generation);
	return CHANGE_APPLY;
}

static void reload_apply(struct control *c, void *data, uint64_t revision)
{
	(void)data;
	(void)revision;
	change_publish_policies(c);
}

static void reload_reply(struct control *c, void *data, struct httpd_request *r)
{
	(void)data;
	reply_list(c, r);
}

static void reload_free(void *data)
{
	(void)data;
}

void control_reload_policies(struct control *c, struct httpd_request *r)
{
	static const struct change_ops ops = {
		.check = reload_check,
		.apply = reload_apply,
		.reply = reload_reply,
		.free = reload_free,
	};

	change_submit(c, &ops, NULL, r);
}

void api_policies_reload(void *ctx, struct httpd_request *r)
{
	control_reload_policies(ctx, r);
}
