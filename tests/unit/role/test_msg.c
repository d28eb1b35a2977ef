/* SPDX-License-Identifier: Apache-2.0 */
/* test_msg.c - sizes and strings of every message type */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

/* Room for the largest body and a tail, aligned as channels align. */
static _Alignas(MSG_ALIGN) char bytes[CHAN_MESSAGE_MAX];

static struct span payload(size_t len)
{
	return span_of(bytes, len);
}

static void msg__sizes(void **state)
{
	uint16_t type;

	(void)state;
	for (type = MSG_NONE + 1; type < MSG_TYPE_NUM; type++)
		assert_in_range(msg_body_size(type), sizeof(struct msg_none),
				4096);
	assert_int_equal(msg_body_size(MSG_NONE), 0);
	assert_int_equal(msg_body_size(MSG_TYPE_NUM), 0);
	assert_int_equal(msg_body_size(UINT16_MAX), 0);
	assert_int_equal(msg_body_size(MSG_CONTROL_SANDBOX),
			 sizeof(struct msg_sandbox));
}

static void msg__every_truncation(void **state)
{
	struct span tail;
	uint16_t type;
	size_t len;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	for (type = MSG_NONE + 1; type < MSG_TYPE_NUM; type++) {
		for (len = 0; len < msg_body_size(type); len++)
			assert_null(msg_body(type, payload(len), &tail));
		assert_ptr_equal(msg_body(type, payload(len), &tail), bytes);
		assert_int_equal(tail.len, 0);
		assert_non_null(msg_body(type, payload(len + 7), &tail));
		assert_int_equal(tail.len, 7);
		assert_ptr_equal(tail.ptr, bytes + len);
	}
}

static void msg__tail_is_bounded(void **state)
{
	size_t size = msg_body_size(MSG_CONTROL_PUT);
	struct span tail;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	assert_non_null(
		msg_body(MSG_CONTROL_PUT, payload(size + MSG_TAIL_MAX), &tail));
	assert_null(msg_body(MSG_CONTROL_PUT, payload(size + MSG_TAIL_MAX + 1),
			     &tail));
	assert_null(msg_body(MSG_NONE, payload(64), &tail));
	assert_null(msg_body(UINT16_MAX, payload(64), &tail));
}

