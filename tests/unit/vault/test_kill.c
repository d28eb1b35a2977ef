/* SPDX-License-Identifier: Apache-2.0 */
/* test_kill.c - a writer is killed 200 times; nothing it acknowledged is lost
 *
 * How it works: a child commits transaction after transaction and writes the
 * number of each one into a pipe when vault_commit() returned. After a random
 * time it gets SIGKILL. Then the store is opened: the last acknowledged
 * number, or the one that was in flight, must be the state of its scope, whole
 * (all records of the transaction agree), and nothing may be damaged.
 *
 * Most rounds run in memory, where a commit takes microseconds and the kill
 * hits every line; the rest run on the disk, with real waiting.
 */

#include "tests/unit/vault/fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "src/base/clock.h"

enum {
	ROUNDS_MEMORY = 150,
	ROUNDS_DISK = 50,
	ROUNDS_INIT = 400,
	SCOPES = 3,
	PAD_MAX = 12 * 1024,
	ROTATE_EVERY = 60,
};

/* xorshift64: reproducible when the seed is printed. */
static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static const char *scope_of(uint64_t n)
{
	static const char *const names[SCOPES] = { "", "box-1", "box-2" };

	return names[n % SCOPES];
}

/* -- the writer, in the child -------------------------------------------- */

/* Never returns; exits 1 when the vault refuses anything. */
static NORETURN void writer_die(const char *what)
{
	(void)fprintf(stderr, "writer: %s\n", what);
	_exit(1);
}

/* Transaction n: three records that tell n; "odd" is there when n is odd. */
static void writer_commit(struct vault *v, uint64_t n, uint64_t *seed)
{
	static char pad[PAD_MAX];
	struct span scope = span_str(scope_of(n));
	struct vault_item item;
	struct diag d = { 0 };
	struct vault_txn *t;
	char text[24];
	size_t len;
	int r;

	len = (size_t)snprintf(text, sizeof(text), "%llu",
			       (unsigned long long)n);
	memset(pad, 'p', sizeof(pad));
	memcpy(pad, text, len);
	r = vault_begin(v, scope, -1, &t, &d);
	if (!r)
		r = vault_put(t, VAULT_CREDENTIAL, SPAN("n"),
			      span_of(text, len), &d);
	if (!r)
		r = vault_put(t, VAULT_CREDENTIAL, SPAN("pad"),
			      span_of(pad, len + draw(seed) % (PAD_MAX - 24)),
			      &d);
	if (!r && n % 2)
		r = vault_put(t, VAULT_CREDENTIAL, SPAN("odd"),
			      span_of(text, len), &d);
	else if (!r && !vault_stat(v, scope, VAULT_CREDENTIAL, SPAN("odd"),
				   &item, &(struct diag){ 0 }))
		r = vault_remove(t, VAULT_CREDENTIAL, SPAN("odd"), &d);
	if (!r)
		r = vault_commit(t, NULL, &d);
	if (r)
		writer_die(d.msg);
}

static NORETURN void writer_run(const struct vault_options *o, uint64_t next,
				uint64_t seed, int out)
{
	struct vault *v = NULL;
	struct diag d = { 0 };

	if (vault_open(o, &v, &d))
		writer_die(d.msg);
	for (;; next++) {
		if (next % ROTATE_EVERY == 0 && vault_rotate_dek(v, &d))
			writer_die(d.msg);
		writer_commit(v, next, &seed);
		if (write(out, &next, sizeof(next)) != sizeof(next))
			writer_die("the pipe broke");
	}
}

/* -- the parent ---------------------------------------------------------- */

static void sleep_us(uint64_t us)
{
	const struct timespec t = { (time_t)(us / 1000000),
				    (long)(us % 1000000) * 1000 };

	(void)nanosleep(&t, NULL);
}

static void child_kill(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status)); /* it had not failed before */
}

/* The last number acknowledged, or `last` when there was none. */
static uint64_t acknowledged(int in, uint64_t last)
{
	uint64_t n;

	while (read(in, &n, sizeof(n)) == sizeof(n)) {
		assert_int_equal(n, last + 1);
		last = n;
	}
	return last;
}

/* The number that a record of a scope tells; 0: it is not there. */
static uint64_t number_of(struct fixture *f, const char *scope,
			  const char *name)
{
	struct secret *s = NULL;
	struct span text;
	uint64_t n = 0;
	int r;

	f->d = (struct diag){ 0 };
	r = vault_get(f->v, span_str(scope), VAULT_CREDENTIAL, span_str(name),
		      &s, NULL, &f->d);
	if (r == VAULT_E_NOT_FOUND)
		return 0;
	if (r)
		fail_msg("%s", f->d.msg);
	text = secret_open(s);
	text.len = span_find(text, 'p');
	assert_true(span_parse_u64(text, &n));
	secret_free(s);
	return n;
}

/* The newest number <= last of the scope that `n` belongs to. */
static uint64_t newest_of(uint64_t scope, uint64_t last)
{
	while (last && last % SCOPES != scope)
		last--;
	return last;
}

