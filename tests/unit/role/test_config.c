/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c - defaults, every keyword, and what is refused with which words
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/attrib.h"
#include "src/role/config.h"
#include "src/role/config_value.h"

static struct config *parse(const char *text)
{
	struct config *c = NULL;
	struct diag d = { 0 };

	if (config_parse(span_str(text), &c, &d))
		fail_msg("%u:%u: %s", d.line, d.col, d.msg);
	return c;
}

static void config__defaults(void **state)
{
	struct config *c = parse("{}");

	(void)state;
	assert_string_equal(c->state_dir, "/var/lib/sallyport");
	assert_string_equal(c->run_dir, "/run/sallyport");
	assert_string_equal(c->policy_dir, "/etc/sallyport/policies");
	assert_string_equal(c->audit_file, "/var/log/sallyport/audit.jsonl");
	assert_string_equal(c->user, "sallyport");
	assert_int_equal(c->log_level, LOG_INFO);
	assert_int_equal(c->interfaces.count, 1);
	assert_string_equal(c->interfaces.items[0], "sp-*");
	assert_int_equal(c->fwmark, 0x5a11);
	assert_int_equal(c->route_table, 23057);
	assert_int_equal(c->queue_number, 23057);
	assert_int_equal(c->proxy_port, 15001);
	assert_int_equal(c->explicit_proxy_port, 3128);
	assert_string_equal(c->explicit_proxy_name, "proxy.sallyport.internal");
	assert_int_equal(c->loops, 0);
	assert_in_range(config_loops(c), 1, CONFIG_LOOPS_MAX);
	assert_int_equal(c->dns_upstream_count, 0);
	assert_int_equal(c->dns_timeout_ms, 2000);
	assert_int_equal(c->dns_min_ttl_s, 5);
	assert_int_equal(c->dns_max_ttl_s, 3600);
	assert_int_equal(c->dns_hold_s, 1800);
	assert_string_equal(c->hosts_file, "/etc/hosts");
	assert_int_equal(c->pin_count, 0);
	assert_true(c->trust_system);
	assert_string_equal(c->upstream_proxy, "");
	assert_string_equal(c->upstream_proxy_credential, "");
	assert_false(c->upstream_proxy_tls);
	assert_false(c->upstream_proxy_resolves);
	assert_int_equal(c->no_proxy.count, 0);
	assert_int_equal(c->trust_files.count, 0);
	assert_string_equal(c->vault_key_file, "/etc/sallyport/vault.key");
	assert_string_equal(c->vault_credential, "");
	assert_string_equal(c->vault_passphrase_file, "");
	assert_string_equal(c->admin_socket, "/run/sallyport/admin.sock");
	assert_int_equal(c->admin_listen.port, 0);
	assert_false(c->dns_allow_foreign_resolvers);
	assert_int_equal(c->dns_new_names_per_minute, 120);
	assert_int_equal(c->dns_name_bytes, 128);
	assert_int_equal(c->dns_label_bytes, 63);
	assert_int_equal(c->dns_labels, 12);
	assert_int_equal(c->handshake_ms, 15000);
	assert_int_equal(c->head_ms, 30000);
	assert_int_equal(c->idle_ms, 120000);
	assert_int_equal(c->first_byte_ms, 600000);
	assert_int_equal(c->tunnel_idle_ms, 3600000);
	assert_int_equal(c->total_ms, 0);
	assert_int_equal(c->server_first_ms, 100);
	assert_int_equal(c->connect_ms, 10000);
	assert_int_equal(c->drain_ms, 10000);
	assert_int_equal(c->head_bytes, 65536);
	assert_int_equal(c->connections, 1024);
	assert_int_equal(c->upstream_idle, 256);
	assert_int_equal(c->leaf_cache, 4096);
	assert_int_equal(c->h2_streams, 100);
	assert_int_equal(c->h2_sandbox_streams, 2048);
	assert_int_equal(c->h2_sandbox_held_bytes, 64 * 1024 * 1024);
	assert_int_equal(c->h2_early_resets, 500);
	assert_int_equal(c->h2_useless_frames, 1000);
	assert_int_equal(c->h2_ping_ms, 30000);
	assert_int_equal(c->h2_ping_timeout_ms, 10000);
	config_free(c);
}

