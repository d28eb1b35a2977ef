/* SPDX-License-Identifier: Apache-2.0 */
/* test_netlink.c - questions, answers, announcements and attributes
 *
 * A pair of sockets stands for the kernel: what it will say is put there before
 * it is asked, since it answers inside send() as well.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/role/netlink.h"

enum { BODY = 4, MESSAGE = 0x55 };

struct rig {
	int ours, kernel;
	struct buf said; /* by the kernel, one datagram */
};

static int set_up(void **state)
{
	struct rig *r = must_alloc(sizeof(*r));
	int fds[2];

	must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	r->ours = fds[0];
	r->kernel = fds[1];
	buf_init(&r->said, 1 << 20);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	(void)fd_close(r->ours);
	(void)fd_close(r->kernel);
	buf_fini(&r->said);
	free(r);
	return 0;
}

static void put(struct rig *r, uint16_t type, const void *body, size_t len)
{
	const struct nlmsghdr head = {
		.nlmsg_len = (uint32_t)NLMSG_LENGTH(len),
		.nlmsg_type = type,
	};
	static const char zeros[NLMSG_ALIGNTO];

	must(!buf_put(&r->said, span_of(&head, sizeof(head))));
	must(!buf_put(&r->said, span_of(body, len)));
	must(!buf_put(&r->said, span_of(zeros, NLMSG_ALIGN(len) - len)));
}

static void put_number(struct rig *r, uint16_t type, int number)
{
	put(r, type, &number, sizeof(number));
}

static void put_error(struct rig *r, int error)
{
	const struct nlmsgerr e = { .error = error };

	put(r, NLMSG_ERROR, &e, sizeof(e));
}

/* The datagram is on its way. */
static void say(struct rig *r)
{
	struct span s = buf_peek(&r->said);

	assert_int_equal(send(r->kernel, s.ptr, s.len, 0), s.len);
	buf_clear(&r->said);
}

/* Adds up what messages say; the number 100 is enough. */
static bool on_number(void *ctx, const struct nlmsghdr *m)
{
	int number;

	assert_int_equal(m->nlmsg_type, MESSAGE);
	memcpy(&number, NLMSG_DATA(m), sizeof(number));
	*(int *)ctx += number;
	return number == 100;
}

static const struct nlmsghdr question = { .nlmsg_len = sizeof(question),
					  .nlmsg_flags = NLM_F_REQUEST };
static const struct nlmsghdr dump = { .nlmsg_len = sizeof(dump),
				      .nlmsg_flags =
					      NLM_F_REQUEST | NLM_F_DUMP };
/* has a flag in common with dumps */
static const struct nlmsghdr request = { .nlmsg_len = sizeof(request),
					 .nlmsg_flags = NLM_F_REQUEST |
							NLM_F_ACK |
							NLM_F_EXCL };

static void netlink__reads_one_answer(void **state)
{
	struct rig *r = *state;
	int sum = 0;

	put_number(r, MESSAGE, 1);
	put_number(r, MESSAGE, 2); /* nobody asked */
	say(r);
	assert_int_equal(netlink_ask(r->ours, &question, on_number, &sum), 0);
	assert_int_equal(sum, 1);
}

static void netlink__reads_a_dump_to_its_end(void **state)
{
	struct rig *r = *state;
	int sum = 0;

	put_number(r, MESSAGE, 1);
	put_number(r, MESSAGE, 2);
	say(r);
	put_number(r, MESSAGE, 4);
	put_number(r, NLMSG_DONE, 0);
	put_number(r, MESSAGE, 8);
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 0);
	assert_int_equal(sum, 7);
}

static void netlink__ends_a_dump_when_told(void **state)
{
	struct rig *r = *state;
	int sum = 0;

	put_number(r, MESSAGE, 100);
	put_number(r, MESSAGE, 1);
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 0);
	assert_int_equal(sum, 100);
}

static void on_anew(void *ctx)
{
	*(int *)ctx = 0;
}

/* The kernel says with it that the list is of more than one moment. */
static void put_interrupted(struct rig *r, uint16_t type, int number)
{
	size_t at = buf_len(&r->said);
	struct nlmsghdr head;
	char *where;

	put_number(r, type, number);
	where = (char *)(uintptr_t)buf_peek(&r->said).ptr + at;
	memcpy(&head, where, sizeof(head));
	head.nlmsg_flags |= NLM_F_DUMP_INTR;
	memcpy(where, &head, sizeof(head));
}

