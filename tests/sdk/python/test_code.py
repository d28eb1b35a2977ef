# SPDX-License-Identifier: Apache-2.0
"""Code contexts through the official code interpreter package"""
import threading
import time

import pytest
from code_interpreter.sync.code_interpreter import CodeInterpreterSync
from conftest import VERSION
from opensandbox.exceptions import SandboxException
from opensandbox.models.execd_sync import ExecutionHandlersSync


@pytest.fixture(scope="module")
def codes(sandbox):
    made = CodeInterpreterSync.create(sandbox)
    yield made.codes


def texts(messages):
    return [m.text for m in messages]


def test_python_state_and_result(codes):
    context = codes.create_context("python")
    codes.run("x = 20 + 1", context=context)
    done = codes.run("print('seen'); x * 2", context=context)
    assert texts(done.logs.stdout) == ["seen"] and done.result[0].text == "42"
    assert done.error is None


def test_contexts_are_apart(codes):
    one, two = codes.create_context("python"), codes.create_context("python")
    codes.run("secret = 1", context=one)
    assert codes.run("secret", context=two).error.name == "NameError"


def test_error_has_a_traceback(codes):
    done = codes.run("def f():\n    return 1 / 0\nf()", context=codes.create_context("python"))
    assert done.error.name == "ZeroDivisionError" and done.error.value == "division by zero"
    assert any("in f" in line for line in done.error.traceback)


def test_javascript_and_bash(codes):
    js = codes.create_context("javascript")
    codes.run("const a = 6", context=js)
    assert codes.run("a * 7", context=js).result[0].text == "42"
    bash = codes.create_context("bash")
    codes.run("b=kept", context=bash)
    assert texts(codes.run("echo $b", context=bash).logs.stdout) == ["kept"]


def test_listed_and_deleted(codes):
    context = codes.create_context("python")
    assert context.id in [c.id for c in codes.list_contexts("python")]
    assert codes.get_context(context.id).language == "python"
    codes.delete_context(context.id)
    with pytest.raises(SandboxException):
        codes.get_context(context.id)


def test_interrupt(codes):
    context = codes.create_context("python")
    ids, ready = [], threading.Event()

    def started(event):
        ids.append(event.id)
        ready.set()

    def interrupt():
        ready.wait(10)
        time.sleep(0.5)
        codes.interrupt(ids[0])

    other = threading.Thread(target=interrupt)
    other.start()
    begun = time.monotonic()
    done = codes.run("import time; time.sleep(60)", context=context,
                     handlers=ExecutionHandlersSync(on_init=started))
    other.join()
    assert time.monotonic() - begun < 20 and done.error.name == "KeyboardInterrupt"
    assert codes.run("1 + 1", context=context).result[0].text == "2"


def test_unknown_language(codes):
    with pytest.raises(SandboxException):
        codes.create_context("cobol")


@pytest.mark.skipif(VERSION < (1, 1), reason="this package does not look")
def test_the_package_finds_its_runtime(sandbox):
    assert CodeInterpreterSync.create(sandbox).is_healthy()
