/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the daemon's configuration file as a struct
 *
 * One JSON file, one keyword table (config.def): the parser, `sallyportd
 * --check`, the man page's list and its test all come from that table. Unknown
 * keys are refused with file, line and a suggestion. The supervisor reads the
 * file; the other roles get what it understood as bytes in a memfd. Strings
 * are never NULL: "" is none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/log.h"

enum {
	CONFIG_TEXT_MAX = 1024 * 1024,
	CONFIG_BYTES_MAX = 4 * 1024 * 1024, /* packed */
	CONFIG_LOOPS_MAX = 256,
};

/* The bridge that Docker makes for the sandboxes of the lifecycle API. */
#define CONFIG_BRIDGE "sp-docker0"

struct config_strings {
	char **items;
	unsigned count;
};

/* A name and the addresses the operator pinned it to. */
struct config_pin {
	char *name; /* canonical host name */
	struct addr *addrs;
	unsigned addr_count;
};

struct config {
	/* where */
	char *state_dir;  /* "stateDir": LMDB; /var/lib/sallyport */
	char *run_dir;	  /* "runDir": sockets, ca.pem; /run/sallyport */
	char *policy_dir; /* "policyDir": /etc/sallyport/policies */
	char *audit_file; /* "auditFile" */
	char *user;	  /* "user": roles run as this; "" = stay root */
	enum log_level log_level; /* "logLevel" */
	/* interception */
	struct config_strings interfaces; /* "sandboxInterfaces": "sp-*" */
	uint32_t fwmark;		  /* "fwmark" */
	uint32_t route_table;		  /* "routeTable" */
	uint16_t queue_number;		  /* "queueNumber" */
	uint16_t log_group;		  /* "logGroup" */
	uint16_t proxy_port;		  /* "proxyPort" */
	uint16_t explicit_proxy_port;	  /* "explicitProxyPort"; 0 = off */
	char *explicit_proxy_name;	  /* "explicitProxyName"; canonical */
	unsigned loops;			  /* "loops": 0 = one per core */
	/* "dns" */
	struct addr *dns_upstreams; /* "upstreams"; empty: resolv.conf */
	unsigned dns_upstream_count;
	uint32_t dns_timeout_ms, dns_min_ttl_s, dns_max_ttl_s, dns_hold_s;
	char *hosts_file;		   /* "hostsFile"; "" = none */
	bool dns_allow_foreign_resolvers;  /* "allowForeignResolvers" */
	uint32_t dns_new_names_per_minute; /* "newNamesPerMinute"; 0 = any */
	/* "nameBytes", "labelBytes", "labels" of what no rule spells out */
	uint32_t dns_name_bytes, dns_label_bytes, dns_labels;
	/* "pins": {"name": ["ip", ...]} */
	struct config_pin *pins;
	unsigned pin_count;
	/* "upstream" */
	bool trust_system;		   /* "trustSystem": the system roots */
	struct config_strings trust_files; /* "trustFiles": extra PEM roots */
	char *upstream_proxy;		   /* "proxy": host:port; "" = none */
	bool upstream_proxy_tls;	   /* "proxyTls" */
	bool upstream_proxy_resolves;	   /* "proxyResolves" */
	char *upstream_proxy_credential;   /* "proxyCredential": its name */
	struct config_strings no_proxy;	   /* "noProxy": CIDR, IP or name */
	/* "vault": exactly one source of the key-encryption key */
	char *vault_key_file, *vault_credential, *vault_passphrase_file;
	/* "admin" */
	char *admin_socket;	  /* "socket"; default runDir/admin.sock */
	struct addr admin_listen; /* "listen": "ip:port"; port 0 = off */
	char *admin_certificate, *admin_key;
	/* "timeouts", all ms */
	uint32_t handshake_ms;	  /* client or origin TLS handshake */
	uint32_t head_ms;	  /* a started request head */
	uint32_t idle_ms;	  /* kept-alive connection without request */
	uint32_t first_byte_ms;	  /* origin's answer; at least 10 min default */
	uint32_t tunnel_idle_ms;  /* spliced or upgraded connection */
	uint32_t total_ms;	  /* exchange or splice as a whole; 0: any */
	uint32_t server_first_ms; /* a client's silence */
	uint32_t connect_ms;
	uint32_t drain_ms; /* SIGTERM: how long exchanges may finish */
	/* "limits" */
	uint32_t head_bytes; /* request or response head */
	/* per sandbox; 0 = no limit; a policy may say otherwise */
	uint32_t connections, connects_per_s, bytes_per_s, dns_per_s,
		mints_per_s;
	uint32_t syns_per_s;	/* of one sandbox, in the kernel; 0 = any */
	uint32_t upstream_idle; /* kept upstream connections per loop */
	uint32_t leaf_cache;	/* leaves */
	/* "http2" */
	uint32_t h2_streams; /* of a client's connection, at a time */
	/* of a sandbox, for each event loop */
	uint32_t h2_sandbox_streams, h2_sandbox_held_bytes;
	/* of a client's connection, at once */
	uint32_t h2_early_resets, h2_useless_frames;
	uint32_t h2_ping_ms; /* an origin's silence; 0: it is never asked */
	uint32_t h2_ping_timeout_ms;
	/* "lifecycle" */
	struct addr lifecycle_listen; /* "listen"; port 0 = off */
	char *lifecycle_key_file;     /* "apiKeyFile"; "" = insecure */
	bool lifecycle_insecure;
	char *lifecycle_certificate, *lifecycle_key; /* both or none */
	char *lifecycle_default_policy;		     /* "defaultPolicy" */
	uint32_t lifecycle_max_timeout_s;	     /* "maxTimeoutS" */
	char *docker_socket;			     /* "dockerSocket" */
	char *docker_group;	      /* "dockerGroup"; "" = the socket's */
	struct cidr subnet4, subnet6; /* "subnet4", "subnet6" */
	char *execd_program;	      /* "execd"; "" = beside the daemon's */
	uint32_t creates_at_once;     /* "createsAtOnce" */
	uint32_t pull_timeout_s;      /* "pullTimeoutS" */
	struct config_strings host_paths; /* "hostPaths" */
	char *docker_runtime;		  /* "runtime"; "" = Docker's default */
	uint32_t sandbox_pids;		  /* "pids" */
	bool disk_quota;		  /* "diskQuota" */
	bool trust_upstream;		  /* "trustUpstream" */
	uint32_t sandbox_ready_ms;	  /* "readyMs" */
	/* "ingress" */
	struct addr ingress_listen;		 /* "listen"; port 0 = off */
	char *ingress_certificate, *ingress_key; /* both or none */
	char *ingress_advertise; /* "advertise": host:port; "" = listen */
	bool ingress_loopback;	 /* "loopback" */
	char *ingress_keys_file; /* "keysFile"; "" = none */

	/* "webhook" */
	char *webhook_url; /* "" = none */
	uint32_t webhook_queue, webhook_timeout_ms, webhook_quiet_s;
};

/* 0; -EINVAL with diag (file name in diag->file is set by the caller). */
WUNRES int config_parse(struct span text, struct config **ret, struct diag *d);
/* NULL and half-built are fine; returns NULL. */
struct config *config_free(struct config *c);

/* Does a pattern of "sandboxInterfaces" match this name? */
bool config_has_interface(const struct config *c, const char *name);

/* config_unpack(): packed by a program that means something else by it. */
enum { CONFIG_OTHER_BUILD = 1 };

/* From the supervisor to a role of the same build: all values as bytes.
 * 0, -ENOBUFS; 0, CONFIG_OTHER_BUILD, -EPROTO. */
WUNRES int config_pack(const struct config *c, struct buf *out);
WUNRES int config_unpack(struct span bytes, struct config **ret);

/* How many event loops the gateway runs: "loops", or one per core that this
 * process may use. Supervisor and gateway count the same. */
unsigned config_loops(const struct config *c);
