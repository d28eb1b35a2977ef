/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - what Docker is told about the container of a sandbox
 *
 * Pure. The hardening of the contract (4.9), its address on the bridge, the
 * entrypoint behind our init, the volumes, the limits. Neither labels nor
 * environment hold a token; of execd's there is what it hashes to.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct config;
struct create_request;
struct create_volume;
struct network;

#define CONTAINER_LABEL	 "opensandbox.io/id" /* value: the sandbox's id */
#define CONTAINER_FOLDER "opt/opensandbox"
#define CONTAINER_EXECD	 CONTAINER_FOLDER "/execd"
#define CONTAINER_CA	 CONTAINER_FOLDER "/mitmproxy-ca-cert.pem"
#define NETWORK_NAME	 "sallyport"

/* From which version of its API on Docker mounts a folder of a volume. */
#define SUBPATH_VERSION "1.45"

enum {
	CONTAINER_NAME_SIZE = 64,
	CONTAINER_IMAGE_MAX = 512,
	SUBPATH_MAJOR = 1,
	SUBPATH_MINOR = 45,
	CONTAINER_EXIT_MOUNTS = 121, /* execd: it is another folder */
};

/* "sandbox-{id}" */
void container_name(const char *id, char dst[CONTAINER_NAME_SIZE]);
/* The repository and tag of a snapshot: "opensandbox-snapshots:{id}". */
void container_snapshot_image(struct span id, char *dst, size_t size);
/* Image of the request; of a snapshot as above. False: too long. */
WUNRES bool container_image(const struct create_request *q,
			    char dst[CONTAINER_IMAGE_MAX]);
/* What is mounted: where the daemon has the kit's files (kit.h); of each volume
 * of the request, the path or the name. */
struct container_sources {
	const char *kit;
	const char *const *volumes;
};

/* The body of POST /containers/create. 0 or -ENOBUFS. */
WUNRES int container_emit(struct buf *out, const struct create_request *q,
			  const struct network *n, const struct config *config,
			  const struct container_sources *sources);
/* Which version of Docker's API that body needs beyond that of all calls; NULL:
 * none. */
const char *container_version(const struct create_request *q,
			      const char *const *sources);
/* Is it a folder of a volume that an older daemon mounts by its path on the
 * node? Then execd confirms it (src/execd/init/mounts.h). */
WUNRES bool container_confirms(const struct create_volume *v,
			       const char *source);
/* Of any volume; then the kit's files are not mounted, but copied in. */
WUNRES bool container_confirms_any(const struct create_request *q,
				   const char *const *sources);
/* May a volume be mounted here, or would it hide what we put there? */
WUNRES bool container_may_mount(struct span path);