static const char full[] =
	"{\"stateDir\": \"/s\", \"runDir\": \"/r\", \"policyDir\": \"/p\",\n"
	"\"auditFile\": \"/a/b\", \"user\": \"\", \"logLevel\": \"debug\",\n"
	"\"sandboxInterfaces\": [\"sp-d*\", \"br0\"], \"fwmark\": 7,\n"
	"\"routeTable\": 300, \"queueNumber\": 9, \"logGroup\": 8,\n"
	"\"proxyPort\": 1, \"loops\": 3,\n"
	"\"explicitProxyPort\": 0, \"explicitProxyName\": \"P.Example.\",\n"
	"\"dns\": {\"upstreams\": [\"9.9.9.9\", \"[::1]:5353\"],\n"
	" \"timeoutMs\": 50, \"minTtlS\": 1, \"maxTtlS\": 1, \"holdS\": 3,\n"
	" \"hostsFile\": \"\", \"allowForeignResolvers\": true,\n"
	" \"newNamesPerMinute\": 7, \"nameBytes\": 8, \"labelBytes\": 9,\n"
	" \"labels\": 10},\n"
	"\"pins\": {\"Api.Example.com.\": [\"10.0.0.1\", \"::1\"]},\n"
	"\"upstream\": {\"trustSystem\": false, \"trustFiles\": [\"/x\"],\n"
	" \"proxy\": \"Corp.Example:8080\", \"proxyTls\": true,\n"
	" \"proxyCredential\": \"corp\", \"proxyResolves\": true,\n"
	" \"noProxy\": [\"10.0.0.0/8\", \"::1\", \".near.example\"]},\n"
	"\"vault\": {\"credential\": \"kek\"},\n"
	"\"admin\": {\"socket\": \"/q/s\", \"listen\": \"127.0.0.1:8443\",\n"
	" \"certificate\": \"/c\", \"key\": \"/k\"},\n"
	"\"timeouts\": {\"handshakeMs\": 101, \"headMs\": 102,\n"
	" \"idleMs\": 103, \"firstByteMs\": 104, \"tunnelIdleMs\": 1005,\n"
	" \"totalMs\": 1006,\n"
	" \"connectMs\": 106, \"drainMs\": 0, \"serverFirstMs\": 107},\n"
	"\"limits\": {\"headBytes\": 4096, \"connections\": 2,\n"
	" \"connectionsPerSecond\": 3, \"bytesPerSecond\": 4294967295,\n"
	" \"dnsPerSecond\": 5, \"mintsPerSecond\": 0, \"synsPerSecond\": 9,\n"
	" \"upstreamIdle\": 0, \"leafCache\": 16},\n"
	"\"http2\": {\"streams\": 8, \"sandboxStreams\": 9,\n"
	" \"sandboxHeldBytes\": 4294967295, \"earlyResets\": 10,\n"
	" \"uselessFrames\": 101, \"pingMs\": 0, \"pingTimeoutMs\": 100},\n"
	"\"lifecycle\": {\"listen\": \"127.0.0.1:8080\", \"dockerSocket\":\n"
	" \"/run/d.sock\", \"dockerGroup\": \"docker\", \"subnet4\":\n"
	" \"10.7.0.0/24\", \"subnet6\": \"fd07::/64\", \"execd\": \"/x/e\",\n"
	" \"createsAtOnce\": 3, \"pullTimeoutS\": 7,\n"
	" \"hostPaths\": [\"/srv/a\"], \"runtime\":\n"
	" \"runsc\", \"pids\": 99, \"readyMs\": 1234,\n"
	" \"apiKeyFile\": \"/a/k\", \"insecure\": false, \"maxTimeoutS\": 7,\n"
	" \"defaultPolicy\": \"open\", \"diskQuota\": true,\n"
	" \"trustUpstream\": false,\n"
	" \"certificate\": \"/l/c\", \"key\": \"/l/k\"},\n"
	"\"webhook\": {\"url\": \"https://a.example:8443/in?k=v\",\n"
	" \"queue\": 7, \"timeoutMs\": 100, \"quietS\": 0},\n"
	"\"ingress\": {\"listen\": \"127.0.0.1:8081\", \"certificate\":\n"
	" \"/i/c\", \"key\": \"/i/k\", \"advertise\": \"Gw.example:8081\",\n"
	" \"keysFile\": \"/i/keys\", \"loopback\": false}}\n";

