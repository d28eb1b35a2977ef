/* SPDX-License-Identifier: Apache-2.0 */
/* test_runtime_lost.c - vault, gateway and Docker go away amid the life of a
 * sandbox: what was answered for holds, what was refused has left nothing
 */

#include "src/control/docker/docker.h"
#include "src/control/lifecycle/network.h"
#include "tests/unit/control/runtime_rig.h"

enum { COMMITS_MOST = 32 };

/* image; volume, helper, files; container, start, inspect */
enum { LOOK = 7 };

static struct box *the_box(struct rig *rig)
{
	return boxes_find(&rig->control->lifecycle->boxes, span_str(engine.id));
}

static void create(struct rig *rig)
{
	char text[4096];

	if (call(rig, "POST", "/v1/sandboxes", BODY, text) != 202)
		fail_msg("expected 202, found %s", text);
	assert_non_null(the_box(rig));
}

/* "/v1/sandboxes/{id}" and what follows. */
static const char *path_of(const char *more)
{
	static char path[128];

	snprintf(path, sizeof(path), "/v1/sandboxes/%s%s", engine.id, more);
	return path;
}

/* The vault stores the n-th commit from now and is gone before it says so;
 * another one is there a moment later. False: there was no such commit. */
static bool lose_commit(struct rig *rig, unsigned n, int fd, char text[4096],
			unsigned *status)
{
	const unsigned first = rig->vault.commits;

	*status = 0;
	while (rig->vault.commits < first + n - 1 && !*status) {
		rig_turn(rig);
		*status = status_of(fd, text);
	}
	if (*status)
		return false;
	rig->vault.mute = true;
	RIG_UNTIL(rig, rig->vault.commits >= first + n || *status ||
			       (*status = status_of(fd, text)));
	rig->vault.mute = false;
	if (rig->vault.commits < first + n)
		return false;
	rig_vault_down(rig);
	rig_turns(rig, 20);
	rig_vault_up(rig);
	return true;
}

static void removals__survive_a_vault_that_goes_away(void **state)
{
	struct rig *rig = *state;
	struct addr v4, v6;
	unsigned n, status;
	char text[4096];
	int fd;

	for (n = 1; n < COMMITS_MOST; n++) {
		create(rig);
		v4 = the_box(rig)->v4;
		v6 = the_box(rig)->v6;
		fd = ask("DELETE", path_of(""), "");
		if (!lose_commit(rig, n, fd, text, &status))
			break;
		RIG_UNTIL(rig, status || (status = status_of(fd, text)));
		close(fd);
		assert_int_equal(status, 204);
		RIG_UNTIL(rig, nothing_is_left(rig));
		/* given back: not taken, though still at rest */
		assert_int_equal(network_claim(rig->control->lifecycle->network,
					       &v4, &v6),
				 0);
	}
	close(fd);
	/* mark, registration, policy, record */
	assert_in_range(n, 5, COMMITS_MOST - 1);
	assert_int_equal(status, 204);
}

static void creations__that_a_vault_cuts_short_leave_nothing(void **state)
{
	struct rig *rig = *state;
	unsigned n, status;
	char text[4096];
	int fd;

	for (n = 1; n < COMMITS_MOST; n++) {
		fd = ask("POST", "/v1/sandboxes", BODY);
		if (!lose_commit(rig, n, fd, text, &status))
			break;
		RIG_UNTIL(rig, status || (status = status_of(fd, text)));
		close(fd);
		assert_int_equal(status, 503);
		assert_non_null(strstr(text, "DOCKER::SANDBOX_START_FAILED"));
		assert_true(nothing_is_left(rig)); /* when it is answered */
	}
	close(fd);
	/* record, policy, registration, container, port, running */
	assert_in_range(n, 7, COMMITS_MOST - 1);
	assert_int_equal(status, 202);
}

/* libcurl asks again when a connection that had served before breaks. */
static bool may_be_retried(int how)
{
	return how == HOW_RESET || how == HOW_MID_HEAD || how == HOW_DONE;
}

/* Docker goes at each request of a creation, in every way: that is no fault of
 * the sandbox, and what was begun is not forgotten. */
