/* SPDX-License-Identifier: Apache-2.0 */
/* test_container.c - what Docker is told about a sandbox, and the archive that
 * is put into it
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/sha256.h"
#include "src/control/lifecycle/archive.h"
#include "src/control/lifecycle/container.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/id.h"
#include "src/control/lifecycle/network.h"
#include "src/role/config.h"
#include "src/text/json.h"

/* -- the container -------------------------------------------------------- */

struct made {
	struct create_request *q;
	struct network *network;
	struct config *config;
	struct json *json;
};

static void make(struct made *m, const char *body, const char *config,
		 const char *const *sources)
{
	static const char *const host_paths[] = { "/srv", NULL };
	static const char *const none[] = { NULL };
	const struct create_limits limits = {
		.host_paths = host_paths,
		.env_refused = none,
	};
	struct buf out = BUF_INIT(1024 * 1024);
	struct lifecycle_error no;
	struct cidr v4, v6;
	struct diag d = { 0 };

	if (create_request_parse(span_str(body), &limits, &m->q, &no))
		fail_msg("%s", no.message);
	if (config_parse(span_str(config), &m->config, &d))
		fail_msg("%s", d.msg);
	assert_true(cidr_parse(SPAN("10.9.0.0/16"), &v4));
	assert_true(cidr_parse(SPAN("fd09::/64"), &v6));
	assert_int_equal(network_new(&v4, &v6, &m->network), 0);
	strcpy(m->q->box->id, "11111111-2222-4333-8444-555555555555");
	token_make(m->q->box->execd_token);
	token_make(m->q->box->egress_token);
	token_make(m->q->box->proxy_token);
	assert_int_equal(
		network_take(m->network, 1, &m->q->box->v4, &m->q->box->v6), 0);
	box_set_mac(m->q->box);
	assert_int_equal(container_emit(&out, m->q, m->network, m->config,
					&(struct container_sources){ "/vol/kit",
								     sources }),
			 0);
	/* no token is in it, whatever it is called */
	assert_null(memmem(buf_peek(&out).ptr, buf_len(&out),
			   m->q->box->execd_token, 43));
	assert_null(memmem(buf_peek(&out).ptr, buf_len(&out),
			   m->q->box->egress_token, 43));
	assert_null(memmem(buf_peek(&out).ptr, buf_len(&out),
			   m->q->box->proxy_token, 43));
	assert_int_equal(json_parse(buf_peek(&out), &m->json, &d), 0);
	buf_fini(&out);
}

static void made_fini(struct made *m)
{
	create_request_free(m->q);
	network_free(m->network);
	config_free(m->config);
	json_free(m->json);
}

/* "HostConfig.Mounts.0.Source" */
static const struct json *at(const struct json *j, const char *path)
{
	struct span rest = span_str(path);
	uint64_t index;
	char name[64];

	while (rest.len) {
		assert_true(
			span_copy(span_cut(&rest, '.'), name, sizeof(name)));
		if (json_kind(j) == JSON_KIND_ARRAY &&
		    span_parse_u64(span_str(name), &index))
			j = json_item(j, index);
		else
			j = json_find(j, name);
	}
	return j;
}

static void assert_at(const struct json *j, const char *path, const char *want)
{
	struct buf text = BUF_INIT(64 * 1024);
	const struct json *found = at(j, path);

	if (!found)
		fail_msg("there is no %s", path);
	assert_int_equal(json_emit(&text, found), 0);
	if (!span_eq(buf_peek(&text), span_str(want)))
		fail_msg("%s: expected %s, found %.*s", path, want,
			 SPAN_FMT(buf_peek(&text)));
	buf_fini(&text);
}

/* What execd is told of a token: the digest of another implementation. */
static void assert_hash(const struct made *m, const char *at, const char *token)
{
	uint8_t digest[SHA256_SIZE];
	char text[2 * SHA256_SIZE + 3] = "\"";
	size_t i;

	sha256(span_str(token), digest);
	for (i = 0; i < sizeof(digest); i++)
		snprintf(text + 1 + 2 * i, 3, "%02x", digest[i]);
	strcat(text, "\"");
	assert_at(m->json, at, text);
}

