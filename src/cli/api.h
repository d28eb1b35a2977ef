/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the daemon's admin API, asked by a subcommand
 *
 * Which socket: --socket, else $SALLYPORT_SOCKET, else the one that the
 * configuration file (--config, else the usual one) names.
 */
#pragma once

#include <limits.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/span.h"
#include "src/cli/opts.h"

struct json;

#define CLI_CONFIG_FILE "/etc/sallyport/sallyport.json"

enum { API_REPLY_MAX = 64 * 1024 * 1024, API_PATH_MAX = 2048 };

struct api {
	char socket[PATH_MAX];
	bool json; /* print replies as they are */
};

struct config;

/* The daemon's configuration file: --config, else the usual one; a usual one
 * that is not there is empty. 0 or -errno after a sentence. */
WUNRES int api_config(const struct opt_daemon *d, struct config **ret);

/* Finds the socket; does not connect. 0, or -EINVAL after a sentence about
 * the configuration file. */
WUNRES int api_init(struct api *api, const struct opt_daemon *d);
/* Does a daemon answer? */
bool api_answers(const struct api *api);
/* Does it say that all its roles serve? */
bool api_is_ready(const struct api *api);

/* collection/name, the name percent-encoded; ending in '=', a query. */
struct api_path {
	char text[API_PATH_MAX];
};
void api_path_set(struct api_path *p, const char *collection, struct span name);

struct api_reply {
	unsigned status;
	struct buf body;
	struct json *json; /* NULL when the body is empty */
};
void api_reply_fini(struct api_reply *reply);
#define CLEANUP_REPLY CLEANUP(api_reply_fini)

/* CLI_OK for a 2xx reply; else CLI_FAILED or CLI_UNREACHABLE after a sentence
 * on stderr. body.ptr NULL: none. *ret is always initialised. */
WUNRES int api_call(const struct api *api, const char *method, const char *path,
		    struct span body, struct api_reply *ret);
/* The same, for a call whose reply says nothing of interest. */
WUNRES int api_do(const struct api *api, const char *method, const char *path,
		  struct span body);

/* The reply as text, for --json. */
void api_print(const struct api_reply *reply);
