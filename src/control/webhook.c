/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c - notes that wait, are posted, rest before another try, and end
 *
 * A note is in one list: waiting, posting or resting. All of them together are
 * what webhook.queue bounds, so a receiver that is down costs that much memory
 * and four connections, and its rests hold nobody else up.
 */

#include "src/control/webhook.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/recent.h"
#include "src/control/curl_loop.h"
#include "src/role/config.h"
#include "src/role/msg.h"
#include "src/text/json.h"
#include "src/wire/host.h"

enum { BODY_MAX = 8 * 1024, CA_PATH_SIZE = 4096 };

struct webhook {
	const struct config *config;
	struct curl_loop curl;
	struct curl_slist *headers;
	char ca_path[CA_PATH_SIZE];
	struct list waiting, posting, resting; /* struct note */
	unsigned count, posting_count;
	struct recent said;
	bool failing; /* it was logged that notes are lost */
	uint64_t sent, failed, dropped;
};

struct note {
	struct webhook *webhook;
	struct list link;
	struct timer rest;
	CURL *easy; /* while it is posted */
	unsigned tries;
	struct buf body;
};

/* -- the end of a note ---------------------------------------------------- */

static void note_stop(struct note *n)
{
	if (!n->easy)
		return;
	curl_loop_remove(&n->webhook->curl, n->easy);
	curl_easy_cleanup(n->easy);
	n->easy = NULL;
	n->webhook->posting_count--;
}

static void note_free(struct note *n)
{
	note_stop(n);
	timer_stop(&n->rest);
	list_remove(&n->link);
	buf_fini(&n->body);
	n->webhook->count--;
	free(n);
}

/* Said once, until one arrives again. */
static void complain(struct webhook *w, const char *why)
{
	if (!w->failing)
		log_warn("the webhook is not told of denied names: %s", why);
	w->failing = true;
}

static void note_sent(struct note *n)
{
	struct webhook *w = n->webhook;

	if (w->failing)
		log_info("the webhook takes denied names again");
	w->failing = false;
	w->sent++;
	note_free(n);
}

static void note_failed(struct note *n, const char *why)
{
	n->webhook->failed++;
	complain(n->webhook, why);
	note_free(n);
}

/* -- posting -------------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
	(void)bytes;
	(void)ctx;
	return size * count; /* nobody wants to know */
}

