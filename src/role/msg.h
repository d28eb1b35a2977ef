/* SPDX-License-Identifier: Apache-2.0 */
/* msg.h - every message that roles send each other, on SEQPACKET channels
 *
 * A message is struct msg_head, then the fixed body of its type, then a
 * bounded tail (head.len = body + tail bytes), and at most MSG_FDS_MAX file
 * descriptors. Integers are in host order: both ends are one machine, one
 * build. Strings in bodies are NUL-terminated inside their array. The
 * receiver checks sizes with msg_body() before it reads anything; a malformed
 * message ends the channel and the supervisor kills the sender.
 *
 * A request carries a serial > 0 that its reply repeats. What is larger than
 * MSG_TAIL_MAX travels as a sealed memfd.
 *
 * Who sends what is in the type's name: MSG_<FROM>_<VERB>.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"
#include "src/io/chan.h" /* struct msg_head */
#include "src/role/drop.h"

enum {
	MSG_TAIL_MAX = 96 * 1024,
	MSG_FDS_MAX = 4,
	MSG_NAME_SIZE = 256, /* host names, credential names, ids + NUL */
	MSG_IFACE_SIZE = 16, /* IFNAMSIZ */
	MSG_ADDRS_MAX = 8,   /* addresses of one sandbox */
	MSG_TEXT_SIZE = 512, /* an error sentence */
	MSG_ALIGN = 8,	     /* of a received payload */
	MSG_HASH_SIZE = 32,  /* SHA-256 */
	MSG_TOKEN_SIZE = 64, /* a token of a sandbox + NUL */
};

enum role {
	ROLE_NONE,
	ROLE_SUPERVISOR,
	ROLE_GATEWAY,
	ROLE_VAULT,
	ROLE_CONTROL,
	ROLE_QUEUE,
	ROLE_NUM,
};

const char *role_name(enum role role);

