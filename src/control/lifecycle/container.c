/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - the container of a sandbox, as JSON for Docker
 *
 * How it works: one function for each part. What a part is there for is said in
 * front of it; the names are Docker's (Engine API, ContainerCreate).
 */

#include "src/control/lifecycle/container.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/kit.h"
#include "src/control/lifecycle/network.h"
#include "src/control/tokens.h"
#include "src/role/config.h"
#include "src/text/json.h"

#define SNAPSHOTS "opensandbox-snapshots"

enum {
	NAME_VALUE_MAX = 1024 * 1024,
	PATH_BYTES = 4096,
	HASH_TEXT_SIZE = 2 * TOKEN_HASH_SIZE + 1,
};

void container_name(const char *id, char dst[CONTAINER_NAME_SIZE])
{
	(void)snprintf(dst, CONTAINER_NAME_SIZE, "sandbox-%s", id);
}

void container_snapshot_image(struct span id, char *dst, size_t size)
{
	(void)snprintf(dst, size, SNAPSHOTS ":%.*s", SPAN_FMT(id));
}

bool container_image(const struct create_request *q,
		     char dst[CONTAINER_IMAGE_MAX])
{
	if (q->box->image.len)
		return span_copy(q->box->image, dst, CONTAINER_IMAGE_MAX);
	container_snapshot_image(q->box->snapshot_id, dst, CONTAINER_IMAGE_MAX);
	return true;
}

static bool is_at_or_below(struct span path, struct span folder)
{
	return span_starts(path, folder) &&
	       (path.len == folder.len || path.ptr[folder.len] == '/');
}

bool container_may_mount(struct span path)
{
	static const struct span folder = SPAN_INIT("/" CONTAINER_FOLDER);

	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	return path.len > 1 && !is_at_or_below(path, folder) &&
	       !is_at_or_below(folder, path);
}

/* -- what runs ------------------------------------------------------------ */

static void token_check_text(const char *token, char dst[HASH_TEXT_SIZE])
{
	unsigned char hash[TOKEN_HASH_SIZE];
	size_t i;

	token_hash(span_str(token), hash);
	for (i = 0; i < sizeof(hash); i++)
		(void)snprintf(dst + 2 * i, 3, "%02x", hash[i]);
}

static void put_confirmations(struct json_out *o,
			      const struct create_request *q,
			      const char *const *sources)
{
	char text[2 * PATH_BYTES];
	unsigned i;

	for (i = 0; i < q->volume_count; i++) {
		if (!container_confirms(&q->volumes[i], sources[i]))
			continue;
		json_put_str(o, NULL, "--confirm-mount");
		if (snprintf(text, sizeof(text), "%.*s:%s",
			     SPAN_FMT(q->volumes[i].mount_path),
			     sources[i]) >= (int)sizeof(text))
			o->error = o->error ? o->error : -ENOBUFS;
		json_put_str(o, NULL, text);
	}
}

/* Our daemon is the first process and starts the words behind "--"
 * (docs/execd.md). It can check the tokens and knows neither. */
static void put_command(struct json_out *o, const struct create_request *q,
			const char *const *sources)
{
	const struct box *b = q->box;
	char check[HASH_TEXT_SIZE], proxy_check[HASH_TEXT_SIZE];
	const char *const init[] = {
		"/" CONTAINER_EXECD, "--init", "--trust-ca",
		"--token-sha256",    check,    "--proxy-token-sha256",
		proxy_check,
	};
	static const char *const nothing[] = { "tail", "-f", "/dev/null" };
	size_t i;

	token_check_text(b->execd_token, check);
	token_check_text(b->proxy_token, proxy_check);
	json_open_array(o, "Entrypoint");
	for (i = 0; i < ARRAY_LEN(init); i++)
		json_put_str(o, NULL, init[i]);
	put_confirmations(o, q, sources);
	json_put_str(o, NULL, "--");
	json_close(o);
	json_open_array(o, "Cmd");
	for (i = 0; i < b->entrypoint_count; i++)
		json_put_text(o, NULL, b->entrypoint[i]);
	for (i = 0; !b->entrypoint_count && i < ARRAY_LEN(nothing); i++)
		json_put_str(o, NULL, nothing[i]);
	json_close(o);
}

/* What an image says of its health is a command, which Docker would run beside
 * execd before that has looked. */
static void put_health(struct json_out *o, const struct create_request *q,
		       const char *const *sources)
{
	if (!container_confirms_any(q, sources))
		return;
	json_open_object(o, "Healthcheck");
	json_open_array(o, "Test");
	json_put_str(o, NULL, "NONE");
	json_close(o);
	json_close(o);
}

