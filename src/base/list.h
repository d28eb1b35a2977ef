/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - intrusive doubly linked list; the list does not own its members */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/attrib.h"

struct list {
	struct list *prev, *next; /* an unlinked member points to itself */
};

#define LIST_INIT(name)          \
	{                        \
		&(name), &(name) \
	}

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}

static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_remove(struct list *member)
{
	member->prev->next = member->next;
	member->next->prev = member->prev;
	list_init(member);
}

/* Links member (initialised, unlinked) right behind `after`. */
static inline void list_insert(struct list *after, struct list *member)
{
	member->prev = after;
	member->next = after->next;
	after->next->prev = member;
	after->next = member;
}

static inline void list_push(struct list *head, struct list *member)
{
	list_insert(head->prev, member);
}

static inline void list_push_front(struct list *head, struct list *member)
{
	list_insert(head, member);
}

#define list_first(head, type, member) \
	(list_is_empty(head) ? NULL : container_of((head)->next, type, member))
#define list_last(head, type, member) \
	(list_is_empty(head) ? NULL : container_of((head)->prev, type, member))
/* `it` may be unlinked or freed in the body. */
#define list_for_each(it, head)                                     \
	for (struct list *it = (head)->next, *it##_next = it->next; \
	     it != (head); it = it##_next, it##_next = it->next)
