/* SPDX-License-Identifier: Apache-2.0 */
/* vault_serve.c - the table of what may be asked of the vault, and the answers
 *
 * How it works: a row names a message, who may send it, a verify function that
 * looks at sizes, names and numbers, and the handler, which may rely on them.
 * What no row allows is an accusation. Control writes values and never reads a
 * credential's; only the gateway gets one, and only when a binding names it.
 *
 * A transaction of control is BEGIN, changes, COMMIT, in this order. What is
 * wrong with a change (a refused value, say) is kept and answered at COMMIT;
 * what is wrong with the order is an accusation.
 */

#include "src/main/vault_serve.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/leaf.h"
#include "certs/leaf_key.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "vault/vault.h"

static_assert((int)RECORD_CREDENTIAL == (int)VAULT_CREDENTIAL, "kinds agree");
static_assert((int)RECORD_BINDING == (int)VAULT_BINDING, "kinds agree");
static_assert((int)RECORD_SANDBOX == (int)VAULT_SANDBOX, "kinds agree");
static_assert((int)RECORD_POLICY == (int)VAULT_POLICY, "kinds agree");
static_assert((int)RECORD_TOKEN == (int)VAULT_TOKEN, "kinds agree");
static_assert((int)RECORD_BOX == (int)VAULT_BOX, "kinds agree");
static_assert((int)RECORD_SNAPSHOT == (int)VAULT_SNAPSHOT, "kinds agree");
static_assert((int)RECORD_NET_POLICY == (int)VAULT_NET_POLICY, "kinds agree");
static_assert((int)RECORD_KIND_NUM <= (int)VAULT_CA_KEY,
	      "messages cannot name the vault's own kinds");
static_assert((int)MSG_TAIL_MAX <= (int)VAULT_VALUE_MAX, "tails fit");

struct serve {
	struct vault *vault;
	struct ca *ca;
	struct span proxy_credential; /* of the configuration; empty = none */
	/* control's transaction */
	bool open;
	struct vault_txn *txn; /* NULL when BEGIN already failed */
	int txn_error;	       /* the first one, answered at COMMIT */
	struct diag txn_diag;
	/* what the tail of a reply points to */
	struct secret *value;
	struct buf der;
};

/* A message that passed its row's verify. */
struct request {
	const void *body;
	struct span tail;
};

/* -- verify -------------------------------------------------------------- */

/* Sandbox ids, "", control's own; never the vault's own scope. */
static bool scope_is_foreign(const char *scope)
{
	return scope[0] != '.';
}

static bool kind_is_known(uint32_t kind)
{
	return kind > RECORD_NONE && kind < RECORD_KIND_NUM;
}

static bool verify_bare(const struct request *q)
{
	return q->tail.len == 0;
}

static bool verify_sign(const struct request *q)
{
	const struct msg_sign *m = q->body;

	return m->name[0] && q->tail.len && q->tail.len <= LEAF_SPKI_MAX;
}

static bool verify_lease(const struct request *q)
{
	const struct msg_credential *m = q->body;

	return m->name[0] && scope_is_foreign(m->scope) && !q->tail.len;
}

static bool verify_begin(const struct request *q)
{
	const struct msg_begin *m = q->body;

	return scope_is_foreign(m->scope) && m->expected_revision >= -1 &&
	       !q->tail.len;
}

static bool verify_put(const struct request *q)
{
	const struct msg_record *m = q->body;

	return kind_is_known(m->kind);
}

static bool is_whole_scope(const struct msg_record *m)
{
	return m->kind == RECORD_NONE && !m->name[0];
}

static bool verify_remove(const struct request *q)
{
	const struct msg_record *m = q->body;

	return (kind_is_known(m->kind) || is_whole_scope(m)) && !q->tail.len;
}

static bool verify_read(const struct request *q)
{
	const struct msg_read *m = q->body;

	return kind_is_known(m->kind) && scope_is_foreign(m->scope) &&
	       !q->tail.len;
}

static bool verify_revision(const struct request *q)
{
	const struct msg_record *m = q->body;

	return scope_is_foreign(m->scope) && !q->tail.len;
}

