/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the configuration file, read by the table of config.def
 *
 * How it works: defaults first, then every key of the file through the setter
 * of its kind, then what concerns several keys at once. Nothing here knows a
 * single keyword but the last step.
 */

#include "src/role/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "src/base/err.h"
#include "src/role/config_value.h"
#include "src/text/doc.h"

#define KEY_FILE_DEFAULT "/etc/sallyport/vault.key"

enum { DNS_PORT = 53 };

static const char *const sections[] = {
	"dns",	  "upstream", "vault",	   "admin",   "timeouts",
	"limits", "http2",    "lifecycle", "ingress", "webhook", NULL,
};

/* The keys that may stand in a section; at the top also the sections. */
static void section_words(const char *section, const char **words)
{
	const struct config_keyword *keywords;
	unsigned count = 0, known, i;

	keywords = config_keywords(&known);
	for (i = 0; i < known; i++)
		if (!strcmp(keywords[i].section, section))
			words[count++] = keywords[i].key;
	for (i = 0; !*section && sections[i]; i++)
		words[count++] = sections[i];
	words[count] = NULL;
}

static int section_parse(struct config *c, const char *section,
			 const struct doc_node *n, struct diag *d)
{
	const char *words[CONFIG_KEYWORDS_MAX + ARRAY_LEN(sections)];
	const struct config_keyword *keywords;
	const struct doc_node *value;
	unsigned count, i;
	int r;

	section_words(section, words);
	r = doc_check_keys(n, words, d);
	keywords = config_keywords(&count);
	for (i = 0; !r && i < count; i++) {
		if (strcmp(keywords[i].section, section) != 0)
			continue;
		value = doc_find(n, keywords[i].key);
		if (value)
			r = config_value_set(&keywords[i], c, value, d);
	}
	return r;
}

/* --- what concerns several keys --- */

/* The place of section.key, or of the section, or of the file. */
static int refuse(const struct doc_node *root, const char *section,
		  const char *key, struct diag *d, const char *sentence)
{
	const struct doc_node *at = doc_find(root, section), *value = NULL;

	if (at)
		value = doc_find(at, key);
	at = value ? value : at ? at : root;
	return diag_set(d, at->line, at->col, "%s", sentence);
}

static int finish_vault(struct config *c, const struct doc_node *root,
			struct diag *d)
{
	unsigned sources = (c->vault_key_file[0] != '\0') +
			   (c->vault_credential[0] != '\0') +
			   (c->vault_passphrase_file[0] != '\0');

	if (sources > 1)
		return refuse(root, "vault", "", d,
			      "vault: found several sources of the key, "
			      "expected one of keyFile, credential, "
			      "passphraseFile");
	if (!sources) {
		free(c->vault_key_file);
		c->vault_key_file = must_strdup(KEY_FILE_DEFAULT);
	}
	return 0;
}

static int finish_admin(struct config *c, const struct doc_node *root,
			struct diag *d)
{
	bool has_pair = c->admin_certificate[0] && c->admin_key[0];
	size_t size = strlen(c->run_dir) + sizeof("/admin.sock");

	if (!c->admin_socket[0]) {
		free(c->admin_socket);
		c->admin_socket = must_alloc(size);
		(void)snprintf(c->admin_socket, size, "%s/admin.sock",
			       c->run_dir);
	}
	if (strlen(c->admin_socket) >=
	    sizeof(((struct sockaddr_un *)0)->sun_path))
		return refuse(root, "admin", "socket", d,
			      "admin.socket: found a path that is too long for "
			      "a unix socket, expected at most 107 bytes");
	if (c->admin_listen.port && !has_pair)
		return refuse(root, "admin", "listen", d,
			      "admin.listen: found an address without "
			      "certificate and key, expected all three");
	return 0;
}

static int finish_dns(const struct config *c, const struct doc_node *root,
		      struct diag *d)
{
	if (c->dns_min_ttl_s > c->dns_max_ttl_s)
		return refuse(root, "dns", "minTtlS", d,
			      "dns.minTtlS: found more than maxTtlS, expected "
			      "at most that");
	return 0;
}

static unsigned host_bits(const struct cidr *net)
{
	return 128U - net->prefix;
}

static bool net_is_v4(const struct cidr *net)
{
	struct addr a = { 0 };

	memcpy(a.ip, net->ip, sizeof(a.ip));
	return addr_is_v4(&a);
}

/* Who may make containers with mounts of the node is decided in words. */
static int finish_api_key(const struct config *c, const struct doc_node *root,
			  struct diag *d)
{
	if (c->lifecycle_listen.port && !c->lifecycle_insecure &&
	    !c->lifecycle_key_file[0])
		return refuse(root, "lifecycle", "listen", d,
			      "lifecycle.listen: found an address without "
			      "apiKeyFile, expected both (or \"insecure\": "
			      "true, for an API that anybody may use)");
	if (c->lifecycle_insecure && c->lifecycle_key_file[0])
		return refuse(root, "lifecycle", "insecure", d,
			      "lifecycle.insecure: found true beside "
			      "apiKeyFile, expected one of them");
	if (!c->lifecycle_certificate[0] != !c->lifecycle_key[0])
		return refuse(root, "lifecycle",
			      c->lifecycle_key[0] ? "key" : "certificate", d,
			      "lifecycle: found one of certificate and key, "
			      "expected both or none");
	return 0;
}