/* One row per string field of every type. */
static const struct {
	uint16_t type;
	size_t offset, size;
} strings[] = {
#define ROW(type, body, field)                            \
	{                                                 \
		type, offsetof(struct body, field),       \
			sizeof(((struct body *)0)->field) \
	}
	ROW(MSG_GATEWAY_SIGN, msg_sign, name),
	ROW(MSG_VAULT_SIGNED, msg_result, text),
	ROW(MSG_GATEWAY_LEASE, msg_credential, scope),
	ROW(MSG_GATEWAY_LEASE, msg_credential, name),
	ROW(MSG_VAULT_LEASE, msg_result, text),
	ROW(MSG_VAULT_CA, msg_result, text),
	ROW(MSG_CONTROL_BEGIN, msg_begin, scope),
	ROW(MSG_CONTROL_PUT, msg_record, scope),
	ROW(MSG_CONTROL_PUT, msg_record, name),
	ROW(MSG_CONTROL_REMOVE, msg_record, scope),
	ROW(MSG_CONTROL_REMOVE, msg_record, name),
	ROW(MSG_VAULT_RESULT, msg_result, text),
	ROW(MSG_CONTROL_READ, msg_read, scope),
	ROW(MSG_CONTROL_READ, msg_read, scope_after),
	ROW(MSG_CONTROL_READ, msg_read, name),
	ROW(MSG_VAULT_RECORD, msg_record, scope),
	ROW(MSG_VAULT_RECORD, msg_record, name),
	ROW(MSG_CONTROL_REVISION, msg_record, scope),
	ROW(MSG_CONTROL_REVISION, msg_record, name),
	ROW(MSG_CONTROL_POLICY, msg_policy, name),
	ROW(MSG_CONTROL_POLICY_DROP, msg_policy, name),
	ROW(MSG_CONTROL_SANDBOX, msg_sandbox, id),
	ROW(MSG_CONTROL_SANDBOX, msg_sandbox, iface),
	ROW(MSG_CONTROL_SANDBOX, msg_sandbox, port),
	ROW(MSG_CONTROL_SANDBOX_DROP, msg_sandbox, id),
	ROW(MSG_CONTROL_SANDBOX_DROP, msg_sandbox, iface),
	ROW(MSG_CONTROL_SANDBOX_DROP, msg_sandbox, port),
	ROW(MSG_CONTROL_BINDINGS, msg_scope, scope),
	ROW(MSG_CONTROL_NODE, msg_scope, scope),
	ROW(MSG_GATEWAY_SYNCED, msg_result, text),
	ROW(MSG_CONTROL_USAGE, msg_scope, scope),
	ROW(MSG_GATEWAY_USAGE, msg_result, text),
	ROW(MSG_GATEWAY_STATUS, msg_result, text),
	ROW(MSG_QUEUE_REVIEWED, msg_result, text),
	ROW(MSG_CONTROL_LOCK, msg_lock, id),
	ROW(MSG_CONTROL_LOCK, msg_lock, iface),
	ROW(MSG_CONTROL_LOCK, msg_lock, port),
	ROW(MSG_CONTROL_UNLOCK, msg_lock, id),
	ROW(MSG_CONTROL_UNLOCK, msg_lock, iface),
	ROW(MSG_CONTROL_UNLOCK, msg_lock, port),
	ROW(MSG_SUPERVISOR_LOCKED, msg_locked, device),
	ROW(MSG_SUPERVISOR_LOCKED, msg_locked, text),
	ROW(MSG_CONTROL_INGRESS, msg_ingress, id),
	ROW(MSG_CONTROL_INGRESS_DROP, msg_ingress, id),
	ROW(MSG_CONTROL_INGRESS_KEYS, msg_scope, scope),
	ROW(MSG_CONTROL_INGRESS_CLIENT, msg_ingress_client, id),
	ROW(MSG_GATEWAY_EGRESS_CLIENT, msg_ingress_client, id),
	ROW(MSG_GATEWAY_ACCESSED, msg_scope, scope),
	ROW(MSG_GATEWAY_DENIED, msg_denied, id),
	ROW(MSG_GATEWAY_DENIED, msg_denied, host),
	ROW(MSG_GATEWAY_DENIED, msg_denied, kind),
	ROW(MSG_GATEWAY_DENIED, msg_denied, text),
#undef ROW
};

static void msg__strings_end_inside(void **state)
{
	struct span tail;
	size_t i, size;

	(void)state;
	for (i = 0; i < ARRAY_LEN(strings); i++) {
		size = msg_body_size(strings[i].type);
		memset(bytes, 0, sizeof(bytes));
		memset(bytes + strings[i].offset, 'a', strings[i].size);
		assert_null(msg_body(strings[i].type, payload(size), &tail));
		/* the longest string that still ends */
		bytes[strings[i].offset + strings[i].size - 1] = '\0';
		assert_non_null(
			msg_body(strings[i].type, payload(size), &tail));
	}
}

/* Bodies full of ones: a type whose strings nobody listed would pass. */
static void msg__types_without_strings(void **state)
{
	size_t i, listed, passed = 0;
	struct span tail;
	uint16_t type;

	(void)state;
	memset(bytes, 'a', sizeof(bytes));
	for (type = MSG_NONE + 1; type < MSG_TYPE_NUM; type++) {
		for (listed = i = 0; i < ARRAY_LEN(strings); i++)
			listed += strings[i].type == type;
		assert_int_equal(msg_body(type, payload(msg_body_size(type)),
					  &tail) == NULL,
				 listed != 0);
		passed += !listed;
	}
	assert_in_range(passed, 1, MSG_TYPE_NUM);
}

static void msg__names(void **state)
{
	(void)state;
	assert_string_equal(role_name(ROLE_VAULT), "vault");
	assert_string_equal(role_name((enum role)99), "unknown");
	assert_string_equal(msg_type_name(MSG_ROLE_READY), "MSG_ROLE_READY");
	assert_string_equal(msg_type_name(MSG_TYPE_NUM), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(msg__sizes),
		cmocka_unit_test(msg__every_truncation),
		cmocka_unit_test(msg__tail_is_bounded),
		cmocka_unit_test(msg__strings_end_inside),
		cmocka_unit_test(msg__types_without_strings),
		cmocka_unit_test(msg__names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
