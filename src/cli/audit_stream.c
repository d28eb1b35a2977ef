/* SPDX-License-Identifier: Apache-2.0 */
/* audit_stream.c - audit records from the daemon's event stream, one by one
 *
 * An event is a line "data: {...}" and an empty line; lines of other kinds
 * (comments that keep the connection alive) are passed over.
 */

#include "src/cli/audit_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/cli/api.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/httpd/client.h"
#include "src/text/json.h"

enum { LINE_MAX_BYTES = 256 * 1024, QUIET_MS = 30000, TEXT_SIZE = 512 };

struct stream {
	struct buf pending; /* a line that is not complete */
	audit_record_fn *fn;
	void *ctx;
};

static bool line_take(struct stream *s, struct span line)
{
	struct json *record CLEANUP_JSON = NULL;

	if (!span_starts(line, SPAN("data:")))
		return true;
	line = span_trim(span_from(line, 5));
	if (json_parse(line, &record, NULL))
		return true; /* half a line of a full disk: not ours to judge */
	return s->fn(s->ctx, record, line);
}

static bool on_piece(void *ctx, struct span piece)
{
	struct stream *s = ctx;
	struct span rest, line;
	size_t end;

	if (buf_put(&s->pending, piece))
		return false;
	rest = buf_peek(&s->pending);
	while ((end = span_find(rest, '\n')) < rest.len) {
		line = span_of(rest.ptr, end);
		rest = span_from(rest, end + 1);
		if (!line_take(s, line))
			return false;
	}
	buf_consume(&s->pending, buf_len(&s->pending) - rest.len);
	return true;
}

int audit_stream(const struct api *api, const struct audit_question *q,
		 audit_record_fn *fn, void *ctx)
{
	const char *token = getenv("SALLYPORT_TOKEN");
	const struct httpd_target target = {
		.socket_path = api->socket,
		.token = token && *token ? token : NULL,
		.timeout_ms = q->follow ? 0 : QUIET_MS,
	};
	struct stream s = { .pending = BUF_INIT(LINE_MAX_BYTES) };
	struct buf reply CLEANUP(buf_fini) = BUF_INIT(LINE_MAX_BYTES);
	struct api_path path;
	unsigned status = 0;
	char before[128];
	int r;

	s.fn = fn;
	s.ctx = ctx;
	(void)snprintf(before, sizeof(before),
		       ROUTE_AUDIT "?lines=%u&follow=%s%s", q->lines,
		       q->follow ? "true" : "false",
		       q->sandbox ? "&sandbox=" : "");
	if (q->sandbox)
		api_path_set(&path, before, span_str(q->sandbox));
	else
		(void)span_copy(span_str(before), path.text, sizeof(path.text));
	r = httpd_client_stream(&target, path.text, &status, on_piece, &s,
				&reply);
	buf_fini(&s.pending);
	if (r) {
		fprintf(stderr,
			"sallyport: no audit from the daemon at %s: "
			"%s\n",
			api->socket, err_text(r));
		return CLI_UNREACHABLE;
	}
	if (status == 200)
		return CLI_OK;
	fprintf(stderr, "sallyport: the daemon answered %u: %.*s\n", status,
		SPAN_FMT(buf_peek(&reply)));
	return CLI_FAILED;
}

/* -- as a sentence -------------------------------------------------------- */

static const char *escaped(const struct json *record, const char *member,
			   const char *none, char text[TEXT_SIZE])
{
	struct span value = json_text(json_find(record, member));

	if (!value.len)
		value = span_str(none);
	return log_escape(value, text, TEXT_SIZE);
}

/* "https://host:port/path"; the usual ports are left out, and an address has
 * its own. */
static void where_put(const struct json *record, struct buf *b)
{
	char scheme[TEXT_SIZE], host[TEXT_SIZE], path[TEXT_SIZE];
	uint64_t port = 0;

	(void)json_u64(json_find(record, "port"), &port);
	if (json_find(record, "host"))
		escaped(record, "host", "-", host);
	else
		escaped(record, "original", "-", host);
	(void)!buf_putf(b, " %s://%s", escaped(record, "scheme", "tcp", scheme),
			host);
	if (json_find(record, "host") && port && port != 443 && port != 80 &&
	    port != 53)
		(void)!buf_putf(b, ":%u", (unsigned)port);
	(void)!buf_put_str(b, escaped(record, "path", "", path));
}

const char *audit_sentence(const struct json *record, char *dst, size_t size)
{
	struct buf b CLEANUP(buf_fini) = BUF_INIT(8 * TEXT_SIZE);
	char text[TEXT_SIZE];
	uint64_t status;

	(void)!buf_putf(&b, "%s", escaped(record, "time", "-", text));
	(void)!buf_putf(&b, " %s", escaped(record, "sandbox", "-", text));
	(void)!buf_putf(&b, " %-5s", escaped(record, "verdict", "-", text));
	(void)!buf_putf(&b, " %s",
			escaped(record,
				json_find(record, "method") ? "method" : "kind",
				"-", text));
	where_put(record, &b);
	if (json_u64(json_find(record, "status"), &status))
		(void)!buf_putf(&b, " %u", (unsigned)status);
	if (json_bool(json_find(record, "injected")))
		(void)!buf_putf(&b, " injected %s",
				escaped(record, "binding", "-", text));
	if (json_find(record, "reason"))
		(void)!buf_putf(&b, " (%s)",
				escaped(record, "reason", "-", text));
	if (json_find(record, "detail"))
		(void)!buf_putf(&b, ": %s",
				escaped(record, "detail", "-", text));
	if (!span_copy(buf_peek(&b), dst, size) && size)
		(void)snprintf(dst, size, "(a long record)");
	return dst;
}
