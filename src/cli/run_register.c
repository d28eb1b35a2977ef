/* SPDX-License-Identifier: Apache-2.0 */
/* run_register.c - tell the daemon of a sandbox of `sallyport run`, and take it
 * back
 *
 * The policy of the file is put under the sandbox's id and chooses just that
 * sandbox; credentials and bindings live in the sandbox's own scope. So two
 * runs cannot meet, and removing the sandbox leaves nothing behind.
 */

#include <stdio.h>

#include "policy/load.h"
#include "policy/model.h"
#include "src/base/diag.h"
#include "src/cli/body.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/cli/run.h"
#include "src/text/json.h"

enum { BODY_MAX = 16 * 1024 * 1024 };

/* -- policy --------------------------------------------------------------- */

static int policy_read(const char *file, struct policy_set **ret)
{
	struct diag d = { 0 };
	char line[1024];

	if (policy_load_file(file, ret, &d)) {
		fprintf(stderr, "sallyport: %s\n",
			diag_text(&d, line, sizeof(line)));
		return CLI_FAILED;
	}
	if ((*ret)->policy_count == 1 && !(*ret)->deny_count &&
	    !(*ret)->allow_count)
		return CLI_OK;
	fprintf(stderr,
		"sallyport: %s: found %u policies and %u overlay "
		"rules, expected one policy\n",
		file, (*ret)->policy_count,
		(*ret)->deny_count + (*ret)->allow_count);
	return CLI_FAILED;
}

static int policy_put(struct run_registration *reg, const struct api *api,
		      const char *file)
{
	struct policy_set *set CLEANUP_POLICY_SET = NULL;
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	const struct span id = span_str(reg->id);
	struct policy_model mine;
	struct api_path path;
	int r;

	r = policy_read(file, &set);
	if (r)
		return r;
	mine = *set->policies;
	mine.name = id;
	mine.ids = &id;
	mine.id_count = 1;
	mine.labels = NULL;
	mine.label_count = 0;
	if (policy_emit(&mine, &body)) {
		fprintf(stderr, "sallyport: %s is too large\n", file);
		return CLI_FAILED;
	}
	api_path_set(&path, ROUTE_POLICIES "/", id, "");
	r = api_do(api, "PUT", path.text, buf_peek(&body));
	reg->policy = r == CLI_OK;
	return r;
}

/* -- the sandbox itself --------------------------------------------------- */

static int sandbox_put(struct run_registration *reg, const struct api *api,
		       const struct run_wishes *w)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	struct api_path path;
	struct json_out out;
	int r;

	json_start(&out, &body);
	json_open_object(&out, NULL);
	json_put_str(&out, "id", reg->id);
	json_put_str(&out, "interface", w->net->iface);
	json_open_array(&out, "addresses");
	json_put_str(&out, NULL, w->net->inner);
	json_put_str(&out, NULL, w->net->inner6);
	json_close(&out);
	if (!body_put_labels(&out, w->labels))
		return CLI_USAGE;
	json_close(&out);
	if (json_done(&out))
		return CLI_FAILED;
	api_path_set(&path, ROUTE_SANDBOXES "/", span_str(reg->id), "");
	r = api_do(api, "PUT", path.text, buf_peek(&body));
	reg->sandbox = r == CLI_OK;
	return r;
}

/* -- credentials and bindings --------------------------------------------- */

static int binding_add(void *ctx, const struct json *binding)
{
	json_put_json(ctx, NULL, binding);
	return CLI_OK;
}

static int bindings_add(struct json_out *out, const char *file)
{
	struct json *root CLEANUP_JSON = NULL;

	if (body_read(file, &root))
		return CLI_FAILED;
	return body_each_binding(root, binding_add, out);
}

static int vault_fill(struct json_out *out, const struct run_wishes *w)
{
	unsigned i;
	int r = CLI_OK;

	json_open_object(out, NULL);
	json_open_object(out, "credentials");
	json_open_array(out, "add");
	for (i = 0; i < w->secrets->count; i++) {
		if (!body_value_is_sound(w->secrets->items[i].name,
					 w->secrets->items[i].value))
			return CLI_FAILED;
		body_put_credential(out, w->secrets->items[i].name,
				    w->secrets->items[i].value);
	}
	json_close(out);
	json_close(out);
	json_open_object(out, "bindings");
	json_open_array(out, "add");
	if (w->binding_file)
		r = bindings_add(out, w->binding_file);
	json_close(out);
	json_close(out);
	json_close(out);
	return r;
}

static int vault_put(const struct run_registration *reg, const struct api *api,
		     const struct run_wishes *w)
{
	struct buf body CLEANUP(buf_wipe) = BUF_INIT(BODY_MAX);
	struct api_path path;
	struct json_out out;
	int r;

	if (!w->secrets->count && !w->binding_file)
		return CLI_OK;
	json_start(&out, &body);
	r = vault_fill(&out, w);
	if (r || json_done(&out))
		return r ? r : CLI_FAILED;
	api_path_set(&path, ROUTE_SANDBOXES "/", span_str(reg->id),
		     ROUTE_SCOPE_VAULT);
	return api_do(api, "PATCH", path.text, buf_peek(&body));
}

int run_register_start(struct run_registration *reg, const struct api *api,
		       const struct run_wishes *wishes)
{
	int r = CLI_OK;

	if (wishes->policy_file)
		r = policy_put(reg, api, wishes->policy_file);
	if (!r)
		r = sandbox_put(reg, api, wishes);
	if (!r)
		r = vault_put(reg, api, wishes);
	return r;
}

void run_register_stop(struct run_registration *reg, const struct api *api)
{
	struct api_path path;

	if (reg->sandbox) {
		api_path_set(&path, ROUTE_SANDBOXES "/", span_str(reg->id), "");
		(void)!api_do(api, "DELETE", path.text, SPAN_NONE);
	}
	if (reg->policy) {
		api_path_set(&path, ROUTE_POLICIES "/", span_str(reg->id), "");
		(void)!api_do(api, "DELETE", path.text, SPAN_NONE);
	}
	reg->sandbox = reg->policy = false;
}