static void container__has_all_that_was_asked_for(void **state)
{
	static const char *const sources[] = { "/srv/real", "data" };
	struct made m = { 0 };

	(void)state;
	make(&m,
	     "{\"image\":{\"uri\":\"reg/img:2\"},\"entrypoint\":[\"sh\",\"-c\","
	     "\"x\"],\"env\":{\"A\":\"1=2\",\"B\":\"\"},\"resourceLimits\":{"
	     "\"cpu\":\"500m\",\"memory\":\"64Mi\",\"gpu\":\"2\",\"disk\":"
	     "\"1Gi\"},\"volumes\":["
	     "{"
	     "\"name\":\"a\",\"mountPath\":\"/a\",\"readOnly\":true,\"host\":{"
	     "\"path\":\"/srv/x\"}},{\"name\":\"b\",\"mountPath\":\"/"
	     "b\",\"pvc\""
	     ":{\"claimName\":\"data\"}}]}",
	     "{\"lifecycle\":{\"runtime\":\"runsc\",\"pids\":77,\"diskQuota\":"
	     "true}}",
	     sources);
	assert_at(m.json, "Image", "\"reg/img:2\"");
	assert_at(m.json, "Entrypoint.0", "\"/opt/opensandbox/execd\"");
	assert_at(m.json, "Entrypoint.1", "\"--init\"");
	assert_at(m.json, "Entrypoint.2", "\"--trust-ca\"");
	assert_at(m.json, "Entrypoint.3", "\"--token-sha256\"");
	assert_hash(&m, "Entrypoint.4", m.q->box->execd_token);
	assert_at(m.json, "Entrypoint.5", "\"--proxy-token-sha256\"");
	assert_hash(&m, "Entrypoint.6", m.q->box->proxy_token);
	assert_at(m.json, "Entrypoint.7", "\"--\"");
	assert_at(m.json, "Cmd", "[\"sh\",\"-c\",\"x\"]");
	assert_at(m.json, "Env", "[\"A=1=2\",\"B=\"]");
	assert_at(m.json, "HostConfig.NanoCpus", "500000000");
	assert_at(m.json, "HostConfig.Memory", "67108864");
	assert_at(m.json, "HostConfig.MemorySwap", "67108864");
	assert_at(m.json, "HostConfig.DeviceRequests.0.Count", "2");
	assert_at(m.json, "HostConfig.StorageOpt", "{\"size\":\"1073741824\"}");
	assert_at(m.json, "HostConfig.PidsLimit", "77");
	assert_at(m.json, "HostConfig.Runtime", "\"runsc\"");
	assert_at(m.json, "HostConfig.Mounts.0.Type", "\"bind\"");
	assert_at(m.json, "HostConfig.Mounts.0.Source", "\"/srv/real\"");
	assert_at(m.json, "HostConfig.Mounts.0.ReadOnly", "true");
	assert_at(m.json, "HostConfig.Mounts.1.Type", "\"volume\"");
	assert_at(m.json, "HostConfig.Mounts.1.Target", "\"/b\"");
	made_fini(&m);
}

static void container__is_confined(void **state)
{
	struct made m = { 0 };

	(void)state;
	make(&m,
	     "{\"image\":{\"uri\":\"i\"},\"entrypoint\":[\"x\"],"
	     "\"resourceLimits\":{\"disk\":\"1Gi\"},\"metadata\":{\"team\":"
	     "\"a\"}}",
	     "{}", NULL);
	assert_at(m.json, "HostConfig.CapDrop",
		  "[\"AUDIT_WRITE\",\"MKNOD\",\"NET_ADMIN\",\"NET_RAW\","
		  "\"SYS_ADMIN\",\"SYS_MODULE\",\"SYS_PTRACE\",\"SYS_TIME\","
		  "\"SYS_TTY_CONFIG\"]");
	assert_at(m.json, "HostConfig.SecurityOpt", "[\"no-new-privileges\"]");
	assert_at(m.json, "HostConfig.Privileged", "false");
	assert_at(m.json, "HostConfig.PidsLimit", "4096");
	assert_at(m.json, "HostConfig.NetworkMode", "\"sallyport\"");
	assert_at(m.json, "HostConfig.Dns", "[\"10.9.0.1\"]");
	assert_at(m.json, "MacAddress", "\"02:42:0a:09:00:02\"");
	assert_at(m.json,
		  "NetworkingConfig.EndpointsConfig.sallyport.IPAMConfig",
		  "{\"IPv4Address\":\"10.9.0.2\",\"IPv6Address\":\"fd09::2\"}");
	assert_at(m.json, "Labels",
		  "{\"opensandbox.io/id\":"
		  "\"11111111-2222-4333-8444-555555555555\"}");
	assert_null(at(m.json, "HostConfig.Memory"));
	assert_null(at(m.json, "HostConfig.StorageOpt")); /* not enforced */
	assert_null(at(m.json, "HostConfig.Runtime"));
	assert_at(m.json, "HostConfig.Mounts",
		  "[{\"Type\":\"bind\",\"Source\":\"/vol/kit/execd\","
		  "\"Target\":\"/opt/opensandbox/execd\",\"ReadOnly\":true,"
		  "\"BindOptions\":{\"Propagation\":\"rslave\"}},"
		  "{\"Type\":\"bind\",\"Source\":\"/vol/kit/ca.pem\","
		  "\"Target\":\"/opt/opensandbox/mitmproxy-ca-cert.pem\","
		  "\"ReadOnly\":true,"
		  "\"BindOptions\":{\"Propagation\":\"rslave\"}}]");
	made_fini(&m);
}