static void netlink__asks_again_for_a_list_that_changed(void **state)
{
	struct rig *r = *state;
	int sum = 0;

	put_number(r, MESSAGE, 1);
	put_interrupted(r, MESSAGE, 2);
	say(r);
	put_number(r, MESSAGE, 4);
	put_number(r, NLMSG_DONE, 0);
	say(r);
	put_number(r, MESSAGE, 8);
	say(r);
	put_interrupted(r, NLMSG_DONE, 0); /* between the last two */
	say(r);
	put_number(r, MESSAGE, 16);
	put_number(r, NLMSG_DONE, 0);
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, on_anew, &sum),
			 0);
	assert_int_equal(sum, 16);

	/* who does not mind gets all of it */
	put_interrupted(r, MESSAGE, 1);
	put_number(r, NLMSG_DONE, 0);
	say(r);
	put_number(r, MESSAGE, 2);
	put_number(r, NLMSG_DONE, 0);
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 0);
	assert_int_equal(sum, 19);
}

/* Not for ever. */
static void netlink__gives_a_list_up_that_changes_each_time(void **state)
{
	struct rig *r = *state;
	int sum = 0, i;

	for (i = 0; i < 8; i++) {
		put_interrupted(r, NLMSG_DONE, 0);
		say(r);
	}
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EAGAIN);
}

static void netlink__passes_errors_on(void **state)
{
	struct rig *r = *state;
	int sum = 0;

	put_error(r, -ENODEV);
	say(r);
	assert_int_equal(netlink_ask(r->ours, &question, on_number, &sum),
			 -ENODEV);
	put_number(r, MESSAGE, 1);
	put_error(r, -EPERM);
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EPERM);
	put_number(r, NLMSG_DONE, -EINTR); /* a dump that broke off */
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EINTR);
	put(r, NLMSG_ERROR, "", 0);
	say(r);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EPROTO);
	assert_int_equal(sum, 1);
}

static void netlink__refuses_what_is_no_message(void **state)
{
	struct rig *r = *state;
	struct nlmsghdr short_one = { .nlmsg_len = 5, .nlmsg_type = MESSAGE };
	struct nlmsghdr long_one = { .nlmsg_len = 500, .nlmsg_type = MESSAGE };
	int sum = 0;

	assert_int_equal(send(r->kernel, &short_one, sizeof(short_one), 0),
			 sizeof(short_one));
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EPROTO);
	assert_int_equal(send(r->kernel, &long_one, sizeof(long_one), 0),
			 sizeof(long_one));
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EPROTO);
	assert_int_equal(send(r->kernel, "", 0, 0), 0);
	assert_int_equal(netlink_list(r->ours, &dump, on_number, NULL, &sum),
			 -EPROTO);
	assert_int_equal(sum, 0);
}

static void netlink__does_a_request(void **state)
{
	struct rig *r = *state;

	put_error(r, 0);
	say(r);
	assert_int_equal(netlink_do(r->ours, &request), 0);
	put_error(r, -EEXIST);
	say(r);
	assert_int_equal(netlink_do(r->ours, &request), -EEXIST);
	put_number(r, MESSAGE, 1);
	say(r);
	assert_int_equal(netlink_do(r->ours, &request), -EPROTO);
}

static void netlink__hears_news(void **state)
{
	struct rig *r = *state;
	int sum = 0;

	put_number(r, MESSAGE, 1);
	put_number(r, MESSAGE, 100);
	put_number(r, MESSAGE, 2); /* behind what was enough */
	say(r);
	assert_int_equal(netlink_news_read(r->ours, on_number, &sum), 0);
	assert_int_equal(sum, 101);
	must(!setsockopt(r->ours, SOL_SOCKET, SO_RCVTIMEO,
			 &(struct timeval){ .tv_usec = 1000 },
			 sizeof(struct timeval)));
	assert_int_equal(netlink_news_read(r->ours, on_number, &sum), -EAGAIN);
	assert_int_equal(sum, 101);
}

static bool on_link(void *ctx, const struct nlmsghdr *m)
{
	struct span name;

	assert_int_equal(m->nlmsg_type, RTM_NEWLINK);
	assert_true(netlink_attr_str(netlink_attrs(m, sizeof(struct ifinfomsg)),
				     IFLA_IFNAME, &name));
	*(bool *)ctx |= span_eq(name, SPAN("lo"));
	return false;
}

