# SPDX-License-Identifier: Apache-2.0
"""What a hostile client of HTTP/2 can do: nothing for long, at nobody's cost."""
import json
import os
import threading
import time

import pytest
from conftest import HERE
from h2_lab import (ADDRESS, FIRST_BYTE_MS, HEAD_MS, HOST, IDLE_MS, WEB, ask,  # noqa: F401
                    counter, peer, rss)

NO_ERROR, PROTOCOL_ERROR, CALM = 0, 1, 0xb
ASAN = "asan" in os.environ.get("SALLYPORT_BUILD", "")
GROWTH_KIB = 48 * 1024 * (8 if ASAN else 1)  # red zones and a quarantine are no leak
NEIGHBOUR_S = 10 if ASAN else 3


class Attack:
    """Runs beside a neighbour; .said is what the client reports."""

    def __init__(self, lab, name, seconds=12, clients=1, host=HOST):
        self.lab, self.name, self.mark = lab, name, len(lab.records())
        self.before, self.most, self.waits, self.alive = rss(lab), 0, [], True
        procs = [lab.sandboxes[0].popen("/usr/bin/python3", HERE / "h2_flood.py", name,
                                        ADDRESS[host], host, seconds, stdout=-1, stderr=-1) for _ in range(clients)]
        thread = threading.Thread(target=self.neighbour)
        thread.start()
        while any(p.poll() is None for p in procs):
            self.most = max(self.most, rss(lab))
            time.sleep(0.05)
        self.alive = False
        thread.join()
        out = [p.communicate() for p in procs]
        assert all(p.returncode == 0 for p in procs), out
        self.all = [json.loads(o) for o, _ in out]
        self.said = self.all[0]
        self.grown = max(self.most, rss(lab)) - self.before
        print(name, self.all[:3], f"{self.grown} KiB", f"{max(t for _, t in self.waits):.2f} s")

    def neighbour(self):
        while self.alive:
            self.waits.append(ask(self.lab.sandboxes[1]))
            time.sleep(0.1)

    def check(self, grown=GROWTH_KIB, seconds=NEIGHBOUR_S):
        """The neighbour was served at once, and memory stayed within bounds."""
        assert self.waits and all(s == "200" and t < seconds for s, t in self.waits), self.waits
        assert self.grown < grown, f"{self.grown} KiB"

    def records(self, **match):
        return [r for r in self.lab.records()[self.mark:] if r.get("sandbox") == "sandbox-1" and
                all(r.get(k) == v for k, v in match.items())]

    def record(self, **match):
        return self.lab.wait(lambda: self.records(**match), 5, f"a record {match}")[0]


FLOODS = ["rapid_reset", "continuation_empty", "settings",
          "settings_large", "ping", "ping_unread", "priority", "unknown", "window", "empty_data",
          "padded_data", "tiny_data", "hpack_bomb", "large_heads"]


@pytest.mark.parametrize("name", FLOODS)
def test_case_52_flood_is_told_to_calm_down(peer, name):
    abused = counter(peer, "abused")
    flood = Attack(peer, name)
    flood.check()
    assert flood.said["goaway"] == CALM, flood.said
    assert flood.said["seconds"] < 6 or name == "ping_unread", flood.said
    record = flood.record(reason="abuse")
    assert record["kind"] == "connect" and record["host"] == HOST and record["detail"], record
    assert record["verdict"] == "deny" and counter(peer, "abused") == abused + 1


@pytest.mark.parametrize("name", ["made_you_reset", "made_you_reset_window", "continuation",
                                  "settings_ack", "over_the_limit"])
def test_case_52_what_no_client_sends_ends_the_connection(peer, name):
    flood = Attack(peer, name)
    flood.check()
    assert flood.said["closed"] and flood.said["seconds"] < 3, flood.said
    assert flood.said["goaway"] in (PROTOCOL_ERROR, CALM), flood.said
    assert flood.record(kind="connect")["reason"] in ("malformed", "abuse")


