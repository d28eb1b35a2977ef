/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c - one call as libcurl's easy handle, and what comes back on it */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/control/docker/inside.h"

enum {
	CONNECT_MS = 10 * 1000,
	URL_MAX = 16 * 1024,
	RECEIVE_BYTES = 64 * 1024,
	AUTH_MAX = 16 * 1024,
};

/* -- what comes back ------------------------------------------------------ */

static long status_of(const struct docker_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* False: nothing more of it is wanted. */
static bool piece_tell(struct docker_call *call, struct span piece)
{
	if (call->piece && !call->piece(call->ctx, piece))
		call->enough = true;
	return call->fn && !call->enough;
}

static bool line_tell(struct docker_call *call, struct span line)
{
	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	return !line.len || piece_tell(call, line);
}

static bool lines_take(struct docker_call *call, struct span bytes)
{
	size_t end;

	while (bytes.len) {
		end = span_find(bytes, '\n');
		if (buf_put(&call->reply, span_of(bytes.ptr, end))) {
			call->error = -ENOBUFS;
			return false;
		}
		if (end == bytes.len)
			return true;
		bytes = span_from(bytes, end + 1);
		if (!line_tell(call, buf_peek(&call->reply)))
			return false;
		buf_clear(&call->reply);
	}
	return true;
}

static bool bytes_take(struct docker_call *call, struct span bytes)
{
	if (call->shape == DOCKER_WHOLE || status_of(call) >= 400) {
		if (!buf_put(&call->reply, bytes))
			return true;
		call->error = -ENOBUFS;
		return false;
	}
	return call->shape == DOCKER_LINES ? lines_take(call, bytes)
					   : piece_tell(call, bytes);
}

/* Returning less than was given ends the transfer. */
static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
	struct docker_call *call = ctx;
	size_t len = size * count;

	if (!call->fn)
		return 0;
	if (call->silence_ms)
		timer_start(&call->silence, call->silence_ms);
	return bytes_take(call, span_of(bytes, len)) ? len : 0;
}

/* What a HEAD request has instead of a body; too long a one is none. */
static void path_stat_take(struct docker_call *call, struct span line)
{
	struct span name = span_cut(&line, ':');

	if (!span_eq_nocase(name, SPAN("X-Docker-Container-Path-Stat")))
		return;
	while (line.len && (line.ptr[line.len - 1] == '\r' ||
			    line.ptr[line.len - 1] == '\n'))
		line.len--;
	buf_clear(&call->path_stat);
	(void)!buf_put(&call->path_stat, span_trim(line));
}

static size_t on_head(char *bytes, size_t size, size_t count, void *ctx)
{
	struct docker_call *call = ctx;
	size_t len = size * count;

	path_stat_take(call, span_of(bytes, len));
	call->head_bytes += len;
	if (call->head_bytes <= DOCKER_HEAD_MAX)
		return len;
	call->error = -ENOBUFS;
	return 0;
}

/* -- how it ended --------------------------------------------------------- */

static int connect_error(const struct docker_call *call)
{
	long number = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &number);
	return number > 0 && number < 4096 ? -(int)number : -ECONNREFUSED;
}

int transfer_status(const struct docker_call *call, CURLcode result)
{
	if (call->error)
		return call->error;
	if (call->enough)
		return (int)status_of(call);
	switch (result) {
	case CURLE_OK:
		break;
	case CURLE_COULDNT_CONNECT:
		return connect_error(call);
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		return -ECONNRESET;
	default: /* cut, or no HTTP at all */
		return -EPROTO;
	}
	/* the last line may come without its end */
	return call->shape == DOCKER_LINES && status_of(call) < 400 &&
			       buf_len(&call->reply)
		       ? -EPROTO
		       : (int)status_of(call);
}

/* -- the handle ----------------------------------------------------------- */

