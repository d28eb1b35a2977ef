/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - settle what malloc would otherwise ask the system for later
 *
 * A role that may open no files must not be killed because the allocator
 * opens one: glibc reads /proc/sys/vm/overcommit_memory when the heap of a
 * thread first shrinks, and counts processors when it has many arenas.
 */
#pragma once

/* Before the role is confined, and before it has threads. threads: how many
 * will allocate. */
void heap_settle(unsigned threads);

/* For a process that is to stay small: a block of a MiB goes back to the kernel
 * when it is freed. By itself glibc learns from one that such come and go, and
 * keeps up to 64 MiB. At any time. */
void heap_keep_little(void);

/* Gives the kernel all pages that are free, those amid the heaps too. Costs a
 * walk over what is free: for when nothing else is to be done. Any thread. */
void heap_trim(void);
