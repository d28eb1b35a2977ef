/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the same questions the gateway asks, put by an operator */

#include "src/control/explain.h"

#include <errno.h>

#include "policy/binding.h"
#include "policy/explain.h"
#include "policy/foreign.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/control/policies.h"
#include "src/control/sandboxes.h"
#include "src/control/vault_state.h"
#include "src/text/json.h"

enum { EXPLAIN_TEXT_MAX = 8 * 1024 };

/* In the words of policy/explain.h. */
static int question_read(const struct explain_query *q,
			 struct policy_question *ret, struct diag *d)
{
	struct buf text = BUF_INIT(EXPLAIN_TEXT_MAX);
	int r;

	if (q->words.len && (q->url.len || q->address.len))
		return diag_set(d, 0, 0,
				"words: found url or address beside it, "
				"expected one of them");
	if (q->words.len)
		return policy_question_parse(q->words, ret, d);
	if (!span_starts(q->url, SPAN("https://")) &&
	    !span_starts(q->url, SPAN("http://")))
		return diag_set(d, 0, 0,
				"url: expected one that begins with https:// "
				"or http://");
	r = buf_putf(&text, "%.*s %.*s", SPAN_FMT(q->method), SPAN_FMT(q->url));
	if (!r && q->address.len)
		r = buf_putf(&text, " at %.*s", SPAN_FMT(q->address));
	if (r)
		r = diag_set(d, 0, 0, "url: longer than %d bytes",
			     EXPLAIN_TEXT_MAX);
	else
		r = policy_question_parse(buf_peek(&text), ret, d);
	buf_fini(&text);
	return r;
}

static void origin_put(struct json_out *o, const struct snapshot *overlay,
		       const struct snapshot *policy, const struct verdict *v)
{
	struct verdict_origin origin;
	char sentence[1024];

	policy_origin(overlay, policy, v, &origin);
	json_put_str(o, "verdict", v->kind == VERDICT_ALLOW ? "allow" : "deny");
	json_put_str(o, "source", verdict_source_name(v->source));
	json_put_str(o, "sentence",
		     policy_sentence(overlay, policy, v, sentence,
				     sizeof(sentence)));
	json_put_text(o, "policy", origin.policy);
	json_put_text(o, "rule", origin.rule);
	json_put_text(o, "file", origin.file);
	json_put_u64(o, "line", origin.line);
	json_put_bool(o, "inspect", v->inspect);
	json_put_bool(o, "passthrough", v->passthrough);
}

static void verdict_put(struct json_out *o, const struct explain_query *q,
			const struct policy_query *query,
			const struct policies *p)
{
	struct policy_opened of_overlay, of_policy;
	const struct snapshot *overlay, *policy;
	struct verdict v;

	policy_entry_open(p->overlay, &of_overlay);
	policy_entry_open(policies_at(p, q->sandbox->policy), &of_policy);
	overlay = policy_opened_get(&of_overlay);
	policy = policy_opened_get(&of_policy);
	foreign_match(overlay, policy, query, q->foreign_allowed, &v);
	origin_put(o, overlay, policy, &v);
	if (policy)
		policy_limits_emit(o, snapshot_limits(policy));
	policy_opened_fini(&of_overlay);
	policy_opened_fini(&of_policy);
}

static void binding_put(struct json_out *o, const struct explain_query *q,
			const struct policy_query *asked,
			struct vault_state *vault)
{
	const struct binding_query query = {
		.sandbox = q->sandbox->id,
		.scheme = span_starts(q->url, SPAN("https")) ? BINDING_HTTPS
							     : BINDING_HTTP,
		.port = asked->port,
		.host = asked->host,
		.method = asked->method,
		.path = asked->path,
	};
	const struct binding *found[2];

	switch (binding_set_match(vault_state_set(vault), &query, found)) {
	case BINDING_NO_MATCH:
		json_put_null(o, "binding");
		return;
	case BINDING_MATCH:
		json_put_text(o, "binding", found[0]->name);
		return;
	case BINDING_TIE:
		json_put_null(o, "binding");
		json_open_array(o, "bindingTie");
		json_put_text(o, NULL, found[0]->name);
		json_put_text(o, NULL, found[1]->name);
		json_close(o);
		return;
	}
}

int explain(const struct explain_query *asked, const struct policies *p,
	    struct vault_state *vault, struct buf *out, struct diag *d)
{
	struct explain_query q = *asked;
	struct policy_question question;
	struct json_out o;
	int r;

	q.method = q.method.len ? q.method : SPAN("GET");
	r = question_read(&q, &question, d);
	if (r)
		return r;
	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_text(&o, "sandbox", q.sandbox->id);
	if (q.words.len) {
		json_put_text(&o, "words", q.words);
	} else {
		json_put_text(&o, "url", q.url);
		json_put_text(&o, "method", q.method);
	}
	verdict_put(&o, &q, &question.query, p);
	if (!q.words.len)
		binding_put(&o, &q, &question.query, vault);
	json_close(&o);
	policy_question_fini(&question);
	return json_done(&o);
}