static int header_add(struct docker_call *call, const char *text)
{
	struct curl_slist *more = curl_slist_append(call->headers, text);

	if (!more)
		return -ENOMEM;
	call->headers = more;
	return 0;
}

static int auth_add(struct docker_call *call, struct span auth)
{
	struct buf line = BUF_INIT(AUTH_MAX);
	int r;

	r = buf_put_str(&line, "X-Registry-Auth: ");
	if (!r)
		r = buf_put(&line, auth);
	if (!r)
		r = buf_put(&line, span_of("", 1));
	if (!r)
		r = header_add(call, buf_peek(&line).ptr);
	buf_wipe(&line);
	return r;
}

static int headers_make(struct docker_call *call,
			const struct docker_request *q)
{
	char type[128];
	int r;

	(void)snprintf(type, sizeof(type), "Content-Type: %s",
		       q->type ? q->type : "application/json");
	r = header_add(call, type);
	if (!r) /* no round trip before a large body */
		r = header_add(call, "Expect:");
	if (!r && q->registry_auth.len)
		r = auth_add(call, q->registry_auth);
	return r;
}

static int url_make(struct docker_call *call, const struct docker_request *q)
{
	struct buf url = BUF_INIT(URL_MAX);
	int r;

	r = buf_put_str(&url, "http://docker");
	if (!r && !q->unversioned)
		r = buf_putf(&url, "/v%s",
			     q->version ? q->version : call->docker->version);
	if (!r)
		r = buf_put_str(&url, q->path);
	if (!r)
		r = buf_put(&url, span_of("", 1));
	if (!r)
		call->url = must_strdup(buf_peek(&url).ptr);
	buf_fini(&url);
	return r;
}

#define SET(option, value) \
	must(curl_easy_setopt(call->easy, CURLOPT_##option, (value)) == 0)

/* Nothing of the environment counts, nothing is followed, nobody else is asked.
 */
static void options_set(struct docker_call *call, bool fresh)
{
	SET(UNIX_SOCKET_PATH, call->docker->socket_path);
	SET(URL, call->url);
	SET(PATH_AS_IS, 1L);
	SET(PROTOCOLS_STR, "http");
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(PROXY, "");
	SET(NOSIGNAL, 1L);
	SET(FRESH_CONNECT, fresh ? 1L : 0L);
	SET(FORBID_REUSE, fresh ? 1L : 0L);
	SET(CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	SET(BUFFERSIZE, (long)RECEIVE_BYTES);
	SET(PRIVATE, call);
	SET(HTTPHEADER, call->headers);
	SET(WRITEFUNCTION, on_body);
	SET(WRITEDATA, call);
	SET(HEADERFUNCTION, on_head);
	SET(HEADERDATA, call);
}

static void method_set(struct docker_call *call, bool has_body)
{
	if (has_body || !strcmp(call->method, "POST") ||
	    !strcmp(call->method, "PUT")) {
		SET(POST, 1L);
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)buf_len(&call->body));
		SET(POSTFIELDS, buf_peek(&call->body).ptr);
	} else if (!strcmp(call->method, "HEAD")) {
		SET(NOBODY, 1L);
	}
	SET(CUSTOMREQUEST, call->method);
}

int transfer_new(struct docker_call *call, const struct docker_request *q)
{
	int r;

	r = url_make(call, q);
	if (!r)
		r = headers_make(call, q);
	if (r)
		return err_trace(r);
	call->easy = curl_easy_init();
	if (!call->easy)
		return err_origin(-ENOMEM);
	options_set(call, q->fresh);
	method_set(call, q->body.ptr != NULL);
	return 0;
}

void transfer_free(struct docker_call *call)
{
	struct curl_slist *h;

	if (call->easy)
		curl_easy_cleanup(call->easy);
	for (h = call->headers; h; h = h->next)
		secret_wipe(h->data, strlen(h->data));
	curl_slist_free_all(call->headers);
	free(call->url);
}