static void creations__need_a_docker_that_stays(void **state)
{
	struct rig *rig = *state;
	unsigned n, status = 0, lost = 0;
	struct lifecycle *l;
	char text[4096];
	int how;

	for (how = HOW_REFUSED; how < HOW_NUM; how++) {
		l = rig->control->lifecycle;
		docker_set_silence(l->docker, how == HOW_SILENT ? 200 : 5000);
		for (n = how == HOW_KILLING ? LOOK : 1; n < STEPS_MOST; n++) {
			RIG_UNTIL(rig, is_connected(rig) && engine_tells() &&
					       nothing_is_left(rig));
			kit_forget(&l->runtime->kit);
			engine_reset();
			engine.spares_removals = true; /* of the one before */
			engine.fail_at = n;
			engine.how = (enum how)how;
			status = call(rig, "POST", "/v1/sandboxes", BODY, text);
			engine_let_go();
			engine_close(false);
			engine.fail_at = 0;
			if (engine.requests < n) { /* it was made before */
				if (status != 202)
					fail_msg("way %d, request %u: %s", how,
						 n, text);
				break;
			}
			if (how >= HOW_NUM_ALIVE && status != 503 &&
			    (!may_be_retried(how) || status != 202))
				fail_msg("way %d, request %u: %s", how, n,
					 text);
			lost += how >= HOW_NUM_ALIVE && status == 503;
			if (status == 202) { /* the image was pulled */
				assert_true(how == HOW_UNKNOWN ||
					    may_be_retried(how));
				assert_in_range(n, 1,
						how == HOW_UNKNOWN ? 1 : LOOK);
				assert_int_equal(call(rig, "DELETE",
						      path_of(""), "", text),
						 204);
			} else {
				assert_true(status >= 500);
				assert_non_null(strstr(text, "\"DOCKER::"));
			}
			/* what could not be removed is tried again */
			timer_start(&l->runtime->expiry, 0);
		}
		assert_int_equal(status, 202);
		assert_int_equal(call(rig, "DELETE", path_of(""), "", text),
				 204);
		RIG_UNTIL(rig, nothing_is_left(rig));
		/* whose addresses do not rest */
		role_stop(rig);
		role_start(rig);
	}
	/* dying, replaced, mid body, silent, gone; killing; done at creation */
	assert_in_range(lost, 5 * LOOK + 1 + 1,
			LOOK * (HOW_NUM - HOW_NUM_ALIVE));
}

/* Who is cut off is gone already; the next gateway hears nothing of it. */
static void removals__need_no_gateway(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	create(rig);
	rig_gateway_down(rig);
	rig_turns(rig, 20);
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
	rig_gateway_up(rig);
	RIG_UNTIL(rig, nothing_is_left(rig));
}

static void creations__need_a_gateway(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	rig_gateway_down(rig);
	rig_turns(rig, 20);
	assert_int_equal(call(rig, "POST", "/v1/sandboxes", BODY, text), 503);
	rig_gateway_up(rig);
	RIG_UNTIL(rig, nothing_is_left(rig));
}

/* Events end while the containers are being listed. */
static void runtime__is_ready_only_while_it_is_told_of_events(void **state)
{
	struct rig *rig = *state;
	struct runtime *r = rig->control->lifecycle->runtime;
	unsigned i;

	pthread_mutex_lock(&engine.lock);
	engine.tells_nothing = engine.holds_list = true;
	shutdown(engine.events_fd, SHUT_RDWR);
	pthread_mutex_unlock(&engine.lock);
	RIG_UNTIL(rig, !r->is_ready && !r->events);
	for (i = 0; i < 3; i++) {
		RIG_UNTIL(rig, engine_holds() && !r->events);
		pthread_mutex_lock(&engine.lock);
		engine.holds_list = false;
		pthread_cond_broadcast(&engine.released);
		pthread_mutex_unlock(&engine.lock);
		RIG_UNTIL(rig, !r->is_connecting);
		assert_false(r->is_ready);
		pthread_mutex_lock(&engine.lock);
		engine.holds_list = i < 2;
		engine.tells_nothing = i < 2;
		pthread_mutex_unlock(&engine.lock);
	}
	RIG_UNTIL(rig, r->is_ready);
	assert_non_null(r->events);
}

/* The daemon's list says "running", and is had after the sandbox was paused. */
static void reconciliation__does_not_believe_an_old_list(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	create(rig);
	pthread_mutex_lock(&engine.lock);
	engine.holds_list = true;
	pthread_mutex_unlock(&engine.lock);
	runtime_start(rig->control->lifecycle);
	RIG_UNTIL(rig, engine_holds());
	assert_int_equal(call(rig, "POST", path_of("/pause"), "", text), 202);
	/* and was read again meanwhile */
	rig_vault_down(rig);
	RIG_UNTIL(rig, !rig->control->loaded);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->control->loaded);
	pthread_mutex_lock(&engine.lock);
	engine.holds_list = false;
	pthread_cond_broadcast(&engine.released);
	pthread_mutex_unlock(&engine.lock);
	RIG_UNTIL(rig, !rig->control->lifecycle->runtime->is_connecting);
	rig_turns(rig, 50);
	assert_int_equal(the_box(rig)->state, BOX_PAUSED);
	/* it is looked at again */
	pthread_mutex_lock(&engine.lock);
	engine.is_paused = false;
	pthread_mutex_unlock(&engine.lock);
	RIG_UNTIL(rig, the_box(rig)->state == BOX_RUNNING);
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
}