static int finish_lifecycle(const struct config *c, const struct doc_node *root,
			    struct diag *d)
{
	unsigned bits = MIN(host_bits(&c->subnet4), 16U);

	if (!net_is_v4(&c->subnet4) || bits < 3)
		return refuse(root, "lifecycle", "subnet4", d,
			      "lifecycle.subnet4: expected an IPv4 network of "
			      "at least eight addresses (/29)");
	if (net_is_v4(&c->subnet6) || host_bits(&c->subnet6) < bits)
		return refuse(root, "lifecycle", "subnet6", d,
			      "lifecycle.subnet6: expected an IPv6 network "
			      "with as many addresses as subnet4, such as a "
			      "/64");
	if (strlen(c->docker_socket) >=
	    sizeof(((struct sockaddr_un *)0)->sun_path))
		return refuse(root, "lifecycle", "dockerSocket", d,
			      "lifecycle.dockerSocket: found a path that is "
			      "too long for a unix socket, expected at most "
			      "107 bytes");
	if (c->lifecycle_listen.port && !config_has_interface(c, CONFIG_BRIDGE))
		return refuse(root, "sandboxInterfaces", "", d,
			      "sandboxInterfaces: does not name " CONFIG_BRIDGE
			      ", the bridge of the lifecycle API's sandboxes");
	return 0;
}

static int finish_ingress(const struct config *c, const struct doc_node *root,
			  struct diag *d)
{
	if (!c->ingress_certificate[0] != !c->ingress_key[0])
		return refuse(root, "ingress",
			      c->ingress_key[0] ? "key" : "certificate", d,
			      "ingress: found one of certificate and key, "
			      "expected both or none");
	return 0;
}

/* Both listen at one address. */
static int finish_ports(const struct config *c, const struct doc_node *root,
			struct diag *d)
{
	if (c->proxy_port == DNS_PORT)
		return refuse(root, "proxyPort", "", d,
			      "proxyPort: found 53, which DNS has, expected "
			      "another port");
	if (c->explicit_proxy_port == DNS_PORT)
		return refuse(root, "explicitProxyPort", "", d,
			      "explicitProxyPort: found 53, which DNS has, "
			      "expected another port");
	return 0;
}

static int finish_upstream(const struct config *c, const struct doc_node *root,
			   struct diag *d)
{
	const char *key = NULL;

	if (c->upstream_proxy[0])
		return 0;
	if (c->upstream_proxy_credential[0])
		key = "proxyCredential";
	else if (c->upstream_proxy_tls)
		key = "proxyTls";
	else if (c->upstream_proxy_resolves)
		key = "proxyResolves";
	else if (c->no_proxy.count)
		key = "noProxy";
	return key ? refuse(root, "upstream", key, d,
			    "upstream: found a keyword about a proxy, expected "
			    "\"proxy\" as well")
		   : 0;
}

static int config_finish(struct config *c, const struct doc_node *root,
			 struct diag *d)
{
	int r = finish_vault(c, root, d);

	if (!r)
		r = finish_admin(c, root, d);
	if (!r)
		r = finish_dns(c, root, d);
	if (!r)
		r = finish_ports(c, root, d);
	if (!r)
		r = finish_upstream(c, root, d);
	if (!r)
		r = finish_lifecycle(c, root, d);
	if (!r)
		r = finish_api_key(c, root, d);
	if (!r)
		r = finish_ingress(c, root, d);
	return r;
}

static int config_fill(struct config *c, const struct doc_node *root,
		       struct diag *d)
{
	const struct doc_node *section;
	unsigned i;
	int r;

	r = doc_expect(root, DOC_MAP, d);
	if (!r)
		r = section_parse(c, "", root, d);
	for (i = 0; !r && sections[i]; i++) {
		section = doc_find(root, sections[i]);
		if (!section)
			continue;
		r = doc_expect(section, DOC_MAP, d);
		if (!r)
			r = section_parse(c, sections[i], section, d);
	}
	return r ? r : config_finish(c, root, d);
}

int config_parse(struct span text, struct config **ret, struct diag *d)
{
	CLEANUP_DOC struct doc *doc = NULL;
	const struct config_keyword *keywords;
	struct config *c;
	unsigned count, i;
	int r;

	if (text.len > CONFIG_TEXT_MAX)
		return diag_set(d, 0, 0, "found %zu bytes, expected at most %d",
				text.len, CONFIG_TEXT_MAX);
	r = doc_parse(text, &doc, d);
	if (r)
		return r;

	c = must_alloc(sizeof(*c));
	keywords = config_keywords(&count);
	for (i = 0; i < count; i++)
		config_value_default(&keywords[i], c);
	r = config_fill(c, doc_root(doc), d);
	if (r) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

bool config_has_interface(const struct config *c, const char *name)
{
	const char *pattern;
	size_t i, len;

	for (i = 0; name[0] && i < c->interfaces.count; i++) {
		pattern = c->interfaces.items[i];
		len = strlen(pattern);
		if (pattern[len - 1] == '*' ? !strncmp(name, pattern, len - 1)
					    : !strcmp(name, pattern))
			return true;
	}
	return false;
}