static void put_environment(struct json_out *o, const struct create_request *q)
{
	struct buf text = BUF_INIT(NAME_VALUE_MAX);
	unsigned i;

	json_open_array(o, "Env");
	for (i = 0; i < q->env_count; i++) {
		buf_clear(&text);
		if (buf_put(&text, q->env[i].name) || buf_put_str(&text, "=") ||
		    buf_put(&text, q->env[i].value))
			o->error = o->error ? o->error : -ENOBUFS;
		json_put_text(o, NULL, buf_peek(&text));
	}
	json_close(o);
	buf_wipe(&text);
}

static void put_labels(struct json_out *o, const struct box *b)
{
	json_open_object(o, "Labels");
	json_put_str(o, CONTAINER_LABEL, b->id);
	json_close(o);
}

/* -- what it may ---------------------------------------------------------- */

/* Sockets of raw packets could not get past the lock anyway. */
static void put_rights(struct json_out *o)
{
	static const char *const dropped[] = {
		"AUDIT_WRITE", "MKNOD",	    "NET_ADMIN",
		"NET_RAW",     "SYS_ADMIN", "SYS_MODULE",
		"SYS_PTRACE",  "SYS_TIME",  "SYS_TTY_CONFIG",
	};
	size_t i;

	json_put_bool(o, "Privileged", false);
	json_open_array(o, "CapDrop");
	for (i = 0; i < ARRAY_LEN(dropped); i++)
		json_put_str(o, NULL, dropped[i]);
	json_close(o);
	json_open_array(o, "SecurityOpt");
	json_put_str(o, NULL, "no-new-privileges");
	json_close(o);
	json_put_str(o, "IpcMode", "private");
	json_put_bool(o, "PublishAllPorts", false);
}

static void put_gpu(struct json_out *o, struct span gpu)
{
	uint64_t count;

	if (!gpu.len)
		return;
	json_open_array(o, "DeviceRequests");
	json_open_object(o, NULL);
	json_put_i64(o, "Count",
		     span_parse_u64(gpu, &count) && count < 1024
			     ? (int64_t)count
			     : -1);
	json_open_array(o, "Capabilities");
	json_open_array(o, NULL);
	json_put_str(o, NULL, "gpu");
	json_close(o);
	json_close(o);
	json_close(o);
	json_close(o);
}

/* Memory without swap beside it: a limit that is one. The log is bounded, as
 * nobody reads it to its end. */
static void put_limits(struct json_out *o, const struct create_request *q,
		       const struct config *config)
{
	const struct create_resources *want = &q->resources;
	char disk[24];

	json_put_u64(o, "PidsLimit", config->sandbox_pids);
	if (want->cpu_nano)
		json_put_u64(o, "NanoCpus", want->cpu_nano);
	if (want->memory_bytes) {
		json_put_u64(o, "Memory", want->memory_bytes);
		json_put_u64(o, "MemorySwap", want->memory_bytes);
	}
	if (want->disk_bytes && config->disk_quota) {
		(void)snprintf(disk, sizeof(disk), "%llu",
			       (unsigned long long)want->disk_bytes);
		json_open_object(o, "StorageOpt");
		json_put_str(o, "size", disk);
		json_close(o);
	}
	put_gpu(o, want->gpu);
	json_open_object(o, "LogConfig");
	json_put_str(o, "Type", "json-file");
	json_open_object(o, "Config");
	json_put_str(o, "max-size", "16m");
	json_put_str(o, "max-file", "2");
	json_close(o);
	json_close(o);
	json_open_object(o, "RestartPolicy");
	json_put_str(o, "Name", "no");
	json_close(o);
	if (config->docker_runtime[0])
		json_put_str(o, "Runtime", config->docker_runtime);
}

/* -- volumes -------------------------------------------------------------- */

/* Whatever it is, nothing mounted inside comes out. */
static void put_propagation(struct json_out *o, const char *kind)
{
	json_open_object(o, "BindOptions");
	json_put_str(o, "Propagation", kind);
	json_close(o);
}

static void put_volumes(struct json_out *o, const struct create_request *q,
			const char *const *sources)
{
	const struct create_volume *v;
	bool is_bind;
	unsigned i;

	for (i = 0; i < q->volume_count; i++) {
		v = &q->volumes[i];
		json_open_object(o, NULL);
		is_bind = v->kind == VOLUME_HOST ||
			  container_confirms(v, sources[i]);
		json_put_str(o, "Type", is_bind ? "bind" : "volume");
		json_put_str(o, "Source", sources[i]);
		json_put_text(o, "Target", v->mount_path);
		json_put_bool(o, "ReadOnly", v->read_only);
		if (!is_bind && v->sub_path.len) {
			json_open_object(o, "VolumeOptions");
			json_put_text(o, "Subpath", v->sub_path);
			json_close(o);
		}
		/* below Docker's own folder it says itself how */
		if (v->kind == VOLUME_HOST)
			put_propagation(o, "rprivate");
		json_close(o);
	}
}

