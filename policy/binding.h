/* SPDX-License-Identifier: Apache-2.0 */
/* binding.h - which credential belongs on a request: parsed bindings, matched
 *
 * A binding says: on requests like this, put these credentials into these
 * headers. It knows names of credentials, never values.
 *
 *   {"name": "github",
 *    "sandboxes": ["build-7"],			every sandbox when absent
 *    "match": {"schemes": ["https"],		the default
 *		"ports": [443],			the default
 *		"hosts": ["api.github.com", "*.githubusercontent.com"],
 *		"methods": ["GET", "POST"],	default GET POST PUT PATCH
 *						DELETE
 *		"paths": ["/v1/me"]},		default every path
 *    "auth": {"type": "bearer", "credential": "github-token"},
 *    "redactBody": true}			default false
 *
 * auth types: bearer {credential}, basic {credential: base64 of user:password},
 * apiKey {name, credential}, customHeaders {headers: [{name, credential}]}.
 * Unknown fields are refused everywhere. A "revision" is accepted and kept, so
 * that what the API returned may be sent back.
 *
 * A path pattern is exact, or a prefix when it ends in a star.
 *
 * Precedence: an exact host beats every wildcard; all wildcards are equal.
 * Two bindings left at the best level are a tie, and a tie injects nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/attrib.h"
#include "src/base/map.h"
#include "src/base/span.h"

struct buf;
struct diag;
struct json;

enum {
	BINDING_NAME_MAX = 255,	 /* bytes; of credential names too */
	BINDING_LIST_MAX = 1024, /* items of one list of a binding */
	BINDING_PATH_MAX = 2048,
	BINDING_HEADERS_MAX = 16,
	BINDING_TEXT_MAX = 64 * 1024, /* of the normalised JSON */
};

enum binding_scheme { BINDING_HTTP = 1, BINDING_HTTPS = 2 };

enum binding_auth {
	BINDING_AUTH_NONE,
	BINDING_AUTH_BEARER,
	BINDING_AUTH_BASIC,
	BINDING_AUTH_API_KEY,
	BINDING_AUTH_CUSTOM_HEADERS,
	BINDING_AUTH_NUM,
};

/* What is written: "name: prefix<value of credential>". */
struct binding_header {
	struct span name;	/* as it will be sent */
	struct span prefix;	/* "Bearer ", "Basic " or "" */
	struct span credential; /* name of the credential */
};

struct binding_list {
	struct span *items;
	unsigned count;
};

/* Immutable once parsed; every span is NUL-terminated in its arena. */
struct binding {
	struct span name;
	uint64_t revision;	       /* 0 = not told */
	bool every_sandbox;	       /* .sandboxes is empty then */
	struct binding_list sandboxes; /* ids */
	unsigned schemes;	       /* mask of enum binding_scheme */
	uint16_t *ports;
	unsigned port_count;
	struct binding_list hosts;   /* canonical; wildcards begin "*." */
	struct binding_list methods; /* upper-case */
	struct binding_list paths;   /* exact, or prefix with a last '*' */
	bool redact_body; /* answers' bodies too, not only their heads */
	enum binding_auth auth;
	struct binding_header headers[BINDING_HEADERS_MAX];
	unsigned header_count; /* at least 1 */
	struct arena arena;
};

/* Validates and normalises one binding. 0; -EINVAL with d, which names the
 * binding where it can. */
WUNRES int binding_parse(const struct json *j, struct binding **ret,
			 struct diag *d);
struct binding *binding_free(struct binding *b);
/* The normalised JSON, every default filled in; with "revision" when it has
 * one and with_revision. 0 or -ENOBUFS. */
WUNRES int binding_emit(const struct binding *b, bool with_revision,
			struct buf *buf);
struct json_out;
/* As the contract shows one (2.4): of what it injects only the type, and the
 * header of an API key. */
void binding_emit_shown(struct json_out *o, const struct binding *b,
			uint64_t revision);
const char *binding_auth_name(enum binding_auth auth);

/* Could one request match both at equal precedence? */
bool binding_clashes(const struct binding *a, const struct binding *b);
/* Does any header take its value from this credential? */
bool binding_uses(const struct binding *b, struct span credential);

/* Trimmed name of a credential or a binding: 1..BINDING_NAME_MAX bytes, no
 * control characters. False: *ret untouched. */
WUNRES bool binding_name_parse(struct span text, struct span *ret);

/* -- a set of bindings, ready to be asked -------------------------------- */

/* One scope's bindings. Immutable once built; lookups cost a few hashes. */
struct binding_set {
	uint64_t revision;
	struct binding **items;
	unsigned count;
	struct map exact;    /* host -> struct binding_host */
	struct map wildcard; /* suffix without "*." -> struct binding_host */
};

/* From {"revision": N, "bindings": [...]}; every binding is validated again. */
WUNRES int binding_set_parse(struct span text, struct binding_set **ret,
			     struct diag *d);
/* Takes the bindings (the array itself stays the caller's). */
struct binding_set *binding_set_new(struct binding **items, unsigned count,
				    uint64_t revision);
struct binding_set *binding_set_free(struct binding_set *set);

struct binding_query {
	struct span sandbox; /* id */
	enum binding_scheme scheme;
	uint16_t port;
	struct span host;   /* canonical name (wire/host.h) */
	struct span method; /* as sent; methods are case-sensitive */
	struct span path;   /* canonical (wire/url.h), no query */
};

enum binding_result {
	BINDING_NO_MATCH,
	BINDING_MATCH, /* ret[0] */
	BINDING_TIE,   /* ret[0] and ret[1], the first two of them */
};

/* set may be NULL. Pure; no allocation. */
enum binding_result binding_set_match(const struct binding_set *set,
				      const struct binding_query *q,
				      const struct binding *ret[2]);

/* Is there a binding for this sandbox, scheme, port and host, whatever the
 * method and path? (Must this TLS connection be opened?) Those two fields of
 * the query are not read. */
bool binding_set_concerns(const struct binding_set *set,
			  const struct binding_query *q);

/* Is there such a binding that looks at the path (anything but "/" and all
 * below)? Then a path that can be read in two ways must choose none. */
bool binding_set_minds_path(const struct binding_set *set,
			    const struct binding_query *q);