static void config__every_keyword(void **state)
{
	struct config *c = parse(full);

	(void)state;
	assert_string_equal(c->state_dir, "/s");
	assert_string_equal(c->user, "");
	assert_int_equal(c->log_level, LOG_DEBUG);
	assert_true(c->disk_quota);
	assert_int_equal(c->pull_timeout_s, 7);
	assert_false(c->trust_upstream);
	assert_false(c->ingress_loopback);
	assert_int_equal(c->interfaces.count, 2);
	assert_string_equal(c->interfaces.items[1], "br0");
	assert_int_equal(config_loops(c), 3);
	assert_int_equal(c->dns_upstream_count, 2);
	assert_int_equal(c->dns_upstreams[0].port, 53);
	assert_int_equal(c->dns_upstreams[1].port, 5353);
	assert_string_equal(c->hosts_file, "");
	assert_string_equal(c->upstream_proxy, "Corp.Example:8080");
	assert_string_equal(c->upstream_proxy_credential, "corp");
	assert_true(c->upstream_proxy_tls);
	assert_true(c->upstream_proxy_resolves);
	assert_int_equal(c->no_proxy.count, 3);
	assert_string_equal(c->no_proxy.items[2], ".near.example");
	assert_int_equal(c->explicit_proxy_port, 0);
	assert_string_equal(c->explicit_proxy_name, "p.example");
	assert_true(c->dns_allow_foreign_resolvers);
	assert_int_equal(c->dns_new_names_per_minute, 7);
	assert_int_equal(c->dns_name_bytes, 8);
	assert_int_equal(c->dns_label_bytes, 9);
	assert_int_equal(c->dns_labels, 10);
	assert_int_equal(c->pin_count, 1);
	assert_string_equal(c->pins[0].name, "api.example.com");
	assert_int_equal(c->pins[0].addr_count, 2);
	assert_true(addr_is_v4(&c->pins[0].addrs[0]));
	assert_false(c->trust_system);
	assert_string_equal(c->trust_files.items[0], "/x");
	assert_string_equal(c->vault_key_file, "");
	assert_string_equal(c->vault_credential, "kek");
	assert_string_equal(c->admin_socket, "/q/s");
	assert_int_equal(c->admin_listen.port, 8443);
	assert_int_equal(c->ingress_listen.port, 8081);
	assert_string_equal(c->ingress_key, "/i/k");
	assert_string_equal(c->ingress_keys_file, "/i/keys");
	assert_int_equal(c->tunnel_idle_ms, 1005);
	assert_int_equal(c->total_ms, 1006);
	assert_int_equal(c->server_first_ms, 107);
	assert_int_equal(c->leaf_cache, 16);
	assert_int_equal(c->h2_streams, 8);
	assert_int_equal(c->h2_sandbox_held_bytes, UINT32_MAX);
	config_free(c);
}

/* The same text says every word of the table, so that none goes untested. */
static void config__table_is_whole(void **state)
{
	const struct config_keyword *k;
	unsigned count, i;
	char word[64];

	(void)state;
	k = config_keywords(&count);
	assert_in_range(count, 30, 100);
	for (i = 0; i < count; i++) {
		assert_true(strlen(k[i].help) > 10);
		(void)snprintf(word, sizeof(word), "\"%s\":", k[i].key);
		if (!strstr(full, word) && strcmp(k[i].key, "keyFile") != 0 &&
		    strcmp(k[i].key, "passphraseFile") != 0)
			fail_msg("the test does not set %s", k[i].key);
	}
}

