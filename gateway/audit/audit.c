/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - collect records, write them in one go */

#include "gateway/audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "gateway/audit/denied.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/io/loop.h"
#include "src/text/json.h"

enum {
	LOG_BUFFER_BYTES = 1024 * 1024,
	/* As much as comes in AUDIT_WAIT_MS at fifty thousand exchanges a
	 * second. Written by pieces of 64 KiB each cost a twentieth more. */
	FLUSH_BYTES = 512 * 1024,
	/* A buffer larger than this is given back once it is far too large. */
	REST_BYTES = 64 * 1024,
	FAR_TOO_LARGE = 16,
	MEMOS = 128,
};

/* Addresses as text: those of a connection are in the records of all its
 * exchanges. */
struct memo {
	struct addr addr;
	uint8_t len;
	char text[ADDR_TEXT_SIZE];
};

struct audit_log {
	struct buf lines;
	struct timer wait; /* runs while lines may wait */
	bool pressing;	   /* one of them may not */
	int fd;
	uint64_t lost;	 /* failures to write records since the last success */
	bool torn;	 /* the file ends in half a line */
	uint64_t when_s; /* the second that `when` says */
	char when[CLOCK_TEXT_SIZE];
	struct memo memos[MEMOS];
	struct denied *denied; /* NULL: nobody wants to know */
};

static const char *const kind_names[] = {
	[AUDIT_HTTP] = "http",	   [AUDIT_TUNNEL] = "tunnel",
	[AUDIT_DNS] = "dns",	   [AUDIT_CONNECT] = "connect",
	[AUDIT_FLOW] = "flow",	   [AUDIT_INGRESS] = "ingress",
	[AUDIT_PACKET] = "packet",
};
_Static_assert(ARRAY_LEN(kind_names) == AUDIT_KIND_NUM, "a name per kind");

static const char *const reason_names[] = {
	[AUDIT_REASON_NONE] = "",
#define AUDIT_REASON(id, text) [AUDIT_REASON_##id] = #id,
#include "gateway/audit/reason.def"
#undef AUDIT_REASON
};

static const char *const reason_texts[] = {
	[AUDIT_REASON_NONE] = "",
#define AUDIT_REASON(id, text) [AUDIT_REASON_##id] = text,
#include "gateway/audit/reason.def"
#undef AUDIT_REASON
};
_Static_assert(ARRAY_LEN(reason_texts) == AUDIT_REASON_NUM, "all reasons");

const char *audit_kind_name(enum audit_kind kind)
{
	must(kind < AUDIT_KIND_NUM);
	return kind_names[kind];
}

const char *audit_reason_name(enum audit_reason reason)
{
	must(reason < AUDIT_REASON_NUM);
	return reason_names[reason];
}

const char *audit_reason_text(enum audit_reason reason)
{
	must(reason < AUDIT_REASON_NUM);
	return reason_texts[reason];
}

static void on_waited(struct timer *t)
{
	audit_log_flush(container_of(t, struct audit_log, wait));
}

struct audit_log *audit_log_new(struct loop *loop)
{
	struct audit_log *log = must_alloc(sizeof(*log));

	buf_init(&log->lines, LOG_BUFFER_BYTES);
	timer_init(&log->wait, loop, on_waited);
	log->fd = -1;
	return log;
}

struct audit_log *audit_log_free(struct audit_log *log)
{
	if (!log)
		return NULL;
	audit_log_flush(log);
	buf_fini(&log->lines);
	free(log);
	return NULL;
}

void audit_log_set_denied(struct audit_log *log, struct denied *d)
{
	log->denied = d;
}

void audit_log_set_fd(struct audit_log *log, int fd)
{
	audit_log_flush(log);
	log->fd = fd;
	log->torn = false;
}

/* Said once until records are written again. */
static void log_lost(struct audit_log *log, const char *why)
{
	if (!log->lost++)
		log_error("audit records were lost: %s", why);
}

/* 0, or -errno when not all was written. A line that could not be finished is
 * at least ended before the next one. */