/* X(type, body struct); comment: fds and tail. `struct msg_none` = no body. */
#define MSG_TYPES(X)                                                           \
	/* supervisor to any role; fd 0: the channel to .peer (sent again      \
	 * whenever that peer was restarted; the old channel is then dead) */  \
	X(MSG_SUPERVISOR_PEER, struct msg_peer)                                \
	/* supervisor to gateway; fd 0: a bound, listening socket */           \
	X(MSG_SUPERVISOR_LISTENER, struct msg_listener)                        \
	/* supervisor to gateway: all listeners were sent, start accepting */  \
	X(MSG_SUPERVISOR_START, struct msg_none)                               \
	/* supervisor to gateway; fd 0: audit file, O_APPEND (also on reopen)  \
	 */                                                                    \
	X(MSG_SUPERVISOR_AUDIT, struct msg_none)                               \
	/* supervisor to control: re-read files (SIGHUP) */                    \
	X(MSG_SUPERVISOR_RELOAD, struct msg_none)                              \
	/* supervisor to gateway, control; fd 0, fd 1: the files of a          \
	 * listener's certificate and its key, opened again (SIGHUP) */        \
	X(MSG_SUPERVISOR_CERTIFICATE, struct msg_certificate)                  \
	/* supervisor to gateway, control: finish what runs, then exit 0 */    \
	X(MSG_SUPERVISOR_DRAIN, struct msg_drain)                              \
	/* any role to supervisor: I serve now */                              \
	X(MSG_ROLE_READY, struct msg_none)                                     \
	/* any role to supervisor: this role broke the protocol */             \
	X(MSG_ROLE_ACCUSE, struct msg_peer)                                    \
	/* control to supervisor: lock a sandbox to its interface, or end that \
	 * (.id alone counts), or: every sandbox was sent, other locks end.    \
	 * Each is answered by MSG_SUPERVISOR_LOCKED */                        \
	X(MSG_CONTROL_LOCK, struct msg_lock)                                   \
	X(MSG_CONTROL_UNLOCK, struct msg_lock)                                 \
	X(MSG_CONTROL_LOCKS_END, struct msg_none)                              \
	X(MSG_SUPERVISOR_LOCKED, struct msg_locked)                            \
	/* control to supervisor: state of the roles; reply with the same type \
	 * and struct msg_roles */                                             \
	X(MSG_CONTROL_ROLES, struct msg_roles)                                 \
                                                                               \
	/* gateway to vault: sign a leaf; tail: SubjectPublicKeyInfo, DER */   \
	X(MSG_GATEWAY_SIGN, struct msg_sign)                                   \
	/* reply; tail: the certificate, DER (empty when .status != 0) */      \
	X(MSG_VAULT_SIGNED, struct msg_result)                                 \
	/* gateway to vault: the value of a credential that a binding names */ \
	X(MSG_GATEWAY_LEASE, struct msg_credential)                            \
	/* reply; tail: the value */                                           \
	X(MSG_VAULT_LEASE, struct msg_result)                                  \
	/* any role to vault: the CA certificate; reply MSG_VAULT_CA, tail DER \
	 */                                                                    \
	X(MSG_ROLE_GET_CA, struct msg_none)                                    \
	X(MSG_VAULT_CA, struct msg_result)                                     \
                                                                               \
	/* control to vault: a transaction: BEGIN, any PUT and REMOVE, COMMIT. \
	 * Only COMMIT is answered (MSG_VAULT_RESULT). A new BEGIN drops an    \
	 * unfinished transaction. REMOVE of kind RECORD_NONE and name "":     \
	 * the whole scope with its revision; then nothing else is in it. */   \
	X(MSG_CONTROL_BEGIN, struct msg_begin)                                 \
	X(MSG_CONTROL_PUT, struct msg_record) /* tail: the value */            \
	X(MSG_CONTROL_REMOVE, struct msg_record)                               \
	X(MSG_CONTROL_COMMIT, struct msg_none)                                 \
	X(MSG_VAULT_RESULT, struct msg_result)                                 \
	/* control to vault: the record after .name in key order (.name "" =   \
	 * the first) of .kind in .scope; reply MSG_VAULT_RECORD, tail: value  \
	 * (never for credentials); .found 0 = no more, 1 = there, 2 = there   \
	 * but damaged, without a value. With .exact the record of that name.  \
	 * With .scope "*": all scopes in order, .scope_after and .name the    \
	 * last one seen. */                                                   \
	X(MSG_CONTROL_READ, struct msg_read)                                   \
	X(MSG_VAULT_RECORD, struct msg_record)                                 \
	/* control to vault: the revision of a scope; MSG_VAULT_RESULT */      \
	X(MSG_CONTROL_REVISION, struct msg_record)                             \
	/* control to vault: rotate-dek, verify; MSG_VAULT_RESULT with text */ \
	X(MSG_CONTROL_MAINTAIN, struct msg_maintain)                           \
                                                                               \
	/* control to gateway; fd 0: sealed memfd, compiled policy */          \
	X(MSG_CONTROL_POLICY, struct msg_policy)                               \
	X(MSG_CONTROL_POLICY_DROP, struct msg_policy)                          \
	X(MSG_CONTROL_SANDBOX, struct msg_sandbox)                             \
	X(MSG_CONTROL_SANDBOX_DROP, struct msg_sandbox)                        \
	/* control to gateway; fd 0: memfd, JSON {"revision","bindings":[...]} \
	 * of .scope ("" = every sandbox); the gateway fetches the leases it   \
	 * lacks, then swaps */                                                \
	X(MSG_CONTROL_BINDINGS, struct msg_scope)                              \
	/* control to gateway; fd 0: memfd, JSON {"pins":{name:[ip]},          \
	 * "hosts":{name:[ip]}, "upstreams":["ip:port"], "own":["cidr"]} */    \
	X(MSG_CONTROL_NODE, struct msg_scope) /* .scope "" */                  \
	/* control to gateway: reply MSG_GATEWAY_SYNCED once every loop has    \
	 * applied all that was sent before it */                              \
	X(MSG_CONTROL_SYNC, struct msg_none)                                   \
	X(MSG_GATEWAY_SYNCED, struct msg_result)                               \
	/* control to gateway: what the sandbox .scope uses of its limits;     \
	 * tail of the reply: JSON, null when it is not known there */         \
	X(MSG_CONTROL_USAGE, struct msg_scope)                                 \
	X(MSG_GATEWAY_USAGE, struct msg_result)                                \
	/* control to gateway: counters; tail of the reply: JSON */            \
	X(MSG_CONTROL_STATUS, struct msg_none)                                 \
	X(MSG_GATEWAY_STATUS, struct msg_result)                               \
	/* control to gateway: a sandbox has an inside that the ingress leads  \
	 * to, or has none any more (.id alone counts) */                      \
	X(MSG_CONTROL_INGRESS, struct msg_ingress)                             \
	X(MSG_CONTROL_INGRESS_DROP, struct msg_ingress)                        \
	/* control to gateway; fd 0: sealed memfd, the keys of signed routes,  \
	 * a line "{id}={base64}" each; size 0: none, and no fd */             \
	X(MSG_CONTROL_INGRESS_KEYS, struct msg_scope) /* .scope "" */          \
	/* control to gateway; fd 0: one end of a stream socketpair on which   \
	 * a client of the lifecycle listener goes on, HTTP/1.1 from the first \
	 * byte of the head */                                                 \
	X(MSG_CONTROL_INGRESS_CLIENT, struct msg_ingress_client)               \
	/* gateway to control; fd 0: one end of a stream socketpair on which a \
	 * client speaks HTTP/1.1 to the egress API of the sandbox .id */      \
	X(MSG_GATEWAY_EGRESS_CLIENT, struct msg_ingress_client)                \
	/* gateway to control: a sandbox was used through the ingress; at most \
	 * once a minute for each, and only of those that renew */             \
	X(MSG_GATEWAY_ACCESSED, struct msg_scope)                              \
	/* gateway to control: policy denied a sandbox a name; bounded in      \
	 * number, and only where there is a webhook */                        \
	X(MSG_GATEWAY_DENIED, struct msg_denied)                               \
                                                                               \
	/* queue to gateway: may this flow begin, or (.again) go on? Reply     \
	 * MSG_GATEWAY_FLOW with the same serial, in the order of questions */ \
	X(MSG_QUEUE_FLOW, struct msg_flow)                                     \
	X(MSG_GATEWAY_FLOW, struct msg_flow_verdict)                           \
	/* gateway to queue: ask again about every flow that the kernel        \
	 * forwards; reply MSG_QUEUE_REVIEWED when those that were denied are  \
	 * gone */                                                             \
	X(MSG_GATEWAY_REVIEW, struct msg_none)                                 \
	X(MSG_QUEUE_REVIEWED, struct msg_result)                               \
	/* queue to gateway: its counters, soon after they moved */            \
	X(MSG_QUEUE_COUNTERS, struct msg_queue_counters)                       \
	/* queue to gateway: the kernel dropped a packet, or many */           \
	X(MSG_QUEUE_DROP, struct msg_drop)                                     \
	/* queue to gateway: how many it dropped, soon after they moved */     \
	X(MSG_QUEUE_DROPS, struct msg_drops)

