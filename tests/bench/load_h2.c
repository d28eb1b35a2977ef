/* SPDX-License-Identifier: Apache-2.0 */
/* load_h2.c - one HTTP/2 connection that keeps a number of streams busy
 *
 * How it works: nghttp2 speaks, we only move bytes. Each stream is a slot; one
 * that ends well is counted and asks again under a new id. What a turn wants
 * to send is gathered, so that many requests share a TLS record, as they do
 * with browsers.
 */

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "tests/bench/load.h"

enum {
	RECORD_BYTES = 16 * 1024,
	WINDOW_BYTES = 16 * 1024 * 1024,
	FIELDS = 7,
};

struct stream {
	uint64_t begun_us;
	bool ok, injected;
};

struct h2 {
	nghttp2_session *session;
	struct conn *conn;
	struct stream streams[];
};

static bool is(const uint8_t *bytes, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(bytes, text, len) == 0;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
			     .value = (uint8_t *)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value),
			     .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME |
				      NGHTTP2_NV_FLAG_NO_COPY_VALUE };
}

static bool stream_ask(struct h2 *h, struct stream *s)
{
	const struct plan *p = h->conn->load->plan;
	size_t count = p->token ? FIELDS : FIELDS - 1;
	nghttp2_nv fields[FIELDS] = {
		field(":method", "GET"),
		field(":scheme", "https"),
		field(":authority", h->conn->host),
		field(":path", p->path),
		field("user-agent", "sallyport-load"),
		field("accept", "*/*"),
		field("authorization", p->token ? p->token : ""),
	};

	*s = (struct stream){ .begun_us = clock_us() };
	return nghttp2_submit_request(h->session, NULL, fields, count, NULL,
				      s) >= 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     const uint8_t *name, size_t name_len, const uint8_t *value,
		     size_t value_len, uint8_t flags, void *arg)
{
	struct stream *s = nghttp2_session_get_stream_user_data(
		session, frame->hd.stream_id);

	(void)flags;
	(void)arg;
	if (s && is(name, name_len, ":status"))
		s->ok = is(value, value_len, "200");
	else if (s && is(name, name_len, "x-inj"))
		s->injected = is(value, value_len, "1");
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
		   const uint8_t *bytes, size_t len, void *arg)
{
	struct h2 *h = arg;

	(void)session;
	(void)flags;
	(void)id;
	(void)bytes;
	if (h->conn->load->measuring)
		h->conn->load->tally.bytes += len;
	return 0;
}

/* A length that does not fit the body is nghttp2's to find: it resets. */
static int on_close(nghttp2_session *session, int32_t id, uint32_t code,
		    void *arg)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct h2 *h = arg;
	struct load *l = h->conn->load;

	if (!s || code != NGHTTP2_NO_ERROR || !s->ok)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (l->measuring)
		tally_add(&l->tally, clock_us() - s->begun_us, s->injected);
	return stream_ask(h, s) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void h2_session_new(struct h2 *h)
{
	nghttp2_session_callbacks *calls = NULL;
	nghttp2_option *option = NULL;

	must(nghttp2_session_callbacks_new(&calls) == 0 &&
	     nghttp2_option_new(&option) == 0);
	nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls,
								  on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
	nghttp2_option_set_no_closed_streams(option, 1);
	must(nghttp2_session_client_new2(&h->session, calls, h, option) == 0);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(calls);
}

bool h2_send(struct conn *c)
{
	uint8_t record[RECORD_BYTES];
	const uint8_t *part;
	size_t len = 0;
	ssize_t n = 0;

	do {
		n = nghttp2_session_mem_send(c->h2->session, &part);
		if (n < 0 || (size_t)n > sizeof(record))
			return false;
		if (len && (!n || len + (size_t)n > sizeof(record))) {
			if (SSL_write(c->ssl, record, (int)len) != (int)len)
				return false;
			len = 0;
		}
		memcpy(record + len, part, (size_t)n);
		len += (size_t)n;
	} while (n > 0);
	return true;
}

bool h2_begin(struct conn *c)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
	};
	unsigned i, streams = c->load->plan->streams;
	const unsigned char *protocol;
	unsigned len;

	SSL_get0_alpn_selected(c->ssl, &protocol, &len);
	if (!is(protocol, len, "h2"))
		return false;
	c->h2 = must_alloc(sizeof(*c->h2) +
			   streams * sizeof(c->h2->streams[0]));
	c->h2->conn = c;
	h2_session_new(c->h2);
	must(nghttp2_submit_settings(c->h2->session, NGHTTP2_FLAG_NONE,
				     settings, ARRAY_LEN(settings)) == 0);
	must(nghttp2_session_set_local_window_size(
		     c->h2->session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES) == 0);
	for (i = 0; i < streams; i++)
		must(stream_ask(c->h2, &c->h2->streams[i]));
	c->state = CONN_READING;
	return h2_send(c);
}

bool h2_take(struct conn *c, const char *bytes, size_t len)
{
	return nghttp2_session_mem_recv(c->h2->session, (const uint8_t *)bytes,
					len) == (ssize_t)len;
}

void h2_end(struct conn *c)
{
	if (c->h2)
		nghttp2_session_del(c->h2->session);
	free(c->h2);
	c->h2 = NULL;
}
