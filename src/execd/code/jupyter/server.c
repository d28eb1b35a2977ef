/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the Jupyter server: where it is */

#include "src/execd/code/jupyter/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/execd.h"
#include "src/execd/whole.h"
#include "src/text/hosts.h"

enum { HOSTS_FILE_MAX = 1024 * 1024, PORT_HTTP = 80 };

static bool parse_fail(struct jupyter *j, const char *why)
{
	(void)snprintf(j->wrong, sizeof(j->wrong),
		       "JUPYTER_HOST %s, expected http://HOST:PORT", why);
	return false;
}

static bool is_path(struct span path)
{
	size_t i;

	for (i = 0; i < path.len; i++)
		if (path.ptr[i] <= ' ' || path.ptr[i] > '~' ||
		    path.ptr[i] == '?' || path.ptr[i] == '#')
			return false;
	return true;
}

bool jupyter_parse(const char *text, struct jupyter *ret)
{
	const struct span http = SPAN("http://");
	struct span rest = span_trim(span_str(text)), host, path;

	ret->wrong[0] = '\0';
	if (span_starts(rest, SPAN("https://")))
		return parse_fail(ret, "asks for TLS, which this program does "
				       "not speak");
	if (span_starts(rest, http))
		rest = span_from(rest, http.len);
	host = span_of(rest.ptr, span_find(rest, '/'));
	path = span_from(rest, host.len);
	while (path.len && path.ptr[path.len - 1] == '/')
		path.len--;
	if (!authority_parse(host, PORT_HTTP, &ret->at))
		return parse_fail(ret, "names no host");
	if (!span_copy(host, ret->host, sizeof(ret->host)))
		return parse_fail(ret, "has too long a host");
	if (!is_path(path) || !span_copy(path, ret->base, sizeof(ret->base)))
		return parse_fail(ret, "has a path that is too long, or none");
	return true;
}

struct jupyter *jupyter_new(struct execd *e)
{
	struct jupyter *j = must_alloc(sizeof(*j));

	j->execd = e;
	list_init(&j->calls);
	if (!jupyter_parse(e->config->jupyter_host, j))
		log_error("%s: no code will run on its kernels", j->wrong);
	return j;
}

int jupyter_put_token(const struct jupyter *j, struct buf *out)
{
	const char *token = j->execd->config->jupyter_token;

	if (!token || !token[0])
		return 0;
	return buf_putf(out, "Authorization: token %s\r\n", token);
}

/* -- names ---------------------------------------------------------------- */

struct lookup {
	struct span name;
	struct addr v4, v6;
	bool has_v4, has_v6;
};

static void on_host(void *ctx, struct span name, const struct addr *address)
{
	struct lookup *l = ctx;

	if (!span_eq_nocase(name, l->name))
		return;
	if (addr_is_v4(address) && !l->has_v4) {
		l->v4 = *address;
		l->has_v4 = true;
	} else if (!addr_is_v4(address) && !l->has_v6) {
		l->v6 = *address;
		l->has_v6 = true;
	}
}

/* Every system has this name, whether its file does or not. */
static void know_localhost(struct lookup *l)
{
	if (!l->has_v4 && !l->has_v6 &&
	    span_eq_nocase(l->name, SPAN("localhost")))
		l->has_v4 = addr_parse(SPAN("127.0.0.1"), &l->v4);
}

int jupyter_resolve(const struct jupyter *j, struct addr *ret, struct diag *d)
{
	struct lookup l = { .name = host_span(&j->at.host) };
	struct buf file = BUF_INIT(HOSTS_FILE_MAX);

	if (j->wrong[0])
		return diag_set(d, 0, 0, "%s", j->wrong);
	if (j->at.is_address) {
		*ret = j->at.address;
		ret->port = j->at.port;
		return 0;
	}
	if (!whole_read("/etc/hosts", &file))
		(void)hosts_parse(buf_peek(&file), on_host, &l);
	buf_fini(&file);
	know_localhost(&l);
	if (!l.has_v4 && !l.has_v6) {
		(void)diag_set(d, 0, 0,
			       "JUPYTER_HOST: %s is not in /etc/hosts, and "
			       "this program asks no name server: use an "
			       "address",
			       j->at.host.text);
		return -EADDRNOTAVAIL;
	}
	*ret = l.has_v4 ? l.v4 : l.v6;
	ret->port = j->at.port;
	return 0;
}
