/* SPDX-License-Identifier: Apache-2.0 */
/* test_runtime.c - a creation that fails at each of its requests to Docker, or
 * whose process ends there, leaves nothing
 */

#include "tests/unit/control/runtime_rig.h"

/* -- cases ---------------------------------------------------------------- */

static void creations__that_fail_anywhere_leave_nothing(void **state)
{
	struct rig *rig = *state;
	char text[4096], path[128];
	unsigned n, status = 0;

	log_set_level(LOG_ERROR);
	for (n = 1; n < STEPS_MOST; n++) {
		engine_reset();
		engine.fail_at = n;
		kit_forget(&rig->control->lifecycle->runtime->kit);
		status = call(rig, "POST", "/v1/sandboxes", BODY, text);
		if (status == 202)
			break;
		assert_true(status >= 500);
		assert_non_null(strstr(text, "injected")
					? strstr(text, "DOCKER::")
					: strstr(text, "execd"));
		RIG_UNTIL(rig, nothing_is_left(rig));
	}
	/* image; volume, helper, files; container, start, inspect */
	assert_int_equal(n, 8);
	assert_int_equal(map_count(&rig->control->lifecycle->boxes.by_id), 1);
	assert_string_equal(rig->locks[0].port, "vt0");
	assert_int_equal(rig->locks[0].awaits_port, 0);
	assert_null(strstr(api(rig, "GET", "/v1/sandboxes", NULL)->body,
			   "lockNote"));
	engine.fail_at = 0;
	snprintf(path, sizeof(path), "/v1/sandboxes/%s", engine.id);
	assert_int_equal(call(rig, "DELETE", path, "", text), 204);
	assert_true(nothing_is_left(rig));
	/* each had an address, and none is lost: they are at rest */
	assert_int_equal(engine.removed, 1);
}

/* Another user than root needs a folder that is open to it; root costs nothing.
 */
static void creations__place_a_folder_for_other_users(void **state)
{
	static const char *const of_root[] = { "", "0", "root", "0:0",
					       "root:users" };
	static const char *const others[] = { "1000", "user", "user:root", "00",
					      "rooty" };
	struct rig *rig = *state;
	char text[4096], path[128];
	unsigned i;

	for (i = 0; i < ARRAY_LEN(of_root) + ARRAY_LEN(others); i++) {
		engine_reset();
		engine.user = i < ARRAY_LEN(of_root)
				      ? of_root[i]
				      : others[i - ARRAY_LEN(of_root)];
		assert_int_equal(call(rig, "POST", "/v1/sandboxes", BODY, text),
				 202);
		assert_int_equal(engine.placed, i >= ARRAY_LEN(of_root));
		snprintf(path, sizeof(path), "/v1/sandboxes/%s", engine.id);
		assert_int_equal(call(rig, "DELETE", path, "", text), 204);
	}
	/* image, container, place */
	engine_reset();
	engine.user = "1000";
	engine.fail_at = 3;
	assert_int_equal(call(rig, "POST", "/v1/sandboxes", BODY, text), 500);
	assert_non_null(
		strstr(text, "DOCKER::SANDBOX_EXECD_DISTRIBUTION_FAILED"));
	RIG_UNTIL(rig, nothing_is_left(rig));
}

/* Docker from 26.0 on says so when it starts the container, and with 500. */
static void sub_paths__that_docker_refuses_are_the_clients(void **state)
{
	static const char *const said[] = {
		"path concatenation escapes the base directory, base: /v",
		"cannot access path /v/s: lstat /v/s: no such file",
		"error while resolving symlinks in combined path /v/s",
		"openat2 s: too many levels of symbolic links",
		"anything else",
	};
	static const char body[] =
		"{\"image\":{\"uri\":\"i:1\"},\"entrypoint\":[\"x\"],"
		"\"resourceLimits\":{},\"volumes\":[{\"name\":\"v\","
		"\"mountPath\":\"/v\",%s\"pvc\":{\"claimName\":\"vol\","
		"\"deleteOnSandboxTermination\":true}}]}";
	struct rig *rig = *state;
	char text[4096], request[1024];
	bool is_fault;
	unsigned i;

	role_stop(rig);
	engine.version = "1.45";
	role_start(rig);
	for (i = 0; i < 2 * ARRAY_LEN(said); i++) {
		RIG_UNTIL(rig, nothing_is_left(rig));
		kit_forget(&rig->control->lifecycle->runtime->kit);
		engine_reset();
		engine.spares_removals = true;
		/* image; volume; volume, helper, files; container, start */
		engine.fail_at = 7;
		engine.says = said[i / 2];
		is_fault = i % 2 && i / 2 < ARRAY_LEN(said) - 1;
		snprintf(request, sizeof(request), body,
			 i % 2 ? "\"subPath\":\"s\"," : "");
		assert_int_equal(
			call(rig, "POST", "/v1/sandboxes", request, text),
			is_fault ? 400 : 500);
		assert_non_null(
			strstr(text, is_fault ? "\"VOLUME::INVALID_SUB_PATH\""
					      : said[i / 2]));
	}
	engine.version = NULL;
}