static void config__yaml_with_comments(void **state)
{
	struct config *c = parse("# a comment\n"
				 "user: nobody\n"
				 "pins:\n"
				 "  a.example: [192.0.2.1]\n");

	(void)state;
	assert_string_equal(c->user, "nobody");
	assert_int_equal(c->pin_count, 1);
	config_free(c);
}

static const struct {
	const char *text;
	unsigned line, col;
	const char *words;
} refused[] = {
	{ "[]", 1, 1, "expected a map" },
	{ "", 1, 1, "expected a map" },
	{ "{\"usr\": \"\"}", 1, 2, "\"user\"" },
	{ "{\n \"dns\": {\n  \"timeout\": 5}}", 3, 3, "\"timeoutMs\"" },
	{ "{\"dns\": {\"timeoutMs\": 49}}", 1, 23, "from 50 to 30000" },
	{ "{\"dns\": {\"timeoutMs\": \"50\"}}", 1, 23, "a string" },
	{ "{\"dns\": []}", 1, 9, "expected a map" },
	{ "{\"dns\": {\"minTtlS\": 9, \"maxTtlS\": 8}}", 1, 21, "maxTtlS" },
	{ "{\"dns\": {\"upstreams\": [\"dns.example\"]}}", 1, 24, "ip:port" },
	{ "{\"proxyPort\": 0}", 1, 15, "from 1 to 65535" },
	{ "{\"proxyPort\": 65536}", 1, 15, "from 1 to 65535" },
	{ "{\"proxyPort\": 53}", 1, 15, "another port" },
	{ "{\"explicitProxyPort\": 53}", 1, 23, "another port" },
	{ "{\"upstream\": {\"proxy\": \"a.example\"}}", 1, 24, "host:port" },
	{ "{\"upstream\": {\"proxy\": \"a@b:1\"}}", 1, 24, "host:port" },
	{ "{\"upstream\": {\"proxyTls\": true}}", 1, 27, "\"proxy\" as well" },
	{ "{\"upstream\": {\"noProxy\": [\"a\"]}}", 1, 26, "as well" },
	{ "{\"upstream\": {\"proxy\": \"a:1\", \"noProxy\": [\"*.a\"]}}", 1, 43,
	  "a network, an address or a name" },
	{ "{\"explicitProxyName\": \"1.2.3.4\"}", 1, 23, "a host name" },
	{ "{\"routeTable\": 254}", 1, 16, "from 256" },
	{ "{\"fwmark\": \"0x5a11\"}", 1, 12, "whole number" },
	{ "{\"loops\": 257}", 1, 11, "from 0 to 256" },
	{ "{\"http2\": {\"streams\": 129}}", 1, 23, "from 1 to 128" },
	{ "{\"http2\": {\"chores\": 1}}", 1, 12, "chores" },
	{ "{\"webhook\": {\"url\": \"ftp://a/\"}}", 1, 21, "http" },
	{ "{\"webhook\": {\"url\": \"http:///x\"}}", 1, 21, "http" },
	{ "{\"webhook\": {\"url\": \"https://u:p@a/\"}}", 1, 21, "http" },
	{ "{\"webhook\": {\"url\": \"https://a/ b\"}}", 1, 21, "http" },
	{ "{\"webhook\": {\"url\": \"https://a:0/\"}}", 1, 21, "http" },
	{ "{\"lifecycle\": {\"subnet4\": \"10.1.2.3\"}}", 1, 27,
	  "such as 10.0.0.0/16" },
	{ "{\"lifecycle\": {\"subnet4\": \"10.1.2.0/30\"}}", 1, 27, "/29" },
	{ "{\"lifecycle\": {\"subnet6\": \"10.1.2.0/24\"}}", 1, 27, "IPv6" },
	{ "{\"lifecycle\": {\"listen\": \"1.2.3.4:1\"},\n"
	  "\"sandboxInterfaces\": [\"a0\"]}",
	  2, 22, "sp-docker0" },
	{ "{\"ingress\": {\"certificate\": \"/c\"}}", 1, 29, "both or none" },
	{ "{\"ingress\": {\"advertise\": \"gw\"}}", 1, 27, "host:port" },
	{ "{\"sandboxInterfaces\": [\"sp-*\"],\n"
	  "\"lifecycle\": {\"listen\": \"1.2.3.4:1\"}}",
	  2, 25, "without apiKeyFile" },
	{ "{\"lifecycle\": {\"apiKeyFile\": \"/k\", \"insecure\": true}}", 1,
	  48, "one of them" },
	{ "{\"lifecycle\": {\"key\": \"/k\"}}", 1, 23, "both or none" },
	{ "{\"logLevel\": \"loud\"}", 1, 14, "debug" },
	{ "{\"runDir\": \"run\"}", 1, 12, "an absolute path" },
	{ "{\"runDir\": \"/\"}", 1, 12, "an absolute path" },
	{ "{\"runDir\": \"/a/../b\"}", 1, 12, "an absolute path" },
	{ "{\"runDir\": \"/a\\nb\"}", 1, 12, "an absolute path" },
	{ "{\"runDir\": 5}", 1, 12, "a string" },
	{ "{\"user\": \"a b\"}", 1, 10, "an account name" },
	{ "{\"user\": \"-r\"}", 1, 10, "an account name" },
	{ "{\"sandboxInterfaces\": []}", 1, 23, "expected 1 to 64" },
	{ "{\"sandboxInterfaces\": [\"*\"]}", 1, 24, "an interface name" },
	{ "{\"sandboxInterfaces\": [\"lo\"]}", 1, 24, "an interface name" },
	{ "{\"sandboxInterfaces\": [\"l*\"]}", 1, 24, "an interface name" },
	{ "{\"sandboxInterfaces\": [\"a*b\"]}", 1, 24, "an interface name" },
	{ "{\"sandboxInterfaces\": [\"a\\\"b\"]}", 1, 24, "interface name" },
	{ "{\"sandboxInterfaces\": [\"sixteen-letters-\"]}", 1, 24, "name" },
	{ "{\"pins\": {\"10.0.0.1\": [\"1.2.3.4\"]}}", 1, 11, "no host name" },
	{ "{\"pins\": {\"a.b\": [\"c.d\"]}}", 1, 19, "an IP address" },
	{ "{\"pins\": {\"a.b\": []}}", 1, 18, "expected 1 to 16" },
	{ "{\"pins\": {\"a.b\": [\"::1\"], \"A.b.\": [\"::1\"]}}", 1, 27,
	  "a second time" },
	{ "{\"vault\": {\"keyFile\": \"/a\", \"credential\": \"b\"}}", 1, 11,
	  "several sources" },
	{ "{\"vault\": {\"credential\": \"../b\"}}", 1, 26, "a file name" },
	{ "{\"vault\": {\"credential\": \"a/b\"}}", 1, 26, "a file name" },
	{ "{\"admin\": {\"listen\": \"1.2.3.4\"}}", 1, 22, "ip:port" },
	{ "{\"admin\": {\"listen\": \"1.2.3.4:1\"}}", 1, 22, "certificate" },
	{ "{\"upstream\": {\"trustSystem\": \"yes\"}}", 1, 30,
	  "true or false" },
	{ "{\"loops\": 1, \"loops\": 2}", 1, 14, "loops" },
};