static bool options_set(struct webhook *w, struct note *n)
{
	CURL *e = n->easy;
	struct span body = buf_peek(&n->body);
	long limit = (long)w->config->webhook_timeout_ms;

#define SET(option, value) \
	(curl_easy_setopt(e, CURLOPT_##option, (value)) == CURLE_OK)
	return SET(URL, w->config->webhook_url) &&
	       SET(PROTOCOLS_STR, "http,https") && SET(PROXY, "") &&
	       SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(CAINFO, w->ca_path) && SET(NOSIGNAL, 1L) &&
	       SET(TIMEOUT_MS, limit) && SET(CONNECTTIMEOUT_MS, limit) &&
	       SET(MAXFILESIZE_LARGE, (curl_off_t)1024 * 1024) &&
	       SET(POST, 1L) &&
	       SET(POSTFIELDSIZE_LARGE, (curl_off_t)body.len) &&
	       SET(POSTFIELDS, body.ptr) && SET(HTTPHEADER, w->headers) &&
	       SET(WRITEFUNCTION, on_body) && SET(PRIVATE, n);
#undef SET
}

static void note_post(struct note *n)
{
	struct webhook *w = n->webhook;
	bool is_ready;

	n->easy = curl_easy_init();
	is_ready = n->easy && options_set(w, n);
	list_remove(&n->link);
	list_push(&w->posting, &n->link);
	w->posting_count += n->easy != NULL;
	if (is_ready && !curl_loop_add(&w->curl, n->easy))
		return;
	if (n->easy) { /* it was not added */
		curl_easy_cleanup(n->easy);
		n->easy = NULL;
		w->posting_count--;
	}
	note_failed(n, "no memory for it");
}

static void go_on(void *ctx)
{
	struct webhook *w = ctx;
	struct note *n;

	while (w->posting_count < WEBHOOK_AT_ONCE &&
	       (n = list_first(&w->waiting, struct note, link)))
		note_post(n);
}

static void on_rested(struct timer *t)
{
	struct note *n = container_of(t, struct note, rest);
	struct webhook *w = n->webhook;

	list_remove(&n->link);
	list_push(&w->waiting, &n->link);
	if (!w->curl.inside)
		go_on(w);
}

static void note_rest(struct note *n)
{
	note_stop(n);
	list_remove(&n->link);
	list_push(&n->webhook->resting, &n->link);
	timer_start(&n->rest, (uint64_t)WEBHOOK_BACKOFF_MS << n->tries++);
}

static void on_done(void *ctx, CURL *easy, CURLcode result)
{
	char why[96];
	struct note *n;
	long status = 0;

	(void)ctx;
	must(!curl_easy_getinfo(easy, CURLINFO_PRIVATE, &n));
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (!result && status < 300) {
		note_sent(n);
		return;
	}
	if ((result || status >= 500) && n->tries < WEBHOOK_RETRIES) {
		note_rest(n);
		return;
	}
	if (result) /* neither URL nor host are in libcurl's text */
		(void)snprintf(why, sizeof(why), "%s",
			       curl_easy_strerror(result));
	else
		(void)snprintf(why, sizeof(why), "it answers with status %ld",
			       status);
	note_failed(n, why);
}

/* -- notes ---------------------------------------------------------------- */

static int body_emit(struct buf *out, const struct msg_denied *denied)
{
	char when[CLOCK_TEXT_SIZE];
	struct json_out o;

	clock_text(denied->wall_ms, when, sizeof(when));
	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "hostname", denied->host);
	json_put_str(&o, "timestamp", when);
	json_put_str(&o, "source", "opensandbox-egress");
	json_put_str(&o, "sandboxId", denied->id);
	json_put_str(&o, "kind", denied->kind);
	if (denied->port)
		json_put_u64(&o, "port", denied->port);
	json_put_str(&o, "reason", denied->text);
	json_close(&o);
	return json_done(&o);
}

/* The gateway's event loops do not know of each other. */
static bool was_said(struct webhook *w, const struct msg_denied *denied)
{
	char key[2 * MSG_NAME_SIZE];
	size_t len = (size_t)snprintf(key, sizeof(key), "%s %s", denied->id,
				      denied->host);

	return recent_was_said(&w->said, span_of(key, len), clock_ms(),
			       (uint64_t)w->config->webhook_quiet_s * 1000);
}

void webhook_tell(struct webhook *w, const struct msg_denied *denied)
{
	struct note *n;

	if (!w || was_said(w, denied))
		return;
	if (w->count >= w->config->webhook_queue) {
		w->dropped++;
		complain(w, "too many wait for its answers");
		return;
	}
	n = must_alloc(sizeof(*n));
	n->webhook = w;
	list_init(&n->link);
	timer_init(&n->rest, w->curl.loop, on_rested);
	buf_init(&n->body, BODY_MAX);
	must(!body_emit(&n->body, denied)); /* all of it is bounded */
	w->count++;
	list_push(&w->waiting, &n->link);
	if (!w->curl.inside)
		go_on(w);
}

/* -- life ----------------------------------------------------------------- */

void webhook_prepare(const struct config *config)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char host[HOST_MAX + 1];
	struct span rest, at;
	struct authority a;

	if (!config->webhook_url[0])
		return;
	/* for the role's resolver from now on, too: its threads must end */
	(void)setenv("RES_OPTIONS", "timeout:2 attempts:2", 0);
	rest = span_str(config->webhook_url);
	rest = span_from(rest, span_find(rest, ':') + 3);
	at = span_cut(&rest, '/');
	if (!authority_parse(span_cut(&at, '?'), 443, &a) || a.is_address ||
	    !span_copy(host_span(&a.host), host, sizeof(host)))
		return;
	if (getaddrinfo(host, NULL, &hints, &found))
		log_warn("the webhook's host has no address yet");
	else
		freeaddrinfo(found);
}

static bool headers_make(struct webhook *w)
{
	struct curl_slist *more;

	w->headers = curl_slist_append(NULL, "Content-Type: application/json");
	more = w->headers ? curl_slist_append(w->headers, "Expect:") : NULL;
	return more != NULL;
}

int webhook_new(struct loop *loop, const struct config *config,
		struct webhook **ret)
{
	static const struct curl_loop_ops ops = { on_done, go_on };
	struct webhook *w;
	int r;

	*ret = NULL;
	if (!config->webhook_url || !config->webhook_url[0])
		return 0;
	w = must_alloc(sizeof(*w));
	w->config = config;
	list_init(&w->waiting);
	list_init(&w->posting);
	list_init(&w->resting);
	(void)snprintf(w->ca_path, sizeof(w->ca_path), "%s/ca-bundle.pem",
		       config->run_dir);
	r = curl_loop_init(&w->curl, loop, &ops, w, WEBHOOK_AT_ONCE);
	if (!r && !headers_make(w))
		r = err_origin(-ENOMEM);
	if (r) {
		webhook_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

static void notes_free(struct list *all)
{
	struct note *n;

	while ((n = list_first(all, struct note, link)))
		note_free(n);
}

struct webhook *webhook_free(struct webhook *w)
{
	if (!w)
		return NULL;
	notes_free(&w->posting);
	notes_free(&w->waiting);
	notes_free(&w->resting);
	curl_slist_free_all(w->headers);
	curl_loop_fini(&w->curl);
	free(w);
	return NULL;
}

void webhook_status_put(struct json_out *o, const char *member,
			const struct webhook *w)
{
	if (!w) {
		json_put_null(o, member);
		return;
	}
	json_open_object(o, member);
	json_put_u64(o, "sent", w->sent);
	json_put_u64(o, "failed", w->failed);
	json_put_u64(o, "dropped", w->dropped);
	json_put_u64(o, "waiting", w->count);
	json_close(o);
}
