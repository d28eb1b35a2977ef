/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - what a request through the proxy is told of, and what it is not */

#include "src/execd/proxy/head.h"

#include <stdio.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/execd/execd.h"
#include "src/execd/proxy/target.h"
#include "src/httpd/forward_head.h"

enum { LINES_MAX = 32 * 1024, HOST_MAX = 32 };

static bool is_token(const struct header *h)
{
	return span_eq_nocase(h->name, SPAN("X-EXECD-ACCESS-TOKEN")) ||
	       span_eq_nocase(h->name, SPAN(EXECD_PROXY_TOKEN));
}

bool head_drops(const struct header *h)
{
	switch (h->id) {
	case HEADER_X_FORWARDED_FOR:
	case HEADER_X_FORWARDED_HOST:
	case HEADER_X_FORWARDED_PROTO:
		return true;
	default:
		return is_token(h);
	}
}

/* Those who asked before us, and who asks us. */
static int put_forwarded(struct buf *out, const struct headers *all,
			 const struct addr *peer)
{
	char text[ADDR_TEXT_SIZE];
	int r;

	r = buf_put_str(out, "X-Forwarded-For: ");
	for (unsigned i = 0; i < all->count && !r; i++)
		if (all->items[i].id == HEADER_X_FORWARDED_FOR &&
		    all->items[i].value.len)
			r = buf_putf(out, "%.*s, ",
				     SPAN_FMT(all->items[i].value));
	if (!r)
		r = buf_putf(out, "%s\r\nX-Forwarded-Proto: http\r\n",
			     addr_text(peer, text, sizeof(text)));
	return r;
}

int head_put_request(struct buf *out, const struct h1_request *head,
		     const struct target *to, const struct addr *peer)
{
	CLEANUP(buf_fini) struct buf lines = BUF_INIT(LINES_MAX);
	char host[HOST_MAX];
	int r = peer ? put_forwarded(&lines, &head->headers, peer) : 0;

	if (r)
		return r;
	(void)snprintf(host, sizeof(host), "127.0.0.1:%u", to->port);
	return forward_put_request(
		out, head,
		&(struct forward_edit){
			.path = to->rest,
			.host = span_str(host),
			.lines = buf_peek(&lines),
			.drops = peer ? head_drops : is_token,
		});
}
