/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingress_access.c - who may go to which port, and how often one may be
 * wrong about a signature */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <openssl/sha.h>
#include <string.h>

#include "gateway/ingress/ingress_access.h"
#include "gateway/ingress/ingress_box.h"
#include "gateway/ingress/ingress_route.h"
#include "src/base/diag.h"
#include "src/wire/h1.h"

/* the vector of test_signed_route.c */
#define ID	"3f0c1a52-8a4e-4a43-9d0c-6b8c6b1a2f10"
#define SIGNED	"/" ID "/8080/vf7lds/eb8c2217a/x"
#define FORGED	"/" ID "/8080/vf7lds/eb8c2218a/x"
#define NOW_S	1890000000u
#define EXPIRED 1900000001u
#define KEYS	"a=MDEyMzQ1Njc4OWFiY2RlZg==\n"

static struct ingress_box *box;
static struct ingress_keys *keys;
static struct ingress_times at;
static struct ingress_refusal no;
static struct ingress_route route;

static void hash(const char *text, uint8_t dst[MSG_HASH_SIZE])
{
	(void)SHA256((const unsigned char *)text, strlen(text), dst);
}

static void box_make(bool execd, bool secured)
{
	struct msg_ingress msg = { .id = ID,
				   .addr_count = 1,
				   .has_execd_token = execd,
				   .is_secured = secured,
				   .renews = 1 };

	hash("execd", msg.execd_token);
	hash("secure", msg.secure_token);
	(void)ingress_box_unref(box);
	box = ingress_box_new(&msg);
	at = (struct ingress_times){ .now_ms = 1000000, .wall_s = NOW_S };
}

/* 0: it may. */
static unsigned check(const char *target, const char *line)
{
	static struct h1_request head;
	static char text[1024];

	(void)snprintf(text, sizeof(text),
		       "GET %s HTTP/1.1\r\nHost: gw\r\n%s\r\n", target, line);
	assert_int_equal(h1_parse_request(span_str(text), &head), H1_OK);
	assert_int_equal(ingress_route_parse(&head, &route), INGRESS_OK);
	no.status = 0;
	return ingress_access_check(box, keys, &route, &head, &at, &no)
		       ? 0
		       : no.status;
}

static void access__open_ports(void **state)
{
	(void)state;
	box_make(false, false);
	assert_int_equal(check("/" ID "/8080/x", ""), 0);
	assert_int_equal(check("/" ID "/44772/x", ""), 0);
	assert_int_equal(check("/" ID "/18080/x", ""), 0);
	/* what looks like a signature is the client's path */
	assert_int_equal(check(FORGED, ""), 0);
	assert_true(span_eq(route.path, SPAN("/vf7lds/eb8c2218a/x")));
	assert_true(span_eq(route.prefix, SPAN("/" ID "/8080")));
	assert_null(route.signature.ptr);
}

static void access__execd(void **state)
{
	(void)state;
	box_make(true, true);
	assert_int_equal(check("/" ID "/44772/", ""), 401);
	assert_int_equal(
		check("/" ID "/44772/", "X-Execd-Access-Token: exec\r\n"), 401);
	assert_int_equal(check("/" ID "/44772/", "X-Execd-Access-Token:\r\n"),
			 401);
	assert_int_equal(
		check("/" ID "/44772/", "X-Execd-Access-Token: execd\r\n"), 0);
	/* control asks for its own */
	assert_int_equal(check("/" ID "/18080/", ""), 0);
}

static void access__secured(void **state)
{
	(void)state;
	box_make(true, true);
	assert_int_equal(check("/" ID "/8080/", ""), 401);
	assert_int_equal(
		check("/" ID "/8080/", "OpenSandbox-Secure-Access: secure\r\n"),
		0);
	/* the header counts alone when it is there */
	assert_int_equal(check(SIGNED, "OpenSandbox-Secure-Access: x\r\n"),
			 401);
	assert_int_equal(
		check("/" ID "/8080/", "X-Execd-Access-Token: execd\r\n"), 401);
}