/* What could not be looked at is not gone. */
static void removals__leave_no_volume(void **state)
{
	static const char body[] =
		"{\"image\":{\"uri\":\"i:1\"},\"entrypoint\":[\"x\"],"
		"\"resourceLimits\":{},\"volumes\":[{\"name\":\"v\","
		"\"mountPath\":\"/v\",\"pvc\":{\"claimName\":\"vol\","
		"\"deleteOnSandboxTermination\":true}}]}";
	struct rig *rig = *state;
	char text[4096];

	assert_int_equal(call(rig, "POST", "/v1/sandboxes", body, text), 202);
	assert_true(engine.has_volume);
	engine.volumes_fail = true;
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 500);
	assert_non_null(strstr(text, "volume"));
	assert_non_null(the_box(rig));
	engine.volumes_fail = false;
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
	assert_false(engine.has_volume);
	assert_true(nothing_is_left(rig));
}

/* Docker has paused it, and the record does not know. */
static void pausing__may_be_asked_again(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	create(rig);
	engine.is_paused = true;
	assert_int_equal(call(rig, "POST", path_of("/pause"), "", text), 202);
	assert_int_equal(the_box(rig)->state, BOX_PAUSED);
	engine.is_paused = false;
	assert_int_equal(call(rig, "POST", path_of("/resume"), "", text), 202);
	assert_int_equal(the_box(rig)->state, BOX_RUNNING);
	/* it has ended, and nobody has told of it */
	engine.has_ended = true;
	assert_int_equal(call(rig, "POST", path_of("/pause"), "", text), 409);
	assert_non_null(strstr(text, "\"DOCKER::SANDBOX_NOT_RUNNING\""));
	engine.has_ended = false;
	/* what Docker could not do stays refused */
	engine.fail_at = engine.requests + 1;
	assert_int_equal(call(rig, "POST", path_of("/pause"), "", text), 500);
	assert_non_null(strstr(text, "injected"));
	assert_int_equal(the_box(rig)->state, BOX_RUNNING);
	engine.fail_at = 0;
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
}

/* Of a container: what happened, and one more attribute, or "". */
static void engine_tell(const char *action, const char *attribute)
{
	char event[512], chunk[600];
	int len;

	len = snprintf(event, sizeof(event),
		       "{\"Action\":\"%s\",\"Actor\":{\"ID\":\"%s\","
		       "\"Attributes\":{\"opensandbox.io/id\":\"%s\"%s}}}\n",
		       action, engine.container, engine.id, attribute);
	len = snprintf(chunk, sizeof(chunk), "%x\r\n%s\r\n", (unsigned)len,
		       event);
	assert_int_equal(
		send(engine.events_fd, chunk, (size_t)len, MSG_NOSIGNAL), len);
}

/* A daemon that was asked by an earlier life, and does it only now. */
static void reconciliation__sees_what_is_done_late(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	create(rig);
	assert_int_equal(call(rig, "POST", path_of("/pause"), "", text), 202);
	assert_int_equal(the_box(rig)->state, BOX_PAUSED);
	engine.is_paused = false;
	engine_tell("unpause", "");
	RIG_UNTIL(rig, the_box(rig)->state == BOX_RUNNING);
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
}

static const struct capture *the_capture(struct rig *rig)
{
	size_t cursor = 0;

	return map_next(&rig->control->lifecycle->captures.by_id, &cursor,
			NULL);
}

/* A snapshot that an earlier life had asked for gets its image when its removal
 * has looked for that already, and the record is not gone yet. */
