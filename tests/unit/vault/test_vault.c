/* SPDX-License-Identifier: Apache-2.0 */
/* test_vault.c - what goes in comes out: records, revisions, limits, leases */

#include "tests/unit/vault/fixture.h"

#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/span.h"

static void vault__gives_back_what_was_put(void **state)
{
	struct fixture *f = *state;

	put(f, "", "github", "s3cret-value");
	put(f, "box-1", "github", "another");
	assert_int_equal(get(f, "", "github", "s3cret-value"), 0);
	assert_int_equal(get(f, "box-1", "github", "another"), 0);
	assert_int_equal(get(f, "box-2", "github", ""), VAULT_E_NOT_FOUND);
	assert_said(f, "there is no credential \"github\" of sandbox "
		       "\"box-2\"");

	fixture_close(f);
	fixture_open(f);
	assert_int_equal(get(f, "", "github", "s3cret-value"), 0);
	assert_int_equal(get(f, "box-1", "github", "another"), 0);
}

/* KiB of the data file that count as our memory. */
static unsigned mapped(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned kib = 0, of_it;
	bool ours = false;
	char line[512];

	must(f);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "data.mdb")) {
			ours = true;
		} else if (ours && sscanf(line, "Rss: %u kB", &of_it) == 1) {
			kib += of_it;
			ours = false;
		}
	}
	(void)fclose(f);
	return kib;
}

/* What was written was read as well, and stays mapped until it rests. */
static void vault__gives_back_what_it_mapped(void **state)
{
	struct fixture *f = *state;
	char name[16];
	unsigned i;

	for (i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "name-%u", i);
		put(f, "", name, "a value that takes its room");
	}
	assert_true(mapped() > 64);
	vault_rest(f->v);
	assert_true(mapped() <= 64);
	assert_int_equal(get(f, "", "name-7", "a value that takes its room"),
			 0);
	put(f, "", "name-7", "another");
	assert_int_equal(get(f, "", "name-7", "another"), 0);
}

static void vault__counts_revisions_per_scope(void **state)
{
	struct fixture *f = *state;
	struct vault_item item;
	struct vault_txn *t;
	uint64_t revision;

	assert_int_equal(vault_revision(f->v, SPAN("a")), 0);
	assert_int_equal(vault_begin(f->v, SPAN("a"), 0, &t, &f->d), 0);
	assert_int_equal(vault_commit(t, &revision, &f->d), 0);
	assert_int_equal(revision, 1); /* an empty commit counts too */
	put(f, "a", "x", "1");
	put(f, "a", "y", "1");
	put(f, "b", "x", "1");
	assert_int_equal(vault_revision(f->v, SPAN("a")), 3);
	assert_int_equal(vault_revision(f->v, SPAN("b")), 1);

	fixture_close(f);
	fixture_open(f);
	assert_int_equal(vault_revision(f->v, SPAN("a")), 3);
	assert_int_equal(vault_stat(f->v, SPAN("a"), VAULT_CREDENTIAL,
				    SPAN("x"), &item, &f->d),
			 0);
	assert_int_equal(item.revision, 2);
}

static void vault__refuses_an_unexpected_revision(void **state)
{
	struct fixture *f = *state;
	struct vault_txn *t;

	put(f, "a", "x", "1");
	assert_int_equal(vault_begin(f->v, SPAN("a"), 7, &t, &f->d), 0);
	assert_int_equal(
		vault_put(t, VAULT_CREDENTIAL, SPAN("x"), SPAN("2"), &f->d), 0);
	assert_int_equal(vault_commit(t, NULL, &f->d), VAULT_E_CONFLICT);
	assert_said(f, "expectedRevision 7 does not match current revision 1");
	assert_int_equal(get(f, "a", "x", "1"), 0);
	assert_int_equal(vault_revision(f->v, SPAN("a")), 1);
}