enum msg_type {
	MSG_NONE,
#define MSG_ENUM(type, body) type,
	MSG_TYPES(MSG_ENUM)
#undef MSG_ENUM
		MSG_TYPE_NUM,
};

struct msg_none {
	uint32_t zero; /* bodies are never empty, so sizeof is honest */
};

struct msg_peer {
	uint32_t role; /* enum role */
};

/* How packets come to the queue role. */
enum queue_kind {
	QUEUE_NONE,    /* this node cannot: all but TCP and DNS is dropped */
	QUEUE_NATIVE,  /* a rule of our own table */
	QUEUE_XTABLES, /* a rule that iptables made for us */
	QUEUE_KIND_NUM,
};

const char *queue_kind_name(enum queue_kind kind);

enum listener_kind {
	LISTENER_NONE,
	LISTENER_TCP,	  /* TPROXY, every TCP connection of a sandbox */
	LISTENER_DNS_UDP, /* TPROXY, port 53 */
	LISTENER_DNS_TCP,
	LISTENER_INGRESS, /* an ordinary one, for those outside */
	LISTENER_KIND_NUM,
};

struct msg_listener {
	uint32_t kind;	 /* enum listener_kind */
	uint32_t family; /* AF_INET, AF_INET6 */
	uint32_t loop;	 /* index of the event loop that serves it */
};

/* Whose certificate. */
enum certificate_of {
	CERTIFICATE_NONE,
	CERTIFICATE_ADMIN,
	CERTIFICATE_LIFECYCLE,
	CERTIFICATE_INGRESS,
	CERTIFICATE_NUM,
};

struct msg_certificate {
	uint32_t of; /* enum certificate_of */
};

struct msg_drain {
	uint32_t grace_ms;
};

struct msg_roles {
	struct {
		uint32_t pid, restarts, ready;
		uint64_t since_ms; /* wall clock */
	} roles[ROLE_NUM];
	uint32_t table_ok; /* the nftables tables stand as installed */
	uint32_t queue;	   /* enum queue_kind */
	uint32_t forwards; /* the node forwards: 1 IPv4, 2 IPv6 */
};