static void config__refused(void **state)
{
	struct config *c;
	struct diag d;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(refused); i++) {
		d = (struct diag){ 0 };
		c = NULL;
		if (!config_parse(span_str(refused[i].text), &c, &d))
			fail_msg("accepted: %s", refused[i].text);
		assert_null(c);
		if (d.line != refused[i].line || d.col != refused[i].col ||
		    !strstr(d.msg, refused[i].words))
			fail_msg("%s\n  said %u:%u: %s\n  expected %u:%u: "
				 "...%s...",
				 refused[i].text, d.line, d.col, d.msg,
				 refused[i].line, refused[i].col,
				 refused[i].words);
	}
}

static void config__long_socket_path(void **state)
{
	struct config *c;
	struct diag d = { 0 };
	char text[300], path[121];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	(void)snprintf(text, sizeof(text), "{\"runDir\": \"/%s\"}", path);
	assert_int_not_equal(config_parse(span_str(text), &c, &d), 0);
	assert_non_null(strstr(d.msg, "too long for a unix socket"));
}

/* Every beginning of a full text is refused or accepted, never worse. */
static void config__every_truncation(void **state)
{
	struct config *c;
	struct diag d;
	size_t len;

	(void)state;
	for (len = 0; len < sizeof(full) - 1; len++) {
		d = (struct diag){ 0 };
		if (config_parse(span_of(full, len), &c, &d))
			assert_true(diag_is_set(&d));
		else
			config_free(c);
	}
}

