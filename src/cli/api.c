/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - find the admin socket, make one call, tell people what went wrong */

#include "src/cli/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/cli/command.h"
#include "src/cli/proc.h"
#include "src/cli/routes.h"
#include "src/httpd/client.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { CONFIG_MAX = 1024 * 1024, PROBE_MS = 5000, CALL_MS = 60000 };

int api_config(const struct opt_daemon *d, struct config **ret)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(CONFIG_MAX);
	const char *file = d->config ? d->config : CLI_CONFIG_FILE;
	struct diag diag = { 0 };
	char line[1024];
	int r;

	r = file_read(file, &text);
	if (r == -ENOENT && !d->config) {
		buf_clear(&text);
		r = buf_put_str(&text, "{}");
	}
	if (r) {
		fprintf(stderr, "sallyport: %s could not be read: %s\n", file,
			err_text(r));
		return r;
	}
	(void)span_copy(span_str(file), diag.file, sizeof(diag.file));
	r = config_parse(buf_peek(&text), ret, &diag);
	if (r)
		fprintf(stderr, "sallyport: %s\n",
			diag_text(&diag, line, sizeof(line)));
	return r;
}

int api_init(struct api *api, const struct opt_daemon *d)
{
	const char *socket = d->socket;
	struct config *config;
	int r;

	*api = (struct api){ .json = d->json };
	if (!socket && !d->config)
		socket = getenv("SALLYPORT_SOCKET");
	if (socket && *socket) {
		if (span_copy(span_str(socket), api->socket,
			      sizeof(api->socket)))
			return 0;
		return -ENAMETOOLONG;
	}
	r = api_config(d, &config);
	if (r)
		return r;
	if (config->admin_socket && *config->admin_socket)
		(void)snprintf(api->socket, sizeof(api->socket), "%s",
			       config->admin_socket);
	else
		(void)snprintf(api->socket, sizeof(api->socket),
			       "%s/admin.sock", config->run_dir);
	config_free(config);
	return 0;
}

void api_path_set(struct api_path *p, const char *collection, struct span name)
{
	struct buf b CLEANUP(buf_fini) = BUF_INIT(sizeof(p->text) - 1);
	const char *join =
		span_ends(span_str(collection), SPAN("=")) ? "" : "/";

	/* too long to be any name: an empty path, which no route has */
	if (buf_putf(&b, "%s%s", collection, join) ||
	    httpd_client_encode(&b, name) ||
	    !span_copy(buf_peek(&b), p->text, sizeof(p->text)))
		p->text[0] = '\0';
}

void api_reply_fini(struct api_reply *reply)
{
	reply->json = json_free(reply->json);
	buf_wipe(&reply->body);
}

/* The daemon's own sentence, or the bare status. */
static void reply_complain(const struct api_reply *reply)
{
	struct span text = json_text(json_find(reply->json, "message"));
	char line[1024];

	if (text.len)
		fprintf(stderr, "sallyport: %s\n",
			log_escape(text, line, sizeof(line)));
	else
		fprintf(stderr, "sallyport: the daemon answered %u\n",
			reply->status);
}

static struct httpd_target target_of(const struct api *api, unsigned ms)
{
	const char *token = getenv("SALLYPORT_TOKEN");

	return (struct httpd_target){
		.socket_path = api->socket,
		.token = token && *token ? token : NULL,
		.timeout_ms = ms,
	};
}

int api_call(const struct api *api, const char *method, const char *path,
	     struct span body, struct api_reply *ret)
{
	const struct httpd_target target = target_of(api, CALL_MS);
	int r;

	*ret = (struct api_reply){ .body = BUF_INIT(API_REPLY_MAX) };
	r = httpd_client_call(&target, method, path, body, &ret->status,
			      &ret->body);
	if (r) {
		fprintf(stderr,
			"sallyport: no answer from the daemon at %s: "
			"%s\n",
			api->socket, err_text(r));
		return CLI_UNREACHABLE;
	}
	if (buf_len(&ret->body) &&
	    json_parse(buf_peek(&ret->body), &ret->json, NULL))
		ret->json = NULL; /* text such as PEM */
	if (ret->status >= 200 && ret->status < 300)
		return CLI_OK;
	reply_complain(ret);
	return CLI_FAILED;
}

int api_do(const struct api *api, const char *method, const char *path,
	   struct span body)
{
	struct api_reply reply CLEANUP_REPLY;
	int r;

	r = api_call(api, method, path, body, &reply);
	if (r == CLI_OK && api->json)
		api_print(&reply);
	return r;
}

/* 0 or -errno of a question about the status, with nothing on stderr. */
static int probe(const struct api *api, struct buf *reply)
{
	const struct httpd_target target = target_of(api, PROBE_MS);
	unsigned status;
	int r;

	r = httpd_client_call(&target, "GET", ROUTE_STATUS, SPAN_NONE, &status,
			      reply);
	return r ? r : status < 500 ? 0 : -EIO;
}

bool api_answers(const struct api *api)
{
	struct buf reply CLEANUP(buf_fini) = BUF_INIT(API_REPLY_MAX);

	return !probe(api, &reply);
}

bool api_is_ready(const struct api *api)
{
	struct buf reply CLEANUP(buf_fini) = BUF_INIT(API_REPLY_MAX);
	struct json *root CLEANUP_JSON = NULL;

	return !probe(api, &reply) &&
	       !json_parse(buf_peek(&reply), &root, NULL) &&
	       json_bool(json_find(root, "ready"));
}

void api_print(const struct api_reply *reply)
{
	struct span text = buf_peek(&reply->body);

	if (!text.len)
		return;
	(void)fwrite(text.ptr, 1, text.len, stdout);
	if (text.ptr[text.len - 1] != '\n')
		putchar('\n');
}