static bool verify_maintain(const struct request *q)
{
	const struct msg_maintain *m = q->body;

	return (m->verb == MAINTAIN_ROTATE_DEK || m->verb == MAINTAIN_VERIFY) &&
	       !q->tail.len;
}

/* -- answers ------------------------------------------------------------- */

/* The errno that stands for a vault's condition in a message. */
static int status_of(int error)
{
	if (error <= 0)
		return -error;
	switch ((enum vault_error)error) {
	case VAULT_OK:
		return 0;
	case VAULT_E_ABSENT:
	case VAULT_E_NOT_FOUND:
		return ENOENT;
	case VAULT_E_EXISTS:
		return EEXIST;
	case VAULT_E_HELD:
		return EBUSY;
	case VAULT_E_WRONG_KEY:
	case VAULT_E_NOT_NAMED:
		return EACCES;
	case VAULT_E_CORRUPT:
		return EBADMSG;
	case VAULT_E_ROLLED_BACK:
		return ESTALE;
	case VAULT_E_CONFLICT:
		return EAGAIN;
	case VAULT_E_REFUSED:
		return EINVAL;
	case VAULT_E_WORN:
		return EKEYEXPIRED;
	case VAULT_ERROR_NUM:
		break;
	}
	return EIO;
}

static enum serve_verdict reply_result(struct serve_reply *reply, uint16_t type,
				       int error, uint64_t revision,
				       const char *text)
{
	struct msg_result *m = &reply->body.result;

	reply->type = type;
	reply->body_len = sizeof(*m);
	m->status = status_of(error);
	m->revision = revision;
	if (!*text && m->status)
		text = err_text(m->status);
	(void)snprintf(m->text, sizeof(m->text), "%s", text);
	return SERVE_REPLY;
}

/* -- the gateway's questions --------------------------------------------- */

static enum serve_verdict on_sign(struct serve *s, const struct request *q,
				  struct serve_reply *reply)
{
	const struct msg_sign *m = q->body;
	struct diag d = { 0 };
	int r;

	buf_clear(&s->der);
	r = leaf_sign(s->ca, span_str(m->name), q->tail, clock_wall_ms(),
		      &s->der, &d);
	if (!r)
		reply->tail = buf_peek(&s->der);
	return reply_result(reply, MSG_VAULT_SIGNED, r, 0, d.msg);
}

/* The configuration names it, as a binding names others. */
static bool is_for_proxy(const struct serve *s, const struct msg_credential *m)
{
	return !m->scope[0] && s->proxy_credential.len &&
	       span_eq(span_str(m->name), s->proxy_credential);
}

static enum serve_verdict on_lease(struct serve *s, const struct request *q,
				   struct serve_reply *reply)
{
	const struct msg_credential *m = q->body;
	struct diag d = { 0 };
	uint64_t revision = 0;
	int r;

	if (is_for_proxy(s, m))
		r = vault_get(s->vault, SPAN(""), VAULT_CREDENTIAL,
			      s->proxy_credential, &s->value, &revision, &d);
	else
		r = vault_lease(s->vault, span_str(m->scope), span_str(m->name),
				&s->value, &revision, &d);
	if (!r)
		reply->tail = secret_open(s->value);
	else
		log_warn("refused a lease: %s", d.msg);
	return reply_result(reply, MSG_VAULT_LEASE, r, revision, d.msg);
}

static enum serve_verdict on_get_ca(struct serve *s, const struct request *q,
				    struct serve_reply *reply)
{
	(void)q;
	reply->tail = ca_cert_der(s->ca);
	return reply_result(reply, MSG_VAULT_CA, 0, 0, "");
}

/* -- control's transaction ----------------------------------------------- */

static void txn_drop(struct serve *s)
{
	s->txn = vault_abort(s->txn);
	s->open = false;
	s->txn_error = 0;
	s->txn_diag = (struct diag){ 0 };
}

static enum serve_verdict on_begin(struct serve *s, const struct request *q,
				   struct serve_reply *reply)
{
	const struct msg_begin *m = q->body;