static void access__signatures(void **state)
{
	(void)state;
	box_make(false, true);
	assert_int_equal(check(SIGNED, ""), 0);
	assert_true(span_eq(route.path, SPAN("/x")));
	assert_int_equal(check(FORGED, ""), 401);
	at.wall_s = EXPIRED;
	assert_int_equal(check(SIGNED, ""), 401);
	at.wall_s = NOW_S;
	/* another port */
	assert_int_equal(check("/" ID "/8081/vf7lds/eb8c2217a/x", ""), 401);
	keys = NULL;
	assert_int_equal(check(SIGNED, ""), 503);
}

static void access__failures_are_counted(void **state)
{
	unsigned i;

	(void)state;
	box_make(false, true);
	for (i = 0; i < INGRESS_FAILURES_AT_ONCE; i++)
		assert_int_equal(check(FORGED, ""), 401);
	assert_int_equal(check(FORGED, ""), 429);
	assert_in_range(no.wait_ms, 1, INGRESS_FAILURE_MS + 1);
	/* right ones too: a wrong one must not be told from them */
	assert_int_equal(check(SIGNED, ""), 429);
	assert_int_equal(
		check("/" ID "/8080/", "OpenSandbox-Secure-Access: secure\r\n"),
		0);
	/* and one more each time */
	at.now_ms += INGRESS_FAILURE_MS - 1;
	assert_int_equal(check(SIGNED, ""), 429);
	assert_int_equal(no.wait_ms, 1);
	at.now_ms++;
	assert_int_equal(check(SIGNED, ""), 0);
	assert_int_equal(check(FORGED, ""), 401);
	assert_int_equal(check(FORGED, ""), 429);
	at.now_ms +=
		(uint64_t)INGRESS_FAILURE_MS * (INGRESS_FAILURES_AT_ONCE + 1);
	for (i = 0; i < INGRESS_FAILURES_AT_ONCE; i++)
		assert_int_equal(check(FORGED, ""), 401);
	assert_int_equal(check(FORGED, ""), 429);
}

static void box__accesses_are_told_once_a_minute(void **state)
{
	(void)state;
	box_make(false, false);
	assert_true(ingress_box_accessed(box, 5));
	assert_false(ingress_box_accessed(box, 6));
	assert_false(ingress_box_accessed(box, 5 + INGRESS_TOLD_MS - 1));
	assert_true(ingress_box_accessed(box, 5 + INGRESS_TOLD_MS));
	box->msg.renews = 0;
	assert_false(ingress_box_accessed(box, 1000000000));
}

/* Whatever else of its record changes. */
static void box__one_that_takes_its_place_goes_on_counting(void **state)
{
	struct ingress_box *former;
	unsigned i;

	(void)state;
	box_make(false, true);
	assert_true(ingress_box_accessed(box, 5));
	for (i = 0; i < INGRESS_FAILURES_AT_ONCE; i++)
		assert_int_equal(check(FORGED, ""), 401);
	former = box;
	box = ingress_box_new(&former->msg);
	ingress_box_follow(box, former);
	assert_false(ingress_box_accessed(box, 6));
	assert_int_equal(check(FORGED, ""), 429);
	/* each worker does it, and none sets the clocks back */
	assert_true(ingress_box_accessed(box, 5 + INGRESS_TOLD_MS));
	ingress_box_follow(box, former);
	assert_false(ingress_box_accessed(box, 6 + INGRESS_TOLD_MS));
	ingress_box_unref(former);
}

static int setup(void **state)
{
	struct diag d = { 0 };

	(void)state;
	return ingress_keys_new(SPAN(KEYS), &keys, &d);
}

static int teardown(void **state)
{
	(void)state;
	keys = ingress_keys_unref(keys);
	box = ingress_box_unref(box);
	return 0;
}

/* Drops the keys by itself. */
static int setup_kept(void **state)
{
	int r = setup(state);

	*state = keys;
	return r;
}

static int teardown_kept(void **state)
{
	keys = *state;
	return teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(access__open_ports, setup,
						teardown),
		cmocka_unit_test_setup_teardown(access__execd, setup, teardown),
		cmocka_unit_test_setup_teardown(access__secured, setup,
						teardown),
		cmocka_unit_test_setup_teardown(access__signatures, setup_kept,
						teardown_kept),
		cmocka_unit_test_setup_teardown(access__failures_are_counted,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			box__accesses_are_told_once_a_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(
			box__one_that_takes_its_place_goes_on_counting, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