static void vault__commits_all_or_nothing(void **state)
{
	struct fixture *f = *state;
	struct vault_txn *t;
	uint64_t revision;

	put(f, "", "a", "1");
	assert_int_equal(vault_begin(f->v, SPAN(""), -1, &t, &f->d), 0);
	assert_int_equal(
		vault_put(t, VAULT_CREDENTIAL, SPAN("b"), SPAN("2"), &f->d), 0);
	assert_int_equal(
		vault_remove(t, VAULT_CREDENTIAL, SPAN("nothing"), &f->d), 0);
	assert_int_equal(vault_commit(t, NULL, &f->d), VAULT_E_NOT_FOUND);
	assert_said(f, "there is no credential \"nothing\" of the node");
	assert_int_equal(get(f, "", "b", ""), VAULT_E_NOT_FOUND);

	f->d = (struct diag){ 0 };
	assert_int_equal(vault_begin(f->v, SPAN(""), -1, &t, &f->d), 0);
	assert_int_equal(
		vault_put(t, VAULT_CREDENTIAL, SPAN("b"), SPAN("2"), &f->d), 0);
	assert_int_equal(
		vault_put(t, VAULT_CREDENTIAL, SPAN("b"), SPAN("3"), &f->d), 0);
	assert_int_equal(vault_remove(t, VAULT_CREDENTIAL, SPAN("a"), &f->d),
			 0);
	assert_int_equal(vault_commit(t, &revision, &f->d), 0);
	assert_int_equal(revision, 2);
	assert_int_equal(get(f, "", "a", ""), VAULT_E_NOT_FOUND);
	assert_int_equal(get(f, "", "b", "3"), 0);
}

static void vault__forgets_a_removed_scope(void **state)
{
	struct fixture *f = *state;
	struct vault_txn *t;
	uint64_t revision = 9;

	put(f, "a", "x", "1");
	put(f, "a", "y", "1");
	put(f, "ab", "x", "1");
	assert_int_equal(vault_begin(f->v, SPAN("a"), 2, &t, &f->d), 0);
	assert_int_equal(vault_remove_scope(t, &f->d), 0);
	assert_int_equal(
		vault_put(t, VAULT_CREDENTIAL, SPAN("z"), SPAN("1"), &f->d),
		VAULT_E_REFUSED);
	assert_int_equal(vault_commit(t, &revision, &f->d), 0);
	assert_int_equal(revision, 0);
	assert_int_equal(get(f, "a", "x", ""), VAULT_E_NOT_FOUND);
	assert_int_equal(get(f, "ab", "x", "1"), 0);

	fixture_close(f);
	fixture_open(f);
	assert_int_equal(vault_revision(f->v, SPAN("a")), 0);
	put(f, "a", "x", "2");
	assert_int_equal(vault_revision(f->v, SPAN("a")), 1);
}

static void vault__walks_in_key_order(void **state)
{
	static const char *const places[][2] = {
		{ "", "b" }, { "b", "x" }, { "a", "z" },
		{ "", "a" }, { "a", "a" }, { "aa", "q" },
	};
	static const char expected[] = "/a /b a/a a/z aa/q b/x ";
	struct span scope = SPAN(""), after = SPAN("");
	struct fixture *f = *state;
	struct vault_item item;
	char seen[128] = "";
	size_t i, at = 0;

	for (i = 0; i < ARRAY_LEN(places); i++) {
		put(f, places[i][0], places[i][1], "v");
		assert_int_equal(change_one(f, places[i][0], VAULT_POLICY,
					    "noise", SPAN("{}")),
				 0);
	}
	while (!vault_next_any(f->v, scope, VAULT_CREDENTIAL, after, &item)) {
		at += (size_t)snprintf(seen + at, sizeof(seen) - at,
				       "%.*s/%.*s ", SPAN_FMT(item.scope),
				       SPAN_FMT(item.name));
		scope = item.scope;
		after = item.name;
	}
	assert_string_equal(seen, expected);

	assert_int_equal(
		vault_next(f->v, SPAN("a"), VAULT_CREDENTIAL, SPAN("b"), &item),
		0);
	assert_true(span_eq(item.name, SPAN("z")));
	assert_int_equal(
		vault_next(f->v, SPAN("a"), VAULT_CREDENTIAL, SPAN("z"), &item),
		VAULT_E_NOT_FOUND);
	assert_int_equal(vault_next(f->v, SPAN("a"), VAULT_CREDENTIAL,
				    SPAN("\n"), &item),
			 VAULT_E_NOT_FOUND);
}