/* Nothing of this needs a privilege. */
static void netlink__speaks_with_the_kernel(void **state)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
	} q = { .head = { .nlmsg_len = sizeof(q),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	bool found = false;
	CLEANUP_FD int fd = netlink_open(NETLINK_ROUTE);
	CLEANUP_FD int news = netlink_news_open(NETLINK_ROUTE, RTNLGRP_LINK);

	(void)state;
	assert_true(fd >= 0 && news >= 0);
	assert_int_equal(netlink_list(fd, &q.head, on_link, NULL, &found), 0);
	assert_true(found);
	q.head.nlmsg_flags = NLM_F_REQUEST;
	q.body.ifi_index = INT32_MAX;
	assert_int_equal(netlink_ask(fd, &q.head, on_link, &found), -ENODEV);
	assert_int_equal(netlink_open(31), -EPROTONOSUPPORT);
}

/* -- attributes ----------------------------------------------------------- */

/* "one", a number, "on\0e", three bytes, a nested "in", "one" again */
static const char attributes[] = "\x08\0\x01\0one\0"
				 "\x08\0\x02\0\x78\x56\x34\x12"
				 "\x09\0\x03\0on\0e\0\0\0\0"
				 "\x07\0\x04\0abc\0"
				 "\x0c\0\x05\x80\x07\0\x01\0in\0\0"
				 "\x08\0\x01\0two\0";

static void netlink__finds_attributes(void **state)
{
	struct span all = span_of(attributes, sizeof(attributes) - 1), s;
	uint32_t number = 0;

	(void)state;
	assert_true(netlink_attr_str(all, 1, &s) && span_eq(s, SPAN("one")));
	assert_true(netlink_attr_u32(all, 2, &number));
	assert_memory_equal(&number, "\x78\x56\x34\x12", 4);
	assert_true(netlink_attr(all, 3, &s) && s.len == 5);
	assert_false(netlink_attr_str(all, 3, &s));
	assert_true(netlink_attr(all, 4, &s) && span_eq(s, SPAN("abc")));
	assert_false(netlink_attr_str(all, 4, &s));
	assert_false(netlink_attr_u32(all, 4, &number));
	assert_true(netlink_attr(all, 5, &s)); /* NLA_F_NESTED is no type */
	assert_true(netlink_attr_str(s, 1, &s) && span_eq(s, SPAN("in")));
	assert_false(netlink_attr(all, 6, &s));
	assert_false(netlink_attr(SPAN_NONE, 1, &s));
}

/* Cut anywhere, what is found is whole, and the bytes behind the end are not
 * looked at (the copy has none). */
static void netlink__stops_at_the_end(void **state)
{
	struct span found;
	unsigned type;
	size_t len;
	char *copy;

	(void)state;
	for (len = 0; len < sizeof(attributes); len++) {
		copy = must_alloc(len ? len : 1);
		memcpy(copy, attributes, len);
		for (type = 0; type < 8; type++)
			if (netlink_attr(span_of(copy, len), type, &found))
				assert_true(found.ptr + found.len <=
					    copy + len);
		free(copy);
	}
	assert_false(netlink_attr(SPAN("\3\0\1\0one\0"), 1, &found));
	assert_false(netlink_attr(SPAN("\0\0\2\0\x08\0\1\0one\0"), 1, &found));
	assert_false(netlink_attr(SPAN("\x09\0\1\0one\0"), 1, &found));
}

static void netlink__skips_the_body(void **state)
{
	struct {
		struct nlmsghdr head;
		char bytes[16];
	} m = { .head = { .nlmsg_len = NLMSG_LENGTH(16) } };
	struct span s;

	(void)state;
	s = netlink_attrs(&m.head, 6); /* padded to 8 */
	assert_ptr_equal(s.ptr, m.bytes + 8);
	assert_int_equal(s.len, 8);
	assert_int_equal(netlink_attrs(&m.head, 16).len, 0);
	assert_int_equal(netlink_attrs(&m.head, 17).len, 0);
	m.head.nlmsg_len = NLMSG_LENGTH(3);
	assert_int_equal(netlink_attrs(&m.head, BODY).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(netlink__reads_one_answer,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			netlink__reads_a_dump_to_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(netlink__ends_a_dump_when_told,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			netlink__asks_again_for_a_list_that_changed, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			netlink__gives_a_list_up_that_changes_each_time, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(netlink__passes_errors_on,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			netlink__refuses_what_is_no_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(netlink__does_a_request, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(netlink__hears_news, set_up,
						tear_down),
		cmocka_unit_test(netlink__speaks_with_the_kernel),
		cmocka_unit_test(netlink__finds_attributes),
		cmocka_unit_test(netlink__stops_at_the_end),
		cmocka_unit_test(netlink__skips_the_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