	(void)reply;
	txn_drop(s);
	s->open = true;
	s->txn_error = vault_begin(s->vault, span_str(m->scope),
				   m->expected_revision, &s->txn, &s->txn_diag);
	return SERVE_SILENT;
}

static enum serve_verdict on_put(struct serve *s, const struct request *q,
				 struct serve_reply *reply)
{
	const struct msg_record *m = q->body;

	(void)reply;
	if (!s->open)
		return SERVE_ACCUSE;
	if (!s->txn_error)
		s->txn_error =
			vault_put(s->txn, (uint8_t)m->kind, span_str(m->name),
				  q->tail, &s->txn_diag);
	return SERVE_SILENT;
}

static enum serve_verdict on_remove(struct serve *s, const struct request *q,
				    struct serve_reply *reply)
{
	const struct msg_record *m = q->body;

	(void)reply;
	if (!s->open)
		return SERVE_ACCUSE;
	if (s->txn_error)
		return SERVE_SILENT;
	if (is_whole_scope(m))
		s->txn_error = vault_remove_scope(s->txn, &s->txn_diag);
	else
		s->txn_error = vault_remove(s->txn, (uint8_t)m->kind,
					    span_str(m->name), &s->txn_diag);
	return SERVE_SILENT;
}

static enum serve_verdict on_commit(struct serve *s, const struct request *q,
				    struct serve_reply *reply)
{
	struct diag d = s->txn_diag;
	uint64_t revision = 0;
	int r = s->txn_error;

	(void)q;
	if (!s->open)
		return SERVE_ACCUSE;
	if (!r)
		r = vault_commit(take_ptr(s->txn), &revision, &d);
	txn_drop(s);
	if (r < 0)
		log_error("a transaction failed: %s", d.msg);
	return reply_result(reply, MSG_VAULT_RESULT, r, revision, d.msg);
}

/* -- control's questions ------------------------------------------------- */

static int item_find(struct serve *s, const struct msg_read *m,
		     struct vault_item *ret)
{
	const struct span name = span_str(m->name);
	const uint8_t kind = (uint8_t)m->kind;
	struct span scope = span_str(m->scope);
	struct diag ignored = { 0 };

	if (span_eq(scope, SPAN("*")))
		return vault_next_any(s->vault, span_str(m->scope_after), kind,
				      name, ret);
	if (m->exact)
		return vault_stat(s->vault, scope, kind, name, ret, &ignored);
	return vault_next(s->vault, scope, kind, name, ret);
}

static enum serve_verdict on_read(struct serve *s, const struct request *q,
				  struct serve_reply *reply)
{
	struct msg_record *m = &reply->body.record;
	struct vault_item item;
	struct diag d = { 0 };

	reply->type = MSG_VAULT_RECORD;
	reply->body_len = sizeof(*m);
	if (item_find(s, q->body, &item))
		return SERVE_REPLY; /* .found 0 */

	m->found = 1;
	m->kind = item.kind;
	m->revision = item.revision;
	must(span_copy(item.scope, m->scope, sizeof(m->scope)));
	must(span_copy(item.name, m->name, sizeof(m->name)));
	if (item.kind == RECORD_CREDENTIAL)
		return SERVE_REPLY;
	if (!vault_get(s->vault, item.scope, item.kind, item.name, &s->value,
		       NULL, &d)) {
		reply->tail = secret_open(s->value);
	} else {
		log_error("did not serve a record: %s", d.msg);
		m->found = 2;
	}
	return SERVE_REPLY;
}

static enum serve_verdict on_revision(struct serve *s, const struct request *q,
				      struct serve_reply *reply)
{
	const struct msg_record *m = q->body;

	return reply_result(reply, MSG_VAULT_RESULT, 0,
			    vault_revision(s->vault, span_str(m->scope)), "");
}

/* The first finding is the answer; all go to the log. */
static void on_finding(void *ctx, const struct vault_finding *f)
{
	struct vault_finding *first = ctx;

	log_error("%s: %s", vault_error_name(f->error), f->text);
	if (!first->error)
		first->error = f->error;
}