static void vault__refuses_bad_values(void **state)
{
	static char big[VAULT_VALUE_MAX + 1];
	static const struct {
		struct span value;
		const char *said;
	} cases[] = {
		{ SPAN_INIT(""), "is empty" },
		{ SPAN_INIT("topsecret\n"), "line feed" },
		{ SPAN_INIT("top\rsecret"), "carriage return" },
		{ SPAN_INIT("top\0secret"), "NUL" },
		{ { big, VAULT_CREDENTIAL_MAX + 1 }, "at most 32768" },
	};
	struct fixture *f = *state;
	size_t i;

	memset(big, 'x', sizeof(big));
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, "x",
					    cases[i].value),
				 VAULT_E_REFUSED);
		assert_said(f, cases[i].said);
		assert_null(strstr(f->d.msg, "secret"));
	}
	assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, "x",
				    span_of(big, VAULT_CREDENTIAL_MAX)),
			 0);
	assert_int_equal(change_one(f, "", VAULT_POLICY, "x",
				    span_of(big, VAULT_VALUE_MAX)),
			 0);
	assert_int_equal(
		change_one(f, "", VAULT_POLICY, "x", span_of(big, sizeof(big))),
		VAULT_E_REFUSED);
	assert_int_equal(change_one(f, "", VAULT_POLICY, "x", SPAN("")), 0);
}

static void vault__refuses_bad_names(void **state)
{
	struct fixture *f = *state;
	char name[257];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, name, SPAN("v")),
			 VAULT_E_REFUSED);
	name[255] = '\0';
	put(f, "", name, "v");
	assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, "", SPAN("v")),
			 VAULT_E_REFUSED);
	assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, "a\nb", SPAN("v")),
			 VAULT_E_REFUSED);
	assert_int_equal(change_one(f, name, VAULT_CREDENTIAL, "x", SPAN("v")),
			 VAULT_E_REFUSED);
	name[250] = '\0';
	put(f, name, name, "v");
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(get(f, name, name, "v"), 0);
}

static int lease(struct fixture *f, const char *scope, const char *name)
{
	struct secret *s = NULL;
	int r;

	f->d = (struct diag){ 0 };
	r = vault_lease(f->v, span_str(scope), span_str(name), &s, NULL, &f->d);
	secret_free(s);
	return r;
}

static void bind(struct fixture *f, const char *scope, const char *name,
		 const char *json)
{
	assert_int_equal(change_one(f, scope, VAULT_BINDING, name,
				    json ? span_str(json) : SPAN_NONE),
			 0);
}

static void vault__leases_only_what_a_binding_names(void **state)
{
	static const char bearer[] =
		"{\"name\":\"b\",\"match\":{\"hosts\":[\"a.example\"]},"
		"\"auth\":{\"type\":\"bearer\",\"credential\":\"one\"}}";
	static const char custom[] =
		"{\"auth\":{\"type\":\"customHeaders\",\"headers\":["
		"{\"name\":\"X-A\",\"credential\":\"one\"},"
		"{\"name\":\"X-B\",\"credential\":\"two\"}]}}";
	struct fixture *f = *state;

	put(f, "box", "one", "1");
	put(f, "box", "two", "2");
	put(f, "", "one", "node");
	assert_int_equal(lease(f, "box", "one"), VAULT_E_NOT_NAMED);
	assert_said(f, "no binding names the credential \"one\"");

	bind(f, "box", "b", bearer);
	bind(f, "box", "c", custom);
	assert_int_equal(lease(f, "box", "one"), 0);
	assert_int_equal(lease(f, "box", "two"), 0);
	assert_int_equal(lease(f, "", "one"), VAULT_E_NOT_NAMED);
	assert_int_equal(lease(f, "box", "three"), VAULT_E_NOT_NAMED);

	bind(f, "box", "c", bearer); /* two is named no more */
	assert_int_equal(lease(f, "box", "two"), VAULT_E_NOT_NAMED);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(lease(f, "box", "one"), 0);
	bind(f, "box", "c", NULL);
	assert_int_equal(lease(f, "box", "one"), 0);
	bind(f, "box", "b", NULL);
	assert_int_equal(lease(f, "box", "one"), VAULT_E_NOT_NAMED);
}