/* Returns the last committed number: `last`, or the one in flight. */
static uint64_t store_check(struct fixture *f, uint64_t last)
{
	struct vault_counts counts = { 0 };
	uint64_t scope, n, highest = last;
	const char *name;

	fixture_open(f);
	assert_int_equal(vault_verify(f->v, NULL, NULL, &counts), 0);
	assert_int_equal(counts.findings, 0);
	for (scope = 0; scope < SCOPES; scope++) {
		name = scope_of(scope);
		n = number_of(f, name, "n");
		if (n != last + 1)
			assert_int_equal(n, newest_of(scope, last));
		assert_int_equal(number_of(f, name, "pad"), n);
		assert_int_equal(number_of(f, name, "odd"), n % 2 ? n : 0);
		highest = MAX(highest, n);
	}
	fixture_close(f);
	return highest;
}

static uint64_t round_run(struct fixture *f, uint64_t last, uint64_t *seed,
			  uint64_t max_us)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[0]);
		writer_run(&f->options, last + 1, draw(seed), fds[1]);
	}
	close(fds[1]);
	sleep_us(draw(seed) % max_us);
	child_kill(pid);
	last = acknowledged(fds[0], last);
	close(fds[0]);
	return store_check(f, last);
}

static void rounds_run(struct fixture *f, unsigned rounds, uint64_t max_us)
{
	uint64_t seed = clock_us() | 1, last = 0;
	unsigned i;

	print_message("seed %llu\n", (unsigned long long)seed);
	f->options.map_bytes = 1; /* the smallest: growing is killed too */
	assert_int_equal(vault_init(&f->options, &f->d), 0);
	for (i = 0; i < rounds; i++)
		last = round_run(f, last, &seed, max_us);
	print_message("%u kills, %llu transactions\n", rounds,
		      (unsigned long long)last);
	assert_true(last > rounds / 4);
}

static void kill__loses_nothing_in_memory(void **state)
{
	rounds_run(*state, ROUNDS_MEMORY, 20 * 1000);
}

static void kill__loses_nothing_on_the_disk(void **state)
{
	rounds_run(*state, ROUNDS_DISK, 120 * 1000);
}

/* Killed while it is made: either there is no vault and init may run again, or
 * there is one. */
static void kill__init_may_be_repeated(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = clock_us() | 1;
	struct vault *v = NULL;
	struct diag d;
	char path[96];
	pid_t pid;
	int i, r;

	for (i = 0; i < ROUNDS_INIT; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			if (vault_init(&f->options, &f->d))
				writer_die(f->d.msg);
			for (;;)
				pause();
		}
		sleep_us(draw(&seed) % 3000);
		child_kill(pid);
		d = (struct diag){ 0 };
		r = vault_open(&f->options, &v, &d);
		if (r == VAULT_E_ABSENT) {
			d = (struct diag){ 0 };
			r = vault_init(&f->options, &d);
			if (!r)
				r = vault_open(&f->options, &v, &d);
		}
		if (r)
			fail_msg("%s", d.msg);
		v = vault_close(v);
		(void)snprintf(path, sizeof(path), "%s/vault", f->dir);
		assert_int_equal(
			nftw(path, path_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
	}
}

/* What a kill in the first write of a new data file leaves (4096 of its 8192
 * bytes were seen) is in nobody's way. */
static void kill__half_a_data_file(void **state)
{
	struct fixture *f = *state;
	struct vault *v = NULL;
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/vault", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s.new", f->data);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(vault_open(&f->options, &v, &f->d), VAULT_E_ABSENT);
	assert_int_equal(vault_init(&f->options, &f->d), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(vault_open(&f->options, &v, &f->d), 0);
	vault_close(v);
}

/* As files_setup(), but on the disk. */
static int disk_setup(void **state)
{
	struct fixture *f;
	char dir[] = "/tmp/sallyport-kill-XXXXXX";

	if (files_setup(state) || !mkdtemp(dir))
		return -1;
	f = *state;
	(void)snprintf(f->dir, sizeof(f->dir), "%s", dir);
	(void)snprintf(f->data, sizeof(f->data), "%s/vault/data.mdb", dir);
	return 0;
}

static int disk_teardown(void **state)
{
	struct fixture *f = *state;
	char memory[96];
	int r;

	/* the key file stayed where files_setup() put it */
	(void)snprintf(memory, sizeof(memory), "%.*s",
		       (int)(strlen(f->key_file) - strlen("/key")),
		       f->key_file);
	r = nftw(memory, path_remove, 8, FTW_DEPTH | FTW_PHYS);
	return vault_teardown(state) || r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kill__loses_nothing_in_memory,
						files_setup, vault_teardown),
		cmocka_unit_test_setup_teardown(kill__loses_nothing_on_the_disk,
						disk_setup, disk_teardown),
		cmocka_unit_test_setup_teardown(kill__half_a_data_file,
						files_setup, vault_teardown),
		cmocka_unit_test_setup_teardown(kill__init_may_be_repeated,
						files_setup, vault_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