static int log_write(struct audit_log *log, struct span lines)
{
	ssize_t n = 0;

	if (log->torn && write(log->fd, "\n", 1) == 1)
		log->torn = false;
	while (lines.len) {
		n = write(log->fd, lines.ptr, lines.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		lines = span_from(lines, (size_t)n);
		log->torn = lines.len && lines.ptr[-1] != '\n';
	}
	return 0;
}

void audit_log_flush(struct audit_log *log)
{
	struct span lines = buf_peek(&log->lines);
	int r = 0;

	timer_stop(&log->wait);
	log->pressing = false;
	if (!lines.len)
		return;
	if (log->fd >= 0)
		r = log_write(log, lines);
	if (log->fd < 0 || r)
		log_lost(log, log->fd < 0 ? "no file" : err_text(r));
	else
		log->lost = 0;
	if (log->lines.size > REST_BYTES &&
	    lines.len < log->lines.size / FAR_TOO_LARGE)
		buf_fini(&log->lines);
	else
		buf_clear(&log->lines);
}

size_t audit_log_memory(const struct audit_log *log)
{
	return log->lines.size;
}

void audit_log_settle(struct audit_log *log)
{
	if (log->pressing)
		audit_log_flush(log);
	else if (buf_len(&log->lines) && !log->wait.due_ms)
		timer_start(&log->wait, AUDIT_WAIT_MS);
}

/* A record under construction, in memory at the end of the log's buffer that is
 * asked for once and not for each of some forty pieces. When there is no more,
 * the rest are no-ops. Keys are literals: their punctuation is put around them
 * by the compiler. */
struct line {
	struct audit_log *log;
	struct buf *out;       /* the log's */
	char *room, *at, *end; /* asked for at room, filled up to at */
	bool failed;
};

enum { LINE_BYTES = 1024 };

static void line_commit(struct line *l)
{
	if (l->at > l->room)
		buf_commit(l->out, (size_t)(l->at - l->room));
	l->room = l->at = l->end = NULL;
}

static bool line_grow(struct line *l, size_t need)
{
	size_t size = MAX(need, (size_t)LINE_BYTES);

	line_commit(l);
	if (l->failed || buf_reserve(l->out, size, &l->room)) {
		l->failed = true;
		return false;
	}
	l->at = l->room;
	l->end = l->room + size;
	return true;
}

static inline bool line_has_room(struct line *l, size_t need)
{
	return LIKELY((size_t)(l->end - l->at) >= need) || line_grow(l, need);
}

static inline void line_append(struct line *l, struct span bytes)
{
	memcpy(l->at, bytes.ptr, bytes.len);
	l->at += bytes.len;
}

static inline void line_put(struct line *l, struct span bytes)
{
	if (line_has_room(l, bytes.len))
		line_append(l, bytes);
}

static void line_put_text(struct line *l, struct span key, struct span value)
{
	if (!value.len || !line_has_room(l, key.len + value.len + 2))
		return;
	line_append(l, key);
	if (LIKELY(json_plain_len(value) == value.len)) {
		*l->at++ = '"';
		line_append(l, value);
		*l->at++ = '"';
		return;
	}
	line_commit(l);
	if (json_escape(l->out, value))
		l->failed = true;
}

/* Of bytes that are known to need no escape. */
static void line_put_plain(struct line *l, struct span key, struct span value)
{
	if (!value.len || !line_has_room(l, key.len + value.len + 2))
		return;
	line_append(l, key);
	*l->at++ = '"';
	line_append(l, value);
	*l->at++ = '"';
}

static void line_put_number(struct line *l, struct span key, uint64_t value)
{
	char digits[SPAN_DECIMAL_SIZE];

	line_put(l, key);
	line_put(l, span_decimal(value, digits));
}

static struct span log_addr(struct audit_log *log, const struct addr *a)
{
	struct memo *m = &log->memos[(a->port ^ a->ip[15]) % MEMOS];

	if (!addr_eq_ip(&m->addr, a) || m->addr.port != a->port ||
	    m->addr.scope_id != a->scope_id) {
		m->addr = *a;
		m->len = (uint8_t)strlen(
			addr_text_port(a, m->text, sizeof(m->text)));
	}
	return span_of(m->text, m->len);
}

static void line_put_addr(struct line *l, struct span key, const struct addr *a)
{
	if (a->port)
		line_put_plain(l, key, log_addr(l->log, a));
}

static void line_put_lower(struct line *l, struct span key, const char *value)
{
	char lower[64];
	size_t i;

	for (i = 0; value[i] && i + 1 < sizeof(lower); i++)
		lower[i] = span_lower_char(value[i]);
	line_put_plain(l, key, span_of(lower, i));
}

/* One end of what the record is about; of ICMP it has no port, and of a frame
 * that is no IP there is none. */
static void line_put_end(struct line *l, struct span key, const struct audit *a,
			 const struct addr *end)
{
	static const struct addr nothing;
	char text[ADDR_TEXT_SIZE];

	if (a->kind == AUDIT_PACKET && addr_eq_ip(end, &nothing))
		return;
	if ((a->kind == AUDIT_FLOW || a->kind == AUDIT_PACKET) && !end->port)
		line_put_text(l, key,
			      span_str(addr_text(end, text, sizeof(text))));
	else
		line_put_addr(l, key, end);
}

#define LINE_KEY(key)		 SPAN(",\"" key "\":")
#define line_text(l, key, value) line_put_text(l, LINE_KEY(key), value)
#define line_str(l, key, value)	 line_text(l, key, span_str(value))
#define line_word(l, key, value) \
	line_put_plain(l, LINE_KEY(key), span_str(value))
#define line_number(l, key, value) line_put_number(l, LINE_KEY(key), value)
#define line_addr(l, key, a)	   line_put_addr(l, LINE_KEY(key), a)
#define line_end(l, key, a, end)   line_put_end(l, LINE_KEY(key), a, end)
#define line_lower(l, key, value)  line_put_lower(l, LINE_KEY(key), value)
#define line_known(l, key, value)                   \
	do {                                        \
		if (value)                          \
			line_number(l, key, value); \
	} while (0)
#define line_true(l, key, value)                                \
	do {                                                    \
		if (value)                                      \
			line_put(l, SPAN(",\"" key "\":true")); \
	} while (0)

static void line_destination(struct line *l, const struct audit *a)
{
	line_word(l, "scheme", a->scheme);
	line_known(l, "protocol", a->protocol);
	line_text(l, "host", a->host);
	if (a->host_learned && a->host.len)
		line_word(l, "hostFrom", "dns");
	line_known(l, "port", a->port);
	line_addr(l, "address", &a->address);
	line_word(l, "tls", a->tls_version);
	line_true(l, "tlsResumed", a->resumed);
	line_word(l, "originTls", a->origin_tls_version);
	line_true(l, "originTlsResumed", a->origin_resumed);
	line_true(l, "originReused", a->origin_reused);
	line_true(l, "inspected", a->inspected);
}

static void line_decision(struct line *l, const struct audit *a)
{
	line_word(l, "verdict", a->allowed ? "allow" : "deny");
	if (a->reason)
		line_lower(l, "reason", audit_reason_name(a->reason));
	line_word(l, "decidedBy", a->verdict_source);
	line_text(l, "policy", a->policy);
	line_text(l, "rule", a->rule);
	line_text(l, "ruleFile", a->rule_file);
	line_known(l, "ruleLine", a->rule_line);
	line_known(l, "generation", a->generation);
	line_text(l, "detail", a->detail);
	if (a->alike > 1)
		line_number(l, "alike", a->alike);
}

static void line_exchange(struct line *l, const struct audit *a)
{
	line_text(l, "method", a->method);
	line_text(l, "path", a->path);
	line_text(l, "binding", a->binding);
	if (a->binding.len)
		line_number(l, "revision", a->revision);
	line_true(l, "injected", a->injected);
	line_known(l, "redactions", a->redactions);
	line_known(l, "status", a->status);
	if (a->kind != AUDIT_DNS && a->kind != AUDIT_FLOW &&
	    a->kind != AUDIT_PACKET) {
		line_number(l, "bytesOut", a->request_bytes);
		line_number(l, "bytesIn", a->response_bytes);
	}
	line_known(l, "decidedUs", a->decided_us);
	line_known(l, "connectedUs", a->connected_us);
	line_known(l, "firstByteUs", a->first_byte_us);
	line_number(l, "totalUs", clock_us() - a->start_us);
}

/* The time, of which most records of a second share all but the end. */
static struct span log_when(struct audit_log *log)
{
	static const size_t ms_at = CLOCK_TEXT_SIZE - 5; /* "mmmZ" and NUL */
	uint64_t now_ms = clock_wall_ms();

	if (now_ms / 1000 != log->when_s) {
		clock_text(now_ms, log->when, sizeof(log->when));
		log->when_s = now_ms / 1000;
	}
	log->when[ms_at] = (char)('0' + now_ms / 100 % 10);
	log->when[ms_at + 1] = (char)('0' + now_ms / 10 % 10);
	log->when[ms_at + 2] = (char)('0' + now_ms % 10);
	return span_of(log->when, CLOCK_TEXT_SIZE - 1);
}

void audit_look(struct audit_log *log, const struct audit *a)
{
	if (log->denied && !a->allowed)
		denied_look(log->denied, a, clock_ms());
}

void audit_emit(struct audit_log *log, const struct audit *a)
{
	struct line l = { .log = log, .out = &log->lines };
	size_t before = buf_len(&log->lines);

	if (!a->allowed)
		log->pressing = true;
	audit_look(log, a);
	line_put(&l, SPAN("{\"time\":\""));
	line_put(&l, log_when(log));
	line_put(&l, SPAN("\""));
	line_word(&l, "kind", kind_names[a->kind]);
	line_text(&l, "sandbox", a->sandbox);
	line_text(&l, "interface", a->device);
	line_end(&l, "client", a, &a->client);
	line_end(&l, "original", a, &a->original);
	line_str(&l, "proxy", a->proxy);
	line_destination(&l, a);
	line_decision(&l, a);
	line_exchange(&l, a);
	line_put(&l, SPAN("}\n"));
	line_commit(&l);

	if (l.failed) { /* a record is whole or not there */
		log->lines.end -= buf_len(&log->lines) - before;
		log_lost(log, "a record was too large");
		return;
	}
	if (buf_len(&log->lines) >= FLUSH_BYTES)
		audit_log_flush(log);
}