/* Only a daemon that mounts it without following links is asked for it. */
static void container__mounts_a_folder_of_a_volume(void **state)
{
	static const char *const sources[] = { "data", "data" };
	struct made m = { 0 };

	(void)state;
	make(&m,
	     "{\"image\":{\"uri\":\"i\"},\"entrypoint\":[\"x\"],"
	     "\"resourceLimits\":{},\"volumes\":[{\"name\":\"a\","
	     "\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"data\"}},"
	     "{\"name\":\"b\",\"mountPath\":\"/b\",\"subPath\":\"x/y\","
	     "\"pvc\":{\"claimName\":\"data\"}}]}",
	     "{}", sources);
	assert_null(at(m.json, "HostConfig.Mounts.0.VolumeOptions"));
	assert_at(m.json, "HostConfig.Mounts.1.VolumeOptions",
		  "{\"Subpath\":\"x/y\"}");
	assert_string_equal(container_version(m.q, sources), "1.45");
	assert_null(at(m.json, "Healthcheck"));
	m.q->volume_count = 1;
	assert_null(container_version(m.q, sources));
	made_fini(&m);
}

/* By its path, with a daemon that follows links: execd is told what it has to
 * find, and nothing of the image runs beside it. */
static void container__has_a_folder_of_a_volume_confirmed(void **state)
{
	static const char *const sources[] = { "data", "/v/data/_data/x/y" };
	struct made m = { 0 };

	(void)state;
	make(&m,
	     "{\"image\":{\"uri\":\"i\"},\"entrypoint\":[\"x\"],"
	     "\"resourceLimits\":{},\"volumes\":[{\"name\":\"a\","
	     "\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"data\"}},"
	     "{\"name\":\"b\",\"mountPath\":\"/b\",\"subPath\":\"x/y/\","
	     "\"readOnly\":true,\"pvc\":{\"claimName\":\"data\"}}]}",
	     "{}", sources);
	assert_at(m.json, "HostConfig.Mounts.0.Type", "\"volume\"");
	assert_at(m.json, "HostConfig.Mounts.1.Type", "\"bind\"");
	assert_at(m.json, "HostConfig.Mounts.1.Source",
		  "\"/v/data/_data/x/y\"");
	assert_at(m.json, "HostConfig.Mounts.1.ReadOnly", "true");
	assert_null(at(m.json, "HostConfig.Mounts.1.VolumeOptions"));
	assert_null(at(m.json, "HostConfig.Mounts.2")); /* copied in later */
	assert_at(m.json, "Entrypoint.7", "\"--confirm-mount\"");
	assert_at(m.json, "Entrypoint.8", "\"/b:/v/data/_data/x/y\"");
	assert_at(m.json, "Entrypoint.9", "\"--\"");
	assert_at(m.json, "Healthcheck", "{\"Test\":[\"NONE\"]}");
	assert_null(container_version(m.q, sources));
	made_fini(&m);
}

static void container__of_a_snapshot(void **state)
{
	struct made m = { 0 };
	char image[CONTAINER_IMAGE_MAX];

	(void)state;
	make(&m, "{\"snapshotId\":\"s1\",\"resourceLimits\":{}}", "{}", NULL);
	assert_true(container_image(m.q, image));
	assert_string_equal(image, "opensandbox-snapshots:s1");
	assert_at(m.json, "Image", "\"opensandbox-snapshots:s1\"");
	assert_at(m.json, "Cmd", "[\"tail\",\"-f\",\"/dev/null\"]");
	made_fini(&m);
}

