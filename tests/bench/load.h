/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - what the files of the load generator share */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/list.h"

enum { READ_BYTES = 128 * 1024, HEAD_BYTES = 4096 };

enum mode {
	MODE_KEEP,
	MODE_PACED,
	MODE_CLOSE,
	MODE_IDLE,
	MODE_WAIT,
	MODE_H2,
	MODE_EVENTS,
	MODE_NUM
};

/* What the command line asks for. */
struct plan {
	enum mode mode;
	const char *address, *ca, *path;
	const char *host;  /* may hold one %u: the number of the host */
	const char *token; /* value of Authorization; NULL sends none */
	unsigned hosts, conns, port, rate, streams;
	uint64_t count;	 /* exchanges; 0: for the time given */
	uint64_t upload; /* bytes that each request carries; HTTP/1.1 only */
	double seconds, warm_s;
	bool resume;
};

/* Steps of the histogram per power of two: quantiles are right to 1 %. */
enum { TALLY_STEPS = 128 };

struct tally {
	uint64_t exchanges, injected, errors, bytes, resumed, handshakes;
	uint64_t max_us;
	uint64_t histogram[64 * TALLY_STEPS];
};

enum conn_state {
	CONN_NONE,    /* no socket */
	CONN_SHAKING, /* TCP and TLS are coming up */
	CONN_RESTING, /* up, nothing asked; in load->resting */
	CONN_READING, /* asked; the answer is awaited */
};

struct conn {
	struct load *load;
	struct list link;
	enum conn_state state;
	int fd;
	SSL *ssl;
	struct h2 *h2; /* of MODE_H2, while it is up */
	char host[256];
	uint64_t begun_us;
	size_t head_len;
	bool head_done, injected;
	uint64_t upload_left, body_left;
	uint64_t stamp; /* of an event, as far as it came */
	unsigned stamp_at;
	char head[HEAD_BYTES];
};

struct load {
	const struct plan *plan;
	int epoll;
	SSL_CTX *ctx;
	SSL_SESSION *session; /* the newest one, when resuming */
	struct conn *conns;
	struct list resting;
	unsigned resting_count, up_count; /* up: since the start */
	uint64_t begun; /* connections; hosts go round by it */
	bool measuring, over;
	uint64_t begin_us, end_us, due_us;
	struct tally tally;
	char scratch[READ_BYTES];
};

/* load_tally.c */
void tally_add(struct tally *t, uint64_t us, bool injected);
/* One line of key=value. */
void tally_print(const struct tally *t, uint64_t took_us);

/* load_conn.c */
void conn_init(struct conn *c, struct load *l);
/* Begins a connection to the next host. */
void conn_open(struct conn *c);
void conn_close(struct conn *c);
/* Sends the request; the state is RESTING or just shaken. */
void conn_ask(struct conn *c);
/* Its socket is ready: goes on as far as it can. */
void conn_run(struct conn *c);
/* load_h2.c; false: the connection is of no use any more */
/* Just shaken: asks on all its streams. */
bool h2_begin(struct conn *c);
bool h2_take(struct conn *c, const char *bytes, size_t len);
/* What the library has to say. */
bool h2_send(struct conn *c);
void h2_end(struct conn *c);
