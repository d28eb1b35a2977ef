/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c - bodies of POST /v1/isolated/session, and what of the
 * environment a session sees (folders: tests/scenes/execd/test_isolated.py)
 */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/execd/isolated/plan.h"
#include "src/execd/process/env.h"
#include "src/text/json.h"

static const char *const nothing[] = { NULL };
static const char *const tmp[] = { "/missing", "/tmp", NULL };

static int read_text(const char *text, const char *const *allowed,
		     struct plan *p, struct diag *d)
{
	struct json *j CLEANUP_JSON = NULL;

	*d = (struct diag){ 0 };
	assert_int_equal(json_parse(span_str(text), &j, NULL), 0);
	return plan_read(j, allowed, p, d);
}

static void read__defaults(void **state)
{
	struct diag d;
	struct plan p;

	(void)state;
	assert_int_equal(read_text("{\"workspace\":{\"path\":\"/tmp\"},"
				   "\"profile\":null,\"uid\":null,\"x\":1}",
				   nothing, &p, &d),
			 0);
	assert_int_equal(p.profile, PLAN_STRICT);
	assert_int_equal(p.mode, PLAN_OVERLAY);
	assert_int_equal(p.user, PLAN_SETPRIV);
	assert_int_equal(p.env, PLAN_ENV_DENY);
	assert_true(p.share_net);
	assert_false(p.has_uid || p.has_gid);
	assert_int_equal(p.idle_s, 0);
	assert_string_equal(p.workspace, "/tmp");
	plan_fini(&p);
}

static void read__a_gid_follows_the_uid(void **state)
{
	struct diag d;
	struct plan p;

	(void)state;
	assert_int_equal(read_text("{\"workspace\":{\"path\":\"/tmp\"},"
				   "\"uid\":7}",
				   nothing, &p, &d),
			 0);
	assert_true(p.has_uid && p.uid == 7 && p.gid == 7);
	plan_fini(&p);
}

static void read__binds_lie_in_what_is_allowed(void **state)
{
	static const char body[] =
		"{\"workspace\":{\"path\":\"/tmp\"},"
		"\"binds\":[{\"source\":\"/tmp/../tmp\",\"dest\":\"/mnt\","
		"\"readonly\":true}],\"extra_writable\":[\"/tmp\"]}";
	struct diag d;
	struct plan p;

	(void)state;
	assert_int_equal(read_text(body, tmp, &p, &d), 0);
	assert_int_equal(p.bind_count, 2);
	assert_true(p.binds[0].is_extra && !p.binds[0].read_only);
	assert_string_equal(p.binds[1].source, "/tmp");
	assert_string_equal(p.binds[1].dest, "/mnt");
	assert_true(p.binds[1].read_only);
	plan_fini(&p);
	assert_int_equal(read_text(body, nothing, &p, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "allowlist"));
	plan_fini(&p);
}

static void read__too_many_binds(void **state)
{
	struct buf b = BUF_INIT(1 << 16);
	struct diag d;
	struct plan p;
	unsigned i;

	(void)state;
	assert_int_equal(buf_put_str(&b, "{\"workspace\":{\"path\":\"/tmp\"},"
					 "\"extra_writable\":[\"/tmp\""),
			 0);
	for (i = 0; i < PLAN_BINDS_MAX; i++)
		assert_int_equal(buf_put_str(&b, ",\"/tmp\""), 0);
	assert_int_equal(buf_put(&b, span_of("]}", 3)), 0);
	assert_int_equal(read_text(buf_peek(&b).ptr, tmp, &p, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "more than 32"));
	plan_fini(&p);
	buf_fini(&b);
}

static void parse__keys_are_names(void **state)
{
	struct json *j CLEANUP_JSON = NULL;
	struct diag d = { 0 };
	struct plan p;

	(void)state;
	assert_int_equal(json_parse(SPAN("{\"workspace\":{\"path\":\"/none\"},"
					 "\"env_passthrough\":{\"keys\":"
					 "[\"GH_TOKEN\\u0000x\"]}}"),
				    &j, NULL),
			 0);
	assert_int_equal(plan_parse(j, &p, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "keys"));
	plan_fini(&p);
}

static void name__globs_have_one_star_at_an_end(void **state)
{
	(void)state;
	assert_true(plan_name_fits(SPAN("MY_API_KEY"), SPAN("*_API_KEY")));
	assert_true(plan_name_fits(SPAN("my_api_key"), SPAN("*_API_KEY")));
	assert_false(plan_name_fits(SPAN("MY_API_KEYS"), SPAN("*_API_KEY")));
	assert_true(plan_name_fits(SPAN("AWS_"), SPAN("AWS_*")));
	assert_false(plan_name_fits(SPAN("AWS"), SPAN("AWS_*")));
	assert_true(plan_name_fits(SPAN("A"), SPAN("a")));
	assert_false(plan_name_fits(SPAN("AB"), SPAN("a")));
}

static struct env *env_of_four(void)
{
	struct env *env = env_new_empty();

	assert_int_equal(env_set(env, SPAN("PATH"), SPAN("/bin")), 0);
	assert_int_equal(env_set(env, SPAN("GH_TOKEN"), SPAN("s")), 0);
	assert_int_equal(env_set(env, SPAN("AWS_KEY"), SPAN("s")), 0);
	assert_int_equal(env_set(env, SPAN("HOME"), SPAN("/")), 0);
	return env;
}

static unsigned left_by(struct plan *p)
{
	struct env *env = env_of_four();
	unsigned mask = 0;

	plan_env(p, env);
	mask |= env_get(env, "PATH") ? 1 : 0;
	mask |= env_get(env, "GH_TOKEN") ? 2 : 0;
	mask |= env_get(env, "AWS_KEY") ? 4 : 0;
	mask |= env_get(env, "HOME") ? 8 : 0;
	(void)env_free(env);
	return mask;
}

static void env__lists_and_what_is_secret_by_its_name(void **state)
{
	char home[] = "HOME", token[] = "GH_TOKEN";
	struct plan p = { 0 };

	(void)state;
	assert_int_equal(left_by(&p), 1 | 8);
	p.env = PLAN_ENV_ALLOW;
	assert_int_equal(left_by(&p), 0);
	p.keys[p.key_count++] = home;
	p.keys[p.key_count++] = token;
	assert_int_equal(left_by(&p), 2 | 8);
	p.env = PLAN_ENV_DENY;
	assert_int_equal(left_by(&p), 1 | 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__defaults),
		cmocka_unit_test(read__a_gid_follows_the_uid),
		cmocka_unit_test(read__binds_lie_in_what_is_allowed),
		cmocka_unit_test(read__too_many_binds),
		cmocka_unit_test(parse__keys_are_names),
		cmocka_unit_test(name__globs_have_one_star_at_an_end),
		cmocka_unit_test(env__lists_and_what_is_secret_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
