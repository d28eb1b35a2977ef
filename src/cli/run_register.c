/* SPDX-License-Identifier: Apache-2.0 */
/* run_register.c - tell the daemon of a sandbox of `sallyport run`, and take it
 * back
 *
 * How it works: everything is put under the sandbox's id. The policy of the
 * file is called so and chooses just that sandbox; a credential NAME becomes
 * ID:NAME, a binding likewise, and is for that sandbox only. So two runs
 * cannot meet. Each path that was put is noted; stopping deletes them in
 * reverse order.
 */

#include <stdio.h>
#include <stdlib.h>

#include "policy/binding.h"
#include "policy/load.h"
#include "policy/model.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/cli/body.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/cli/run.h"
#include "src/text/json.h"

enum { BODY_MAX = 16 * 1024 * 1024 };

struct registering {
	struct run_registration *reg;
	const struct api *api;
	const struct run_wishes *wishes;
};

static int put(const struct registering *x, const char *collection,
	       struct span name, struct buf *body)
{
	struct api_path path;
	int r;

	if (x->reg->count == RUN_PUTS_MAX) {
		fprintf(stderr, "sallyport: more than %d things for one run\n",
			RUN_PUTS_MAX);
		return CLI_FAILED;
	}
	api_path_set(&path, collection, name);
	r = api_do(x->api, "PUT", path.text, buf_peek(body));
	if (!r)
		x->reg->paths[x->reg->count++] = must_strdup(path.text);
	return r;
}

static int fail(const struct diag *d)
{
	char line[1024];

	fprintf(stderr, "sallyport: %s\n", diag_text(d, line, sizeof(line)));
	return CLI_FAILED;
}

/* -- policy --------------------------------------------------------------- */

static int policy_read(const char *file, struct policy_set **ret)
{
	struct diag d = { 0 };

	if (policy_load_file(file, ret, &d))
		return fail(&d);
	if ((*ret)->policy_count == 1 && !(*ret)->deny_count &&
	    !(*ret)->allow_count)
		return CLI_OK;
	fprintf(stderr,
		"sallyport: %s: found %u policies and %u overlay rules, "
		"expected one policy\n",
		file, (*ret)->policy_count,
		(*ret)->deny_count + (*ret)->allow_count);
	return CLI_FAILED;
}

static int policy_put(const struct registering *x)
{
	struct policy_set *set CLEANUP_POLICY_SET = NULL;
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	const struct span id = span_str(x->reg->id);
	struct policy_model mine;
	int r;

	if (!x->wishes->policy_file)
		return CLI_OK;
	r = policy_read(x->wishes->policy_file, &set);
	if (r)
		return r;
	mine = *set->policies;
	mine.name = id;
	mine.ids = &id;
	mine.id_count = 1;
	mine.labels = NULL;
	mine.label_count = 0;
	if (policy_emit(&mine, &body)) {
		fprintf(stderr, "sallyport: %s is too large\n",
			x->wishes->policy_file);
		return CLI_FAILED;
	}
	return put(x, ROUTE_POLICIES, id, &body);
}

/* -- the sandbox itself --------------------------------------------------- */

static int sandbox_put(const struct registering *x)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	const struct run_net *net = x->wishes->net;
	struct json_out out;

	json_start(&out, &body);
	json_open_object(&out, NULL);
	json_put_str(&out, "id", x->reg->id);
	json_put_str(&out, "interface", net->iface);
	json_put_str(&out, "mac", net->mac);
	json_open_array(&out, "addresses");
	json_put_str(&out, NULL, net->inner);
	json_put_str(&out, NULL, net->inner6);
	json_close(&out);
	if (!body_put_labels(&out, x->wishes->labels))
		return CLI_USAGE;
	json_close(&out);
	if (json_done(&out))
		return CLI_FAILED;
	return put(x, ROUTE_SANDBOXES, span_str(x->reg->id), &body);
}

/* -- credentials and bindings --------------------------------------------- */

