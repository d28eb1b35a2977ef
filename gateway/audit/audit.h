/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - the audit record: one JSON line per exchange, denied or allowed
 *
 * Each stage puts its facts into struct audit as they become known; the record
 * is written once, at the end, by audit_emit(). Every string is escaped; query
 * strings, header values and credential values never appear. The format is
 * drawn in docs/formats.md.
 *
 * Records go out whole lines at a time by write(2) to an O_APPEND file, so
 * lines of several workers never mix and rotation is a new descriptor. One of
 * something refused is written when the turn of the loop ends in which it came;
 * others wait for company, AUDIT_WAIT_MS at most, because a write of a line
 * costs as much as the rest of its exchange's bookkeeping. A gateway that is
 * killed loses what waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/span.h"

struct audit_log;
struct arena;
struct denied;
struct loop;
struct verdict;
struct verdict_origin;

/* What kind of event a record is about. */
enum audit_kind {
	AUDIT_HTTP,    /* an HTTP exchange */
	AUDIT_TUNNEL,  /* bytes passed unopened, or after an upgrade */
	AUDIT_DNS,     /* a denied DNS question */
	AUDIT_CONNECT, /* a connection that ended before any of these */
	AUDIT_FLOW,    /* UDP or ICMP, when it began or was cut */
	AUDIT_INGRESS, /* from outside to a port of a sandbox */
	AUDIT_PACKET,  /* one that the kernel dropped by itself, or many */
	AUDIT_KIND_NUM,
};

/* Why something was refused or failed; "" in the record when it was not. */
enum audit_reason {
	AUDIT_REASON_NONE,
#define AUDIT_REASON(id, text) AUDIT_REASON_##id,
#include "gateway/audit/reason.def"
#undef AUDIT_REASON
	AUDIT_REASON_NUM,
};

/* Spans are borrowed until audit_emit(): from the exchange's arena or from
 * something that lives as long. */
struct audit {
	enum audit_kind kind;
	uint64_t start_us; /* clock_us() when it began */
	/* listener, identify */
	struct span sandbox;
	struct addr client, original;
	/* session */
	const char *scheme; /* "https", "http", "tcp", "dns" */
	struct span device; /* where a packet came in; else empty */
	uint16_t protocol;  /* of IP, of a packet; else 0 */
	const char *proxy;  /* how the explicit proxy was asked, or NULL */
	struct span host;   /* name, or empty */
	bool host_learned;  /* it was not said: our DNS gave it */
	uint16_t port;
	struct addr address; /* dialled; port 0 = none */
	const char *tls_version, *origin_tls_version;
	bool inspected, resumed, origin_resumed, origin_reused;
	/* decide */
	bool allowed;
	enum audit_reason reason;
	const char *verdict_source;
	struct span policy, rule, rule_file;
	uint32_t rule_line;
	uint64_t generation;
	struct span detail; /* a sentence for failures */
	uint64_t alike;	    /* it stands for so many records; 0 and 1: itself */
	/* request */
	struct span method, path; /* path without query */
	/* bind, inject */
	struct span binding;
	uint64_t revision;
	bool injected;
	/* forward */
	uint16_t status;
	uint64_t request_bytes, response_bytes; /* bodies, or tunnel bytes */
	uint64_t decided_us, connected_us,
		first_byte_us; /* since start; 0 = - */
	unsigned redactions;
};

enum { AUDIT_WAIT_MS = 10 };

struct audit_log *audit_log_new(struct loop *loop);
struct audit_log *audit_log_free(struct audit_log *log);
/* fd is borrowed and may be replaced; -1, as at first, drops. */
void audit_log_set_fd(struct audit_log *log, int fd);
/* At the end of every turn of the loop: writes what may not wait. */
void audit_log_settle(struct audit_log *log);
/* Writes out all that was collected. */
void audit_log_flush(struct audit_log *log);
/* Bytes that it has for what it collects. */
size_t audit_log_memory(const struct audit_log *log);

/* Shown each record that is written (denied_look()); borrowed, may be NULL. */
void audit_log_set_denied(struct audit_log *log, struct denied *d);

/* Collects one record. */
void audit_emit(struct audit_log *log, const struct audit *a);
/* One that is not written by itself is shown all the same. */
void audit_look(struct audit_log *log, const struct audit *a);

const char *audit_kind_name(enum audit_kind kind);
const char *audit_reason_name(enum audit_reason reason);
/* A plain sentence for people and agents. */
const char *audit_reason_text(enum audit_reason reason);