/* The daemon does what it was asked for, after the process has gone. */
static void creations__cut_short_anywhere_leave_nothing(void **state)
{
	struct rig *rig = *state;
	char text[4096];
	unsigned n, status;
	int fd;

	for (n = 1; n < STEPS_MOST; n++) {
		engine_reset();
		engine.hold_at = n;
		fd = ask("POST", "/v1/sandboxes", BODY);
		status = 0;
		RIG_UNTIL(rig, engine_holds() || status ||
				       (status = status_of(fd, text)));
		if (status)
			break;
		role_stop(rig);
		close(fd);
		engine_let_go();
		role_start(rig);
		RIG_UNTIL(rig, nothing_is_left(rig));
	}
	close(fd);
	assert_int_equal(n, 8);
	assert_int_equal(status, 202);
	/* one that was answered for outlives its maker */
	role_stop(rig);
	role_start(rig);
	rig_turns(rig, 50);
	assert_int_equal(map_count(&rig->control->lifecycle->boxes.by_id), 1);
	assert_int_equal(engine.removed, 0);
	engine.has_container = false;
}

/* Pruned while no sandbox ran: made anew, by whoever is first. */
static void creations__make_the_network_again(void **state)
{
	struct rig *rig = *state;
	char text[4096], path[128];
	unsigned i;

	for (i = 0; i < 2; i++) {
		RIG_UNTIL(rig, nothing_is_left(rig));
		pthread_mutex_lock(&engine.lock);
		engine.network[0] = '\0';
		engine.network_races = i;
		pthread_mutex_unlock(&engine.lock);
		if (call(rig, "POST", "/v1/sandboxes", BODY, text) != 202)
			fail_msg("%u: %s", i, text);
		assert_non_null(strstr(engine.network, "\"sp-docker0\""));
		snprintf(path, sizeof(path), "/v1/sandboxes/%s", engine.id);
		assert_int_equal(call(rig, "DELETE", path, "", text), 204);
	}
	engine.network_races = false;
}

/* Docker starts it and has not said so: the bridge is not its own, the port not
 * known. */
static void creations__await_their_port(void **state)
{
	const struct msg_lock *lock;
	struct rig *rig = *state;
	int fd;

	engine_reset();
	engine.hold_at = 6; /* the start, as above */
	fd = ask("POST", "/v1/sandboxes", BODY);
	RIG_UNTIL(rig, engine_holds());
	lock = fake_lock(rig, engine.id);
	assert_non_null(lock);
	assert_string_equal(lock->iface, CONFIG_BRIDGE);
	assert_string_equal(lock->port, "");
	assert_int_equal(lock->awaits_port, 1);
	assert_call(api(rig, "GET", "/v1/sandboxes", NULL), 200,
		    "\"lockedAt\":null,\"lockNote\":\"its port of the bridge");
	role_stop(rig);
	close(fd);
	engine_let_go();
	role_start(rig);
	RIG_UNTIL(rig, nothing_is_left(rig));
	rig_turns(rig, 50); /* the gateway's answers arrive */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			creations__that_fail_anywhere_leave_nothing, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			sub_paths__that_docker_refuses_are_the_clients, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			creations__cut_short_anywhere_leave_nothing, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			creations__place_a_folder_for_other_users, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			creations__make_the_network_again, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(creations__await_their_port,
						set_up, rig_tear_down),
	};

	if (geteuid() != 0)
		return SKIPPED;
	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
