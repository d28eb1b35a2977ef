# SPDX-License-Identifier: Apache-2.0
"""test_code_runtime.py - the port of loopback where clients look for a runtime of code"""
import os
import socket

import pytest
from execd import Connection, free_port, wait_for
from form import SANITIZED
from root import RootBox

CHECK = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/${JUPYTER_PORT:-44771}'"


def takes(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 5).close()
        return True
    except ConnectionRefusedError:
        return False


def ask(port, path, token=None):
    connection = Connection(port, token)
    try:
        return connection.request("GET", path)
    finally:
        connection.close()


@pytest.fixture
def port():
    return free_port()


def test_it_is_the_same_api_with_the_same_token(start_execd, port):
    execd = start_execd(token="right", args=["--jupyter-port", str(port)])
    assert takes(port)
    assert ask(port, "/ping").status == 401 and ask(port, "/ping", "wrong").status == 401
    assert ask(port, "/ping", "right").status == 200
    assert ask(port, "/code/contexts?language=python", "right").json() == []
    assert ask(port, "/api/kernels", "right").status == 404
    assert f"listens on 127.0.0.1:{port} too" in execd.log()


def test_the_environment_names_it_to_both(start_execd, port):
    # what the client runs sees the variable that the daemon saw
    execd = start_execd(env={"JUPYTER_PORT": str(port)})
    assert execd.run(CHECK).exit_code == 0
    execd.stop()
    assert not takes(port)


def test_no_other_address(start_execd, port):
    execd = start_execd(args=["--listen", f"[::]:{free_port()}", "--jupyter-port", str(port)],
                        wait=False)
    wait_for(lambda: takes(port), 20, "the daemon does not listen there")
    assert execd.process.poll() is None, execd.log()
    assert not takes(port, "127.0.0.2")
    with socket.socket() as s:  # nobody has it
        s.bind(("127.0.0.2", port))
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", port))
    except OSError as e:
        pytest.skip(f"no IPv6 here: {e}")


def test_not_beside_a_jupyter_server(start_execd, port):
    start_execd(env={"JUPYTER_HOST": f"http://127.0.0.1:{port}"},
                args=["--jupyter-port", str(port)])
    assert not takes(port)


def test_none_is_asked_for(start_execd, port):
    execd = start_execd(env={"JUPYTER_PORT": str(port)}, args=["--jupyter-port", "0"])
    assert not takes(port) and "runtime of code" not in execd.log()


def test_a_port_that_is_taken_is_left_alone(start_execd):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        execd = start_execd(args=["--jupyter-port", str(port)])
        assert execd.alive() and f"does not listen on 127.0.0.1:{port}" in execd.log()
        with socket.create_connection(("127.0.0.1", port), 5):
            other.accept()[0].close()


def test_the_proxy_does_not_lead_there(start_execd, port):
    execd = start_execd(args=["--jupyter-port", str(port)])
    assert execd.request("GET", f"/proxy/{port}/ping").status == 400
    assert execd.request("GET", f"/proxy/{execd.port}/ping").status == 400


@pytest.mark.skipif(os.geteuid() != 0 or SANITIZED, reason="needs root, and a static program")
def test_not_in_an_image_without_interpreters(tmp_path, port):
    # a root folder in which there is nothing but the daemon
    script = """mkdir -p $M/opt/probe/opt/opensandbox
cp $M/opt/opensandbox/execd $M/opt/probe/opt/opensandbox/
M=$M/opt/probe"""
    with RootBox("--jupyter-port", str(port), tmp=tmp_path, script=script) as box:
        assert box.is_ready() and not takes(port)