/* .status: 0 or a positive errno; .text then says why, for people. */
struct msg_result {
	int32_t status;
	uint64_t revision;
	char text[MSG_TEXT_SIZE];
};

struct msg_sign {
	char name[MSG_NAME_SIZE]; /* canonical host name or IP literal */
};

struct msg_credential {
	char scope[MSG_NAME_SIZE];
	char name[MSG_NAME_SIZE];
};

enum record_kind {
	RECORD_NONE,
	RECORD_CREDENTIAL, /* write-only for control */
	RECORD_BINDING,	   /* JSON */
	RECORD_SANDBOX,	   /* JSON, control's own */
	RECORD_POLICY,	   /* JSON, policies put by API */
	RECORD_TOKEN,	   /* JSON: hashed admin tokens */
	RECORD_BOX,	   /* JSON: sandboxes of the lifecycle API */
	RECORD_SNAPSHOT,   /* JSON: images that were made of them */
	RECORD_NET_POLICY, /* JSON: their network policies, in pieces */
	RECORD_KIND_NUM,
};

/* expected_revision: -1 = whatever it is. A mismatch answers EAGAIN. */
struct msg_begin {
	char scope[MSG_NAME_SIZE]; /* "" = the node; else a sandbox id */
	int64_t expected_revision;
};

struct msg_record {
	uint32_t kind; /* enum record_kind */
	uint32_t found;
	uint64_t revision; /* at which the record was last written */
	char scope[MSG_NAME_SIZE];
	char name[MSG_NAME_SIZE];
};

struct msg_read {
	uint32_t kind;
	uint32_t exact;
	char scope[MSG_NAME_SIZE];
	char scope_after[MSG_NAME_SIZE];
	char name[MSG_NAME_SIZE];
};

enum maintain_verb { MAINTAIN_NONE, MAINTAIN_ROTATE_DEK, MAINTAIN_VERIFY };

struct msg_maintain {
	uint32_t verb; /* enum maintain_verb */
};

/* Policy ids are small numbers that control hands out; 0 is the operator
 * overlay, which is consulted before every policy. */
struct msg_policy {
	uint32_t policy;
	uint64_t generation;
	uint64_t size;		  /* bytes in the memfd */
	char name[MSG_NAME_SIZE]; /* of the policy */
};

struct msg_sandbox {
	char id[MSG_NAME_SIZE];
	char iface[MSG_IFACE_SIZE]; /* "" = any sandbox interface */
	char port[MSG_IFACE_SIZE];  /* its port of the bridge iface, or "" */
	uint32_t policy;
	uint32_t addr_count;
	uint8_t addrs[MSG_ADDRS_MAX][16]; /* as struct addr.ip */
};

/* What a sandbox may send by: nothing else leaves its device. */
struct msg_lock {
	char id[MSG_NAME_SIZE];
	char iface[MSG_IFACE_SIZE];
	char port[MSG_IFACE_SIZE]; /* its port of the bridge iface, or "" */
	uint32_t addr_count;
	uint16_t has_mac;
	uint16_t awaits_port; /* one of the bridge iface, and has none yet */
	uint64_t bytes_per_s; /* of flows, in each direction; 0 = any */
	uint8_t mac[6];
	uint8_t addrs[MSG_ADDRS_MAX][16]; /* as struct addr.ip */
};

/* .status: 0 or a positive errno; .text then says why, for people. */
struct msg_locked {
	int32_t status;
	uint32_t is_bridge;	     /* the device has ports of its own */
	char device[MSG_IFACE_SIZE]; /* where the lock is */
	char text[MSG_TEXT_SIZE];
};

/* Why nobody gets into a sandbox now. */
enum ingress_shut {
	INGRESS_SHUT_NOT_READY,
	INGRESS_SHUT_PAUSED,
	INGRESS_SHUT_ENDED,
	INGRESS_SHUT_NUM,
};

/* The inside of a sandbox, as the ingress needs it. Tokens come as SHA-256 of
 * what clients send. */
