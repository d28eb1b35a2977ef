/* SPDX-License-Identifier: Apache-2.0 */
/* create_request.h - the body of POST /sandboxes, checked wholly (contract 4.3)
 *
 * Pure. Nothing is made before a request was found good; what is wrong is told
 * by its path and by what was found ("volumes[1].mountPath: expected an
 * absolute path, found \"data\"").
 */
#pragma once

#include "src/control/lifecycle/box.h"

struct net_policy;

/* Why not: what the client is answered. */
struct lifecycle_error {
	unsigned status;
	const char *code; /* of the contract, a constant */
	char message[512];
};

/* Fills it; returns -EINVAL. code is a constant. */
int lifecycle_error_set(struct lifecycle_error *no, unsigned status,
			const char *code, const char *fmt, ...) PRINTF(4, 5);

struct create_limits {
	uint64_t timeout_max_s;		/* 0: none */
	const char *const *host_paths;	/* allow-list, NULL-terminated */
	const char *const *env_refused; /* names that requests may not set */
	bool closed; /* unknown members are errors, as newer servers do */
};

enum volume_kind { VOLUME_HOST, VOLUME_NAMED };

struct create_volume {
	enum volume_kind kind;
	struct span name, mount_path, sub_path;
	struct span source; /* path of the node, or name of the volume */
	bool read_only, create, delete_at_end;
};

struct create_resources {
	uint64_t cpu_nano, memory_bytes, disk_bytes; /* 0: no limit */
	struct span gpu;			     /* "1", "all"; SPAN_NONE */
};

struct create_request {
	struct box *box; /* what is kept: asked-for members are set */
	struct span registry_user, registry_password; /* wiped with the arena */
	struct box_pair *env;
	unsigned env_count;
	struct create_volume *volumes;
	unsigned volume_count;
	struct create_resources resources;
	struct net_policy *policy; /* NULL: none was given */
	uint64_t timeout_s;	   /* 0: manual cleanup */
	struct arena arena;
};

/* 0, or *no is filled. */
WUNRES int create_request_parse(struct span body,
				const struct create_limits *limits,
				struct create_request **ret,
				struct lifecycle_error *no);
struct create_request *create_request_free(struct create_request *q);
