/* SPDX-License-Identifier: Apache-2.0 */
/* test_list.c - order, unlinking, and walking while members leave */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "src/base/list.h"

struct item {
	int number;
	struct list link;
};

static void list__order(void **state)
{
	struct list head = LIST_INIT(head);
	struct item items[4];
	int i, expected = 0;

	(void)state;
	assert_true(list_is_empty(&head));
	assert_null(list_first(&head, struct item, link));
	assert_null(list_last(&head, struct item, link));
	for (i = 0; i < 4; i++) {
		items[i].number = i;
		list_init(&items[i].link);
	}
	list_push(&head, &items[2].link);
	list_push_front(&head, &items[0].link);
	list_push(&head, &items[3].link);
	list_insert(&items[0].link, &items[1].link);
	assert_false(list_is_empty(&head));
	assert_ptr_equal(list_first(&head, struct item, link), &items[0]);
	assert_ptr_equal(list_last(&head, struct item, link), &items[3]);
	list_for_each(it, &head) assert_int_equal(
		container_of(it, struct item, link)->number, expected++);
	assert_int_equal(expected, 4);

	list_remove(&items[1].link);
	assert_true(list_is_empty(&items[1].link));
	list_remove(&items[1].link); /* again: nothing happens */
	assert_ptr_equal(items[0].link.next, &items[2].link);
	assert_ptr_equal(items[2].link.prev, &items[0].link);
}

static void list__members_may_be_freed_in_a_walk(void **state)
{
	struct list head = LIST_INIT(head);
	struct item *item;
	int i, count = 0;

	(void)state;
	for (i = 0; i < 100; i++) {
		item = malloc(sizeof(*item));
		assert_non_null(item);
		item->number = i;
		list_init(&item->link);
		list_push(&head, &item->link);
	}
	list_for_each(it, &head)
	{
		item = container_of(it, struct item, link);
		assert_int_equal(item->number, count++);
		list_remove(it);
		free(item);
	}
	assert_int_equal(count, 100);
	assert_true(list_is_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list__order),
		cmocka_unit_test(list__members_may_be_freed_in_a_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
