# SPDX-License-Identifier: Apache-2.0
"""cells.py - code contexts of a daemon: make one, run cells in it, look at what is told"""
import threading
from urllib.parse import quote

from execd import Run


class Context:
    def __init__(self, execd, language, **more):
        reply = execd.request("POST", "/code/context", {"language": language, **more})
        assert reply.status == 200, reply
        found = reply.json()
        assert found["language"] == language and set(found) == {"id", "language"}
        self.execd, self.id, self.language = execd, found["id"], language

    def stream(self, code):
        return self.execd.stream("/code", {"code": code, "context": {
            "id": self.id, "language": self.language}})

    def run(self, code):
        return ended(self.stream(code))

    def interrupt(self):
        reply = self.execd.request("DELETE", f"/code?id={quote(self.id)}")
        assert (reply.status, reply.body) == (200, b""), reply
        assert reply.headers["content-length"] == "0"

    def delete(self):
        return self.execd.request("DELETE", f"/code/contexts/{self.id}")


def ended(stream):
    """The run, checked for what holds for each."""
    assert stream.status == 200, stream.error
    try:
        run = Run(stream)
    finally:
        stream.close()
    kinds = [e["type"] for e in run.events]
    assert kinds[:2] == ["init", "ping"], kinds
    assert len(run.terminal) == 1 and run.events[-1] is run.terminal[0], kinds
    assert all(e["timestamp"] > 1.7e12 for e in run.events)
    return run


def language(execd, name, code):
    """A run that names a language only."""
    return ended(execd.stream("/code", {"code": code, "context": {"language": name}}))


def results(run):
    return [e["results"] for e in run.events if e["type"] == "result"]


def counts(run):
    return [e["execution_count"] for e in run.events if e["type"] == "execution_count"]


class Behind:
    """A cell that runs while the scene does something else."""

    def __init__(self, context, code):
        self.stream = context.stream(code)
        assert self.stream.status == 200, self.stream.error
        self.run, self.failed = None, None
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            self.run = ended(self.stream)
        except Exception as e:
            self.failed = e

    def join(self, seconds=20):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the run does not end"
        if self.failed:
            raise self.failed
        return self.run