def test_rapid_reset_does_not_reach_the_origin(peer):
    """The resets of one connection cost the origin no more streams than are allowed at once."""
    flood = Attack(peer, "rapid_reset")
    tried = len(flood.records(kind="http"))
    assert tried <= 600 and counter(peer, "connections_open") < 5, tried


@pytest.mark.parametrize("name", ["slow_head", "slow_continuation", "slow_head_beside"])
def test_case_52_slow_head_ends_by_its_deadline(peer, name):
    slow = Attack(peer, name)
    slow.check()
    assert slow.said["closed"] and slow.said["goaway"] == CALM, slow.said
    assert HEAD_MS / 1000 - 0.1 < slow.said["seconds"] < HEAD_MS / 1000 + 1.5, slow.said
    assert slow.record(reason="client_timeout")["detail"] == "a request head took too long"


def test_case_52_slow_body_ends_by_its_deadline(peer):
    slow = Attack(peer, "slow_body")
    slow.check()
    assert slow.said["status"] == {"408": 1} and slow.said["closed"], slow.said
    assert slow.said["seconds"] < (FIRST_BYTE_MS + IDLE_MS) / 1000 + 1.5, slow.said
    assert slow.record(reason="client_timeout")


@pytest.mark.parametrize("name", ["silent", "half_preface", "pings_only"])
def test_connection_without_a_request_ends(peer, name):
    idle = Attack(peer, name)
    idle.check()
    assert idle.said["closed"] and idle.said["goaway"] == NO_ERROR, idle.said
    assert IDLE_MS / 1000 - 0.1 < idle.said["seconds"] < IDLE_MS / 1000 + 1.5, idle.said


def test_zero_window_ends_its_streams(peer):
    """100 answers that may not be sent: held for a while, within the windows."""
    stall = Attack(peer, "zero_window", seconds=16)
    stall.check()
    assert stall.said["status"] == {"200": 100} and not stall.said["data"], stall.said
    assert sum(stall.said["resets"].values()) == 100 and stall.said["closed"], stall.said
    assert stall.said["seconds"] < (FIRST_BYTE_MS + IDLE_MS) / 1000 + 2, stall.said
    assert len(stall.records(reason="client_timeout")) == 100


def test_zero_window_of_complete_answers_ends_its_streams(peer):
    """Nothing is under way any more, but for 100 queues."""
    stall = Attack(peer, "zero_window_small", seconds=16)
    stall.check()
    assert stall.said["resets"] == {"8": 100} and stall.said["closed"], stall.said
    assert stall.said["seconds"] < 3 * IDLE_MS / 1000 + 2, stall.said


def test_zero_windows_of_many_connections_are_one_sandbox_s(peer):
    """What all of them hold back is bounded: what is over it ends."""
    stall = Attack(peer, "zero_window", seconds=24, clients=8 if ASAN else 12, host=WEB)
    stall.check(grown=GROWTH_KIB * 5, seconds=2 * NEIGHBOUR_S)  # so many clients begin slowly
    over = stall.records(reason="limit") + stall.records(
        reason="origin_failed", detail="the sandbox holds too much content back")
    assert len(over) > 100 and all(s["closed"] for s in stall.all), (len(over), stall.all)
    assert ask(peer.sandboxes[0])[0] == "200"


def test_uploads_that_the_origin_does_not_read(peer):
    stall = Attack(peer, "unread_uploads", seconds=16)
    stall.check()
    assert stall.said["closed"], stall.said
    assert ask(peer.sandboxes[0])[0] == "200"


def test_many_attackers_at_once(peer):
    """Each gets its own answer; the neighbour does not notice."""
    flood = Attack(peer, "rapid_reset", clients=8)
    flood.check()
    assert all(s["goaway"] == CALM for s in flood.all), flood.all
    assert counter(peer, "connections_open") < 5 and peer.admin.get("/v1/status")["ready"]
