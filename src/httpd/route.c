/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - which route a request takes, and the parameters of its path */

#include "src/httpd/request.h"

#include <stdio.h>

#include "src/base/chars.h"

bool httpd_decode(struct arena *a, struct span text, bool plus,
		  struct span *ret)
{
	struct span copy = arena_dup(a, text);
	char *dst = (char *)(uintptr_t)copy.ptr;
	size_t at = 0, i;
	int high, low;

	if (!dst)
		return false;
	for (i = 0; i < text.len; i++) {
		if (text.ptr[i] != '%') {
			dst[at++] =
				plus && text.ptr[i] == '+' ? ' ' : text.ptr[i];
			continue;
		}
		if (i + 2 >= text.len)
			return false;
		high = char_hex(text.ptr[i + 1]);
		low = char_hex(text.ptr[i + 2]);
		if (high < 0 || low < 0 || !(high | low))
			return false;
		dst[at++] = (char)(high << 4 | low);
		i += 2;
	}
	dst[at] = '\0';
	*ret = span_of(dst, at);
	return true;
}

static bool param_add(struct httpd_request *r, struct span name,
		      struct span value, bool raw)
{
	if (r->param_count == HTTPD_PARAMS_MAX)
		return false;
	r->params[r->param_count++] = (struct httpd_param){ name, value, raw };
	return true;
}

/* Does the path have the shape of the pattern? Parameters are noted as they
 * stand there. */
static bool pattern_matches(struct span pattern, struct span path,
			    struct httpd_request *r)
{
	struct span want, found;

	r->param_count = 0;
	while (pattern.len || path.len) {
		want = span_cut(&pattern, '/');
		if (span_ends(want, SPAN("*}")))
			return param_add(r, span_of(want.ptr + 1, want.len - 3),
					 path, true);
		found = span_cut(&path, '/');
		if (!span_starts(want, SPAN("{"))) {
			if (!span_eq(want, found))
				return false;
			continue;
		}
		if (!found.len ||
		    !param_add(r, span_of(want.ptr + 1, want.len - 2), found,
			       false))
			return false;
	}
	return true;
}

/* HEAD is answered by the route of GET. */
static bool method_matches(const char *method, struct span asked)
{
	return !strcmp(method, "*") || span_eq(asked, span_str(method)) ||
	       (span_eq(asked, SPAN("HEAD")) && !strcmp(method, "GET"));
}

static int params_decode(struct httpd_request *r)
{
	unsigned i;

	for (i = 0; i < r->param_count; i++)
		if (!r->params[i].raw &&
		    !httpd_decode(&r->arena, r->params[i].value, false,
				  &r->params[i].value))
			return ROUTE_E_BAD_PARAM;
	return 0;
}

static void allow_add(char *list, size_t size, const char *method)
{
	size_t at = strlen(list);

	if (strstr(list, method))
		return; /* several routes of one path have it */
	(void)snprintf(list + at, size - at, "%s%s%s", at ? ", " : "", method,
		       strcmp(method, "GET") ? "" : ", HEAD");
}

int route_find(const struct httpd *h, struct httpd_request *r,
	       struct span *allow)
{
	const struct httpd_route *route;
	char methods[128] = "";

	for (route = h->routes; route < h->routes + h->route_count; route++) {
		if (!pattern_matches(span_str(route->path), r->path, r))
			continue;
		if (method_matches(route->method, r->head.method)) {
			r->route = route;
			return params_decode(r);
		}
		allow_add(methods, sizeof(methods), route->method);
	}
	if (!methods[0])
		return ROUTE_E_NOT_FOUND;
	*allow = arena_dup(&r->arena, span_str(methods));
	return ROUTE_E_METHOD;
}