static enum serve_verdict on_verify(struct serve *s, struct serve_reply *reply)
{
	struct vault_finding first = { 0 };
	struct vault_counts counts = { 0 };
	char text[MSG_TEXT_SIZE];
	int r;

	r = vault_verify(s->vault, on_finding, &first, &counts);
	if (!r)
		r = (int)first.error;
	(void)snprintf(text, sizeof(text),
		       "%llu records in %llu scopes, %llu of them damaged%s",
		       (unsigned long long)counts.records,
		       (unsigned long long)counts.scopes,
		       (unsigned long long)counts.findings,
		       counts.findings ? " (the vault's log names them)" : "");
	return reply_result(reply, MSG_VAULT_RESULT, r, 0, text);
}

static enum serve_verdict on_maintain(struct serve *s, const struct request *q,
				      struct serve_reply *reply)
{
	const struct msg_maintain *m = q->body;
	struct diag d = { 0 };
	int r;

	if (m->verb == MAINTAIN_VERIFY)
		return on_verify(s, reply);
	r = vault_rotate_dek(s->vault, &d);
	if (r)
		log_error("rotate-dek failed: %s", d.msg);
	else
		log_info("rotated the data key");
	return reply_result(reply, MSG_VAULT_RESULT, r, 0,
			    r ? d.msg : "every record was sealed again");
}

/* -- the table ----------------------------------------------------------- */

enum {
	GATEWAY = 1 << ROLE_GATEWAY,
	CONTROL = 1 << ROLE_CONTROL,
	ANY = GATEWAY | CONTROL | 1 << ROLE_SUPERVISOR,
};

static const struct row {
	uint16_t type;
	unsigned from;
	bool (*verify)(const struct request *q);
	enum serve_verdict (*handle)(struct serve *s, const struct request *q,
				     struct serve_reply *reply);
} rows[] = {
	{ MSG_GATEWAY_SIGN, GATEWAY, verify_sign, on_sign },
	{ MSG_GATEWAY_LEASE, GATEWAY, verify_lease, on_lease },
	{ MSG_ROLE_GET_CA, ANY, verify_bare, on_get_ca },
	{ MSG_CONTROL_BEGIN, CONTROL, verify_begin, on_begin },
	{ MSG_CONTROL_PUT, CONTROL, verify_put, on_put },
	{ MSG_CONTROL_REMOVE, CONTROL, verify_remove, on_remove },
	{ MSG_CONTROL_COMMIT, CONTROL, verify_bare, on_commit },
	{ MSG_CONTROL_READ, CONTROL, verify_read, on_read },
	{ MSG_CONTROL_REVISION, CONTROL, verify_revision, on_revision },
	{ MSG_CONTROL_MAINTAIN, CONTROL, verify_maintain, on_maintain },
};

static const struct row *row_find(enum role from, uint16_t type)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].type == type)
			return rows[i].from & 1U << from ? &rows[i] : NULL;
	return NULL;
}

enum serve_verdict serve_message(struct serve *s, enum role from, uint16_t type,
				 struct span payload, struct serve_reply *reply)
{
	const struct row *row = row_find(from, type);
	struct request q;

	memset(reply, 0, sizeof(*reply)); /* padding goes out too */
	if (!row)
		return SERVE_ACCUSE;
	q.body = msg_body(type, payload, &q.tail);
	if (!q.body || !row->verify(&q))
		return SERVE_ACCUSE;
	return row->handle(s, &q, reply);
}

struct serve *serve_new(struct vault *v, struct ca *ca,
			struct span proxy_credential)
{
	struct serve *s = must_alloc(sizeof(*s));

	s->vault = v;
	s->ca = ca;
	s->proxy_credential = proxy_credential;
	buf_init(&s->der, CERT_DER_MAX);
	return s;
}

struct serve *serve_free(struct serve *s)
{
	if (!s)
		return NULL;
	txn_drop(s);
	serve_done(s);
	buf_fini(&s->der);
	free(s);
	return NULL;
}

void serve_done(struct serve *s)
{
	s->value = secret_free(s->value);
}

void serve_peer_gone(struct serve *s, enum role from)
{
	if (from == ROLE_CONTROL)
		txn_drop(s);
}