static void put_kit_file(struct json_out *o, const char *kit, const char *name,
			 const char *target)
{
	char path[KIT_PATH_SIZE + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", kit, name);
	json_open_object(o, NULL);
	json_put_str(o, "Type", "bind");
	json_put_str(o, "Source", path);
	json_put_str(o, "Target", target);
	json_put_bool(o, "ReadOnly", true);
	put_propagation(o, "rslave"); /* the daemon takes no other below its
					 own folders */
	json_close(o);
}

/* Where the places are looked at before anything is put there the files come
 * later: a daemon that looks makes the places of all mounts first, and would
 * make them wherever links lead (create_places.c). */
static void put_mounts(struct json_out *o, const struct create_request *q,
		       const struct container_sources *sources)
{
	json_open_array(o, "Mounts");
	put_volumes(o, q, sources->volumes);
	if (!container_confirms_any(q, sources->volumes)) {
		put_kit_file(o, sources->kit, KIT_EXECD, "/" CONTAINER_EXECD);
		put_kit_file(o, sources->kit, KIT_CA, "/" CONTAINER_CA);
	}
	json_close(o);
}

bool container_confirms(const struct create_volume *v, const char *source)
{
	return v->kind == VOLUME_NAMED && source[0] == '/';
}

bool container_confirms_any(const struct create_request *q,
			    const char *const *sources)
{
	unsigned i;

	for (i = 0; i < q->volume_count; i++)
		if (container_confirms(&q->volumes[i], sources[i]))
			return true;
	return false;
}

const char *container_version(const struct create_request *q,
			      const char *const *sources)
{
	unsigned i;

	for (i = 0; i < q->volume_count; i++)
		if (q->volumes[i].kind == VOLUME_NAMED &&
		    q->volumes[i].sub_path.len &&
		    !container_confirms(&q->volumes[i], sources[i]))
			return SUBPATH_VERSION;
	return NULL;
}

/* -- the network ---------------------------------------------------------- */

static void put_address(struct json_out *o, const char *name,
			const struct addr *a)
{
	char text[ADDR_TEXT_SIZE];

	json_put_str(o, name, addr_text(a, text, sizeof(text)));
}

/* The resolver is the bridge: Docker's own, in the container, asks it from
 * there, where the fence is. */
static void put_resolver(struct json_out *o, const struct network *n)
{
	char text[ADDR_TEXT_SIZE];
	struct addr v4, v6;

	network_gateways(n, &v4, &v6);
	json_open_array(o, "Dns");
	json_put_str(o, NULL, addr_text(&v4, text, sizeof(text)));
	json_close(o);
}

/* Where older daemons look for the hardware address, and where newer ones. */
static void put_mac(struct json_out *o, const struct box *b)
{
	char text[MAC_TEXT_SIZE];

	json_put_str(o, "MacAddress", mac_text(b->mac, text));
}

static void put_endpoint(struct json_out *o, const struct box *b)
{
	json_open_object(o, "NetworkingConfig");
	json_open_object(o, "EndpointsConfig");
	json_open_object(o, NETWORK_NAME);
	put_mac(o, b);
	json_open_object(o, "IPAMConfig");
	put_address(o, "IPv4Address", &b->v4);
	put_address(o, "IPv6Address", &b->v6);
	json_close(o);
	json_close(o);
	json_close(o);
	json_close(o);
}

/* -- the whole ------------------------------------------------------------ */

int container_emit(struct buf *out, const struct create_request *q,
		   const struct network *n, const struct config *config,
		   const struct container_sources *sources)
{
	char image[CONTAINER_IMAGE_MAX];
	struct json_out o;

	if (!container_image(q, image))
		return err_origin(-ENOBUFS);
	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "Image", image);
	put_command(&o, q, sources->volumes);
	put_health(&o, q, sources->volumes);
	put_environment(&o, q);
	put_labels(&o, q->box);
	put_mac(&o, q->box);
	json_open_object(&o, "HostConfig");
	json_put_str(&o, "NetworkMode", NETWORK_NAME);
	put_resolver(&o, n);
	put_rights(&o);
	put_limits(&o, q, config);
	put_mounts(&o, q, sources);
	json_close(&o);
	put_endpoint(&o, q->box);
	json_close(&o);
	return json_done(&o);
}