/* "ID:NAME". False: too long. */
static bool own_name(const struct registering *x, struct span name,
		     char dst[BINDING_NAME_MAX + 1])
{
	int len = snprintf(dst, BINDING_NAME_MAX + 1, "%s:%.*s", x->reg->id,
			   SPAN_FMT(name));

	if (len > 0 && len <= BINDING_NAME_MAX)
		return true;
	fprintf(stderr, "sallyport: the name %.*s is too long\n",
		SPAN_FMT(name));
	return false;
}

static int credentials_put(const struct registering *x)
{
	const struct run_secrets *secrets = x->wishes->secrets;
	struct buf body CLEANUP(buf_wipe) = BUF_INIT(BODY_MAX);
	char name[BINDING_NAME_MAX + 1];
	struct json_out out;
	unsigned i;
	int r = CLI_OK;

	for (i = 0; i < secrets->count && !r; i++) {
		if (!own_name(x, secrets->items[i].name, name) ||
		    !body_value_is_sound(secrets->items[i].name,
					 secrets->items[i].value))
			return CLI_FAILED;
		buf_wipe(&body);
		json_start(&out, &body);
		body_put_credential(&out, span_str(name),
				    secrets->items[i].value);
		if (json_done(&out))
			return CLI_FAILED;
		r = put(x, ROUTE_CREDENTIALS, span_str(name), &body);
	}
	return r;
}

static bool is_given(const struct registering *x, struct span credential)
{
	const struct run_secrets *secrets = x->wishes->secrets;
	unsigned i;

	for (i = 0; i < secrets->count; i++)
		if (span_eq(secrets->items[i].name, credential))
			return true;
	return false;
}

/* Makes a binding this sandbox's own. A credential that was not given is one
 * of the node's. False after a sentence. */
static bool binding_own(const struct registering *x, struct binding *b,
			struct span *id)
{
	char name[BINDING_NAME_MAX + 1];
	unsigned i;

	for (i = 0; i < b->header_count; i++) {
		if (!is_given(x, b->headers[i].credential))
			continue;
		if (!own_name(x, b->headers[i].credential, name))
			return false;
		b->headers[i].credential = arena_dup(&b->arena, span_str(name));
	}
	if (!own_name(x, b->name, name))
		return false;
	b->name = arena_dup(&b->arena, span_str(name));
	b->every_sandbox = false;
	b->sandboxes = (struct binding_list){ .items = id, .count = 1 };
	return !arena_overflowed(&b->arena);
}

static int binding_put(void *ctx, const struct json *json)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	const struct registering *x = ctx;
	struct span id = span_str(x->reg->id);
	struct diag d = { 0 };
	struct binding *b;
	int r = CLI_FAILED;

	if (binding_parse(json, &b, &d))
		return fail(&d);
	if (binding_own(x, b, &id) && !binding_emit(b, false, &body))
		r = put(x, ROUTE_BINDINGS, b->name, &body);
	binding_free(b);
	return r;
}

static int bindings_put(struct registering *x)
{
	struct json *root CLEANUP_JSON = NULL;

	if (!x->wishes->binding_file)
		return CLI_OK;
	if (body_read(x->wishes->binding_file, &root))
		return CLI_FAILED;
	return body_each_binding(root, binding_put, x);
}

int run_register_start(struct run_registration *reg, const struct api *api,
		       const struct run_wishes *wishes)
{
	struct registering x = { reg, api, wishes };
	int r;

	r = policy_put(&x);
	if (!r)
		r = sandbox_put(&x);
	if (!r)
		r = credentials_put(&x);
	if (!r)
		r = bindings_put(&x);
	return r;
}

void run_register_stop(struct run_registration *reg, const struct api *api,
		       bool keep)
{
	while (reg->count) {
		reg->count--;
		if (!keep)
			(void)!api_do(api, "DELETE", reg->paths[reg->count],
				      SPAN_NONE);
		free(reg->paths[reg->count]);
	}
}