static void vault__refuses_bindings_that_are_none(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(change_one(f, "", VAULT_BINDING, "b", SPAN("{")),
			 VAULT_E_REFUSED);
	assert_int_equal(change_one(f, "", VAULT_BINDING, "b", SPAN("[]")),
			 VAULT_E_REFUSED);
	assert_int_equal(change_one(f, "", VAULT_BINDING, "b",
				    SPAN("{\"auth\":{\"credential\":1}}")),
			 VAULT_E_REFUSED);
	assert_int_equal(change_one(f, "", VAULT_BINDING, "b", SPAN("{}")), 0);
}

static bool value_is(struct fixture *f, const char *name, const char *value)
{
	struct secret *s = NULL;
	bool is;

	assert_int_equal(vault_get(f->v, SPAN(""), VAULT_CREDENTIAL,
				   span_str(name), &s, NULL, &f->d),
			 0);
	is = span_eq(secret_open(s), span_of(value, VAULT_CREDENTIAL_MAX));
	secret_free(s);
	return is;
}

static void vault__grows_its_map(void **state)
{
	static char value[VAULT_CREDENTIAL_MAX];
	struct fixture *f = *state;
	char name[32];
	int i;

	memset(value, 'v', sizeof(value));
	fixture_close(f);
	f->options.map_bytes = 1024 * 1024;
	fixture_open(f);
	for (i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "c%d", i);
		assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, name,
					    span_of(value, sizeof(value))),
				 0);
	}
	fixture_close(f);
	fixture_open(f);
	assert_true(value_is(f, "c199", value));
}

static void vault__stops_before_its_key_is_worn(void **state)
{
	struct fixture *f = *state;

	fixture_close(f);
	f->options.seals_max = 20;
	fixture_open(f);
	while (!change_one(f, "", VAULT_CREDENTIAL, "x", SPAN("v")))
		assert_true(vault_revision(f->v, SPAN("")) < 20);
	assert_said(f, "run rotate-dek");
	assert_int_equal(vault_rotate_dek(f->v, &f->d), 0);
	put(f, "", "x", "again");
	assert_int_equal(get(f, "", "x", "again"), 0);
}

static void vault__lease_is_fast(void **state)
{
	enum { LEASES = 20000 };
	struct fixture *f = *state;
	uint64_t start;
	int i;

	put(f, "", "one", "some-token-of-a-usual-length-0123456789");
	bind(f, "", "b", "{\"auth\":{\"credential\":\"one\"}}");
	start = clock_us();
	for (i = 0; i < LEASES; i++)
		assert_int_equal(lease(f, "", "one"), 0);
	print_message("a lease takes %llu ns\n",
		      (unsigned long long)(clock_us() - start) * 1000 / LEASES);
}

int main(void)
{
#define CASE(test)                                                  \
	cmocka_unit_test_setup_teardown(vault__##test, vault_setup, \
					vault_teardown)
	const struct CMUnitTest tests[] = {
		CASE(gives_back_what_was_put),
		CASE(gives_back_what_it_mapped),
		CASE(counts_revisions_per_scope),
		CASE(refuses_an_unexpected_revision),
		CASE(commits_all_or_nothing),
		CASE(forgets_a_removed_scope),
		CASE(walks_in_key_order),
		CASE(refuses_bad_values),
		CASE(refuses_bad_names),
		CASE(leases_only_what_a_binding_names),
		CASE(refuses_bindings_that_are_none),
		CASE(grows_its_map),
		CASE(stops_before_its_key_is_worn),
		CASE(lease_is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
