/* SPDX-License-Identifier: Apache-2.0 */
/* test_heap.c - a thread's heap shrinks without opening a file */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/heap.h"

enum { BLOCKS = 64, BLOCK_BYTES = 1024 * 1024 };

/* From now on openat(2) is the end. */
static void forbid_openat(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void *swell(void *ctx)
{
	void *blocks[BLOCKS];

	(void)ctx;
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = must_alloc(BLOCK_BYTES);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return NULL;
}

static void heap__shrinks_without_a_file(void **state)
{
	pthread_t threads[4];
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		heap_settle(ARRAY_LEN(threads));
		forbid_openat();
		for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
			must(!pthread_create(&threads[i], NULL, swell, NULL));
		for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
			must(!pthread_join(threads[i], NULL));
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap__shrinks_without_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