static void mounts__hide_nothing_of_ours(void **state)
{
	(void)state;
	assert_false(container_may_mount(SPAN("/opt/opensandbox")));
	assert_false(container_may_mount(SPAN("/opt/opensandbox/")));
	assert_false(container_may_mount(SPAN("/opt/opensandbox/start")));
	assert_false(container_may_mount(SPAN("/opt")));
	assert_false(container_may_mount(SPAN("/")));
	assert_true(container_may_mount(SPAN("/opt/other")));
	assert_true(container_may_mount(SPAN("/opt/opensandbox2")));
	assert_true(container_may_mount(SPAN("/data")));
}

/* -- the archive ---------------------------------------------------------- */

/* Unpacked by tar, which is not ours. */
static void archive__is_what_tar_reads(void **state)
{
	struct buf out = BUF_INIT(1024 * 1024);
	char folder[] = "/tmp/archive-test-XXXXXX", text[256], big[1300];
	struct stat st;
	FILE *tar;
	FILE *file;

	(void)state;
	memset(big, 'b', sizeof(big));
	assert_non_null(mkdtemp(folder));
	assert_int_equal(archive_put_folder(&out, "d", 0711), 0);
	assert_int_equal(archive_put_file(&out, "d/big", 0755,
					  span_of(big, sizeof(big))),
			 0);
	assert_int_equal(
		archive_put_file(&out, "d/even", 0600, span_of(big, 512)), 0);
	assert_int_equal(archive_put_file(&out, "d/none", 0644, SPAN("")), 0);
	assert_int_equal(archive_end(&out), 0);
	assert_int_equal(buf_len(&out) % 512, 0);

	snprintf(text, sizeof(text), "tar -xpf - -C %s", folder);
	tar = popen(text, "w");
	assert_int_equal(fwrite(buf_peek(&out).ptr, 1, buf_len(&out), tar),
			 buf_len(&out));
	assert_int_equal(pclose(tar), 0);
	snprintf(text, sizeof(text), "%s/d", folder);
	assert_int_equal(stat(text, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	snprintf(text, sizeof(text), "%s/d/big", folder);
	assert_int_equal(stat(text, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_size, sizeof(big));
	file = fopen(text, "r");
	assert_int_equal(fread(text, 1, sizeof(text), file), sizeof(text));
	assert_memory_equal(text, big, sizeof(text));
	fclose(file);
	snprintf(text, sizeof(text), "%s/d/none", folder);
	assert_int_equal(stat(text, &st), 0);
	assert_int_equal(st.st_size, 0);
	snprintf(text, sizeof(text), "rm -r %s", folder);
	assert_int_equal(system(text), 0);
	buf_fini(&out);
}

static void archive__has_bounds(void **state)
{
	struct buf small = BUF_INIT(600);
	char path[128];

	(void)state;
	memset(path, 'a', sizeof(path));
	path[100] = '\0';
	assert_int_equal(archive_put_folder(&small, path, 0755), -ENAMETOOLONG);
	path[99] = '\0';
	assert_int_equal(archive_put_folder(&small, path, 0755), 0);
	assert_int_equal(archive_put_file(&small, "x", 0644, SPAN("y")),
			 -ENOBUFS);
	buf_fini(&small);
}

/* -- names ---------------------------------------------------------------- */

static void ids__are_random_and_well_formed(void **state)
{
	char a[BOX_ID_SIZE], b[BOX_ID_SIZE], t[BOX_TOKEN_SIZE];
	size_t i;

	(void)state;
	for (i = 0; i < 200; i++) {
		id_make(a);
		id_make(b);
		assert_int_equal(strlen(a), 36);
		assert_string_not_equal(a, b);
		assert_int_equal(a[14], '4');
		assert_non_null(strchr("89ab", a[19]));
		assert_true(a[8] == '-' && a[13] == '-' && a[18] == '-' &&
			    a[23] == '-');
		token_make(t);
		assert_int_equal(strlen(t), 43);
		assert_int_equal(strspn(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh"
					   "ijklmnopqrstuvwxyz0123456789-_"),
				 43);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(container__has_all_that_was_asked_for),
		cmocka_unit_test(container__is_confined),
		cmocka_unit_test(container__mounts_a_folder_of_a_volume),
		cmocka_unit_test(container__has_a_folder_of_a_volume_confirmed),
		cmocka_unit_test(container__of_a_snapshot),
		cmocka_unit_test(mounts__hide_nothing_of_ours),
		cmocka_unit_test(archive__is_what_tar_reads),
		cmocka_unit_test(archive__has_bounds),
		cmocka_unit_test(ids__are_random_and_well_formed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
