/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - the port and the path out of /proxy/{port}/{path}?{query}
 *
 * The path is passed on raw: whether %2F is a separator is for the server
 * behind to say.
 */

#include "src/execd/proxy/target.h"

#include <errno.h>

#include "src/base/buf.h"

bool target_parse(struct span request, struct target *ret)
{
	const struct span prefix = SPAN("/proxy/");
	struct span port;
	uint64_t number;

	if (!span_starts(request, prefix))
		return false;
	request = span_from(request, prefix.len);
	port = span_of(request.ptr,
		       MIN(span_find(request, '/'), span_find(request, '?')));
	if (!span_parse_u64(port, &number) || !number || number > UINT16_MAX)
		return false;
	ret->port = (uint16_t)number;
	ret->rest = span_from(request, port.len);
	return true;
}

int target_put_path(struct buf *out, const struct target *t)
{
	if (!span_starts(t->rest, SPAN("/")) && buf_put(out, SPAN("/")))
		return -ENOBUFS;
	return buf_put(out, t->rest);
}