static void snapshots__leave_no_image_that_is_done_late(void **state)
{
	struct rig *rig = *state;
	char text[4096], path[128], image[128];
	unsigned commits, status = 0;
	int fd;

	create(rig); /* and Docker knows no commit */
	assert_int_equal(call(rig, "POST", path_of("/snapshots"), "{}", text),
			 202);
	RIG_UNTIL(rig, the_capture(rig)->state == CAPTURE_FAILED);
	snprintf(path, sizeof(path), "/v1/snapshots/%s", the_capture(rig)->id);
	snprintf(image, sizeof(image),
		 ",\"imageRef\":\"opensandbox-snapshots:%s\"",
		 the_capture(rig)->id);
	engine.images_removed = 0;
	commits = rig->vault.commits;
	fd = ask("DELETE", path, "");
	RIG_UNTIL(rig, rig->vault.commits > commits);
	rig->vault.hold = true;
	RIG_UNTIL(rig, rig->vault.held);
	assert_int_equal(engine.images_removed, 1);
	engine_tell("commit", image);
	RIG_UNTIL(rig, engine.images_removed == 2);
	rig->vault.hold = false;
	fake_vault_go_on(&rig->vault);
	RIG_UNTIL(rig, status || (status = status_of(fd, text)));
	close(fd);
	assert_int_equal(status, 204);
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
	RIG_UNTIL(rig, nothing_is_left(rig));
}

static bool is_labelled(struct rig *rig, const char *value)
{
	const struct sandbox *s =
		sandboxes_find(&rig->control->sandboxes, span_str(engine.id));

	return s && s->label_count == 1 &&
	       span_eq(s->labels[0].value, span_str(value));
}

/* The vault is lost between the record's change and the registry's. */
static void metadata__are_labels_whatever_is_lost(void **state)
{
	struct rig *rig = *state;
	unsigned n, status;
	char text[4096];
	int fd;

	create(rig);
	for (n = 1; n <= 2; n++) {
		snprintf(text, sizeof(text), "{\"turn\":\"%u\"}", n);
		fd = ask("PATCH", path_of("/metadata"), text);
		assert_true(lose_commit(rig, n, fd, text, &status));
		RIG_UNTIL(rig, status || (status = status_of(fd, text)));
		close(fd);
		assert_int_equal(status, 503);
		RIG_UNTIL(rig, is_labelled(rig, n == 1 ? "1" : "2"));
		assert_string_equal(
			map_find(&the_box(rig)->metadata, SPAN("turn")),
			n == 1 ? "1" : "2");
	}
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
}

/* On a node on which something always changes, too. */
static void expiry__looks_however_much_changes(void **state)
{
	struct rig *rig = *state;
	struct runtime *r = rig->control->lifecycle->runtime;
	char text[4096];
	uint64_t due;
	unsigned i;

	create(rig);
	rig_turns(rig, 20);
	due = r->expiry_ms;
	assert_int_not_equal(due, 0);
	for (i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "{\"a\":\"%u\"}", i);
		assert_int_equal(
			call(rig, "PATCH", path_of("/metadata"), text, text),
			200);
		usleep(10000);
	}
	assert_int_equal(r->expiry_ms, due);
	pthread_mutex_lock(&engine.lock);
	engine.fail_at = engine.requests + 1;
	pthread_mutex_unlock(&engine.lock);
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 500);
	assert_in_range(r->expiry_ms, clock_ms(), clock_ms() + 30 * 1000);
	engine.fail_at = 0;
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 204);
}

/* A creation that could not even be marked as ending, for want of a vault. */
static void expiry__ends_what_was_left_half_made(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	create(rig);
	the_box(rig)->state = BOX_PENDING;
	/* as if the time had come */
	timer_start(&rig->control->lifecycle->runtime->expiry, 0);
	RIG_UNTIL(rig, nothing_is_left(rig));
	assert_int_equal(call(rig, "DELETE", path_of(""), "", text), 404);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			removals__survive_a_vault_that_goes_away, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			creations__that_a_vault_cuts_short_leave_nothing,
			set_up, rig_tear_down),
		cmocka_unit_test_setup_teardown(
			creations__need_a_docker_that_stays, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(removals__need_no_gateway,
						set_up, rig_tear_down),
		cmocka_unit_test_setup_teardown(creations__need_a_gateway,
						set_up, rig_tear_down),
		cmocka_unit_test_setup_teardown(
			runtime__is_ready_only_while_it_is_told_of_events,
			set_up, rig_tear_down),
		cmocka_unit_test_setup_teardown(
			reconciliation__does_not_believe_an_old_list, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(removals__leave_no_volume,
						set_up, rig_tear_down),
		cmocka_unit_test_setup_teardown(
			reconciliation__sees_what_is_done_late, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			snapshots__leave_no_image_that_is_done_late, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(pausing__may_be_asked_again,
						set_up, rig_tear_down),
		cmocka_unit_test_setup_teardown(
			metadata__are_labels_whatever_is_lost, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			expiry__looks_however_much_changes, set_up,
			rig_tear_down),
		cmocka_unit_test_setup_teardown(
			expiry__ends_what_was_left_half_made, set_up,
			rig_tear_down),
	};

	if (geteuid() != 0)
		return SKIPPED;
	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
