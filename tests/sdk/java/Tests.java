// SPDX-License-Identifier: Apache-2.0
// What the programs have in common, which do without a framework: each test prints
// a line, the last line is "N passed, N failed".

abstract class Tests {
	interface Body { void run() throws Exception; }

	private static int passed, failed;

	static void test(String name, Body body) {
		try {
			body.run();
			passed++;
			System.out.println("ok " + name);
		} catch (Throwable t) {
			failed++;
			System.out.println("not ok " + name + ": " + t);
			t.printStackTrace(System.out);
		}
	}

	static void same(Object expected, Object found) {
		if (expected == null ? found != null : !expected.equals(found))
			throw new AssertionError("expected " + expected + ", found " + found);
	}

	static void holds(boolean it, String what) {
		if (!it) throw new AssertionError("does not hold: " + what);
	}

	static Exception fails(String what, Body body) {
		try {
			body.run();
		} catch (Exception e) {
			return e;
		}
		throw new AssertionError("succeeded: " + what);
	}

	static void end() {
		System.out.println(passed + " passed, " + failed + " failed");
		System.exit(failed == 0 ? 0 : 1);
	}
}