/* What the supervisor understood is what the roles get. */
static void config__pack(void **state)
{
	struct buf bytes = BUF_INIT(CONFIG_BYTES_MAX);
	struct buf again = BUF_INIT(CONFIG_BYTES_MAX);
	struct config *c = parse(full), *d = NULL;

	(void)state;
	assert_int_equal(config_pack(c, &bytes), 0);
	assert_int_equal(config_unpack(buf_peek(&bytes), &d), 0);
	assert_int_equal(config_pack(d, &again), 0);
	assert_true(span_eq(buf_peek(&bytes), buf_peek(&again)));
	assert_string_equal(d->user, c->user);
	assert_int_equal(d->log_level, LOG_DEBUG);
	assert_string_equal(d->interfaces.items[1], "br0");
	assert_int_equal(d->dns_upstreams[1].port, 5353);
	assert_string_equal(d->pins[0].name, "api.example.com");
	assert_true(addr_eq_ip(&d->pins[0].addrs[1], &c->pins[0].addrs[1]));
	assert_int_equal(d->admin_listen.port, 8443);
	assert_int_equal(d->leaf_cache, 16);
	config_free(c);
	config_free(d);
	buf_fini(&bytes);
	buf_fini(&again);
}

/* Lengths that lie, and every truncation, are refused without a trace. */
static void config__unpack_hostile(void **state)
{
	struct buf bytes = BUF_INIT(CONFIG_BYTES_MAX);
	struct config *c = parse(full), *d;
	size_t len;

	(void)state;
	assert_int_equal(config_pack(c, &bytes), 0);
	config_free(c);
	for (len = 0; len < buf_len(&bytes); len++)
		assert_int_equal(config_unpack(span_of(bytes.data, len), &d),
				 -EPROTO);
	assert_int_equal(buf_put(&bytes, SPAN("x")), 0);
	assert_int_equal(config_unpack(buf_peek(&bytes), &d), -EPROTO);
	/* the first byte is of the version of who packed it */
	bytes.data[0] ^= 1;
	assert_int_equal(
		config_unpack(span_of(bytes.data, buf_len(&bytes) - 1), &d),
		CONFIG_OTHER_BUILD);
	bytes.data[0] ^= 1;
	for (len = 0; len + 5 <= buf_len(&bytes); len++) {
		char kept[4];

		memcpy(kept, bytes.data + len, 4);
		memset(bytes.data + len, 0xff, 4);
		if (!config_unpack(span_of(bytes.data, buf_len(&bytes) - 1),
				   &d))
			config_free(d);
		memcpy(bytes.data + len, kept, 4);
	}
	buf_fini(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config__defaults),
		cmocka_unit_test(config__every_keyword),
		cmocka_unit_test(config__table_is_whole),
		cmocka_unit_test(config__yaml_with_comments),
		cmocka_unit_test(config__refused),
		cmocka_unit_test(config__long_socket_path),
		cmocka_unit_test(config__every_truncation),
		cmocka_unit_test(config__pack),
		cmocka_unit_test(config__unpack_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