struct msg_ingress {
	char id[MSG_NAME_SIZE];
	uint32_t addr_count;	  /* 0: answered 503, and why not: */
	uint32_t shut;		  /* enum ingress_shut */
	uint32_t has_execd_token; /* the port of execd demands it */
	uint32_t is_secured;	  /* every port of its own demands .secure_token
				     or a signed route */
	uint32_t renews;	  /* its accesses are told */
	uint8_t execd_token[MSG_HASH_SIZE];
	uint8_t secure_token[MSG_HASH_SIZE];
	char proxy_token[MSG_TOKEN_SIZE]; /* opens execd's /proxy and nothing
					     else; "": it has none */
	char iface[MSG_IFACE_SIZE];	  /* that leads there; "": any */
	uint8_t addrs[MSG_ADDRS_MAX][16]; /* as struct addr.ip, first choice
					     first */
};

struct msg_ingress_client {
	char id[MSG_NAME_SIZE]; /* of the sandbox, to control; else "" */
	uint8_t peer[16];	/* the client, as struct addr.ip */
	uint16_t port;		/* its own */
	uint8_t tls;		/* it came over TLS */
};

struct msg_scope {
	char scope[MSG_NAME_SIZE];
	uint64_t size;
};

struct msg_denied {
	uint64_t wall_ms;
	char id[MSG_NAME_SIZE]; /* of the sandbox */
	char host[MSG_NAME_SIZE];
	char kind[16]; /* of the audit record */
	uint16_t port; /* 0: none was said */
	char text[MSG_TEXT_SIZE]; /* which rule, or which default */
};

/* A flow as its first packet says, or as the kernel keeps it. */
struct msg_flow {
	uint8_t client[16], destination[16]; /* as struct addr.ip */
	uint32_t ifindex;		     /* where it came in */
	uint16_t client_port, port;	     /* of UDP; else 0 */
	uint8_t protocol;		     /* IPPROTO_UDP, _ICMP or _ICMPV6 */
	uint8_t icmp_type, icmp_code;	     /* else 0 */
	uint8_t again;			     /* it is forwarded already */
};

/* Zero is the safe one. */
enum flow_verdict {
	FLOW_DROP,   /* silently: it deserves no answer, or there is none yet */
	FLOW_REJECT, /* with ICMP administratively prohibited */
	FLOW_ALLOW,
	FLOW_VERDICT_NUM,
};

struct msg_flow_verdict {
	uint32_t verdict; /* enum flow_verdict */
};

/* X(name, help): what the queue role counts. */
#define QUEUE_COUNTERS(X)                                                  \
	X(packets, "packets that came for a decision")                     \
	X(allowed, "packets let pass")                                     \
	X(rejected, "packets refused with ICMP")                           \
	X(dropped, "packets dropped as the gateway said")                  \
	X(unparsable, "packets dropped: no flow could be read from them")  \
	X(unanswered, "packets dropped: no gateway, or no answer in time") \
	X(overflowed, "packets dropped: too many wait for an answer")      \
	X(lost, "times that the kernel's queue was full")                  \
	X(reviewed, "live flows asked about again")                        \
	X(cut, "live flows ended because policy denies them now")

struct msg_queue_counters {
#define QUEUE_COUNTER_FIELD(name, help) uint64_t name;
	QUEUE_COUNTERS(QUEUE_COUNTER_FIELD)
#undef QUEUE_COUNTER_FIELD
};

/* One packet, as far as its headers could be read; or, with .ifindex 0 and no
 * addresses, .count of them that only counters tell of. */
struct msg_drop {
	uint8_t source[16], destination[16]; /* as struct addr.ip */
	uint64_t count;
	uint32_t ifindex;
	uint32_t reason;    /* enum drop_reason */
	uint16_t ethertype; /* of IPv4, IPv6, ARP: what the rest is about */
	uint16_t source_port, port;
	uint8_t protocol;
	uint8_t icmp_type, icmp_code;
};

struct msg_drops {
	uint64_t of[DROP_NUM];
	uint64_t told; /* 1: the kernel's packet log is ours to read */
};

/* "MSG_..."; total. */
const char *msg_type_name(uint16_t type);

/* Differs where another build has other messages, or bodies of other sizes. */
uint32_t msg_layout(void);

/* Size of the body of a type; 0 for an unknown type. */
size_t msg_body_size(uint16_t type);

/* The body of a received message if payload is at least that long and its
 * strings end inside it, else NULL. *ret_tail: what follows the body, at most
 * MSG_TAIL_MAX bytes. payload.ptr is aligned to MSG_ALIGN, as a channel hands
 * it out. */
const void *msg_body(uint16_t type, struct span payload, struct span *ret_tail);
