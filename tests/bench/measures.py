# SPDX-License-Identifier: Apache-2.0
"""measures.py - what is measured: a table of tests, and the running of one"""
import time
from dataclasses import dataclass, field

from place import DOMAIN, FRESH, cpu_ns, prefer, pss_kib


class Invalid(Exception):
    """Errors, or exchanges that did not carry the credential."""


@dataclass
class Test:
    name: str
    title: str
    load: list = field(default_factory=list)  # arguments of the load generator
    seconds: float = 0  # 0: it ends by itself, or after `count`
    count: int = 0
    warm_s: float = 0.5
    resumed: bool = False  # most handshakes must be
    direct: bool = True  # it can be done without a gateway

    def is_for(self, gateway):
        return ((self.direct or gateway.name != "direct") and
                (gateway.resumes or not self.resumed))


TESTS = [
    Test("keep", "kept-alive exchanges, 1 KiB, 32 connections", ["-m", "keep", "-c", 32], 2),
    Test("paced", "400 exchanges per second, 32 connections",
         ["-m", "paced", "-r", 400, "-c", 32], 2),
    Test("full", "connection per exchange, full handshake", ["-m", "close", "-c", 16], 2),
    Test("resumed", "connection per exchange, resumed handshake",
         ["-m", "close", "-c", 16, "-R"], 2, resumed=True),
    Test("64k", "64 KiB bodies, 8 connections", ["-m", "keep", "-c", 8, "-u", "/64k"], 2),
    Test("64m", "64 MiB bodies, 1 connection", ["-m", "keep", "-u", "/64m"], count=16),
    Test("idle", "1,000 idle connections", ["-m", "idle", "-c", 1000], 1.5, direct=False),
    Test("first", "first contact with a host never seen, one after another",
         ["-m", "close", "-n", len(FRESH), "-N", len(FRESH), "-H", f"fresh%u.{DOMAIN}"]),
    Test("start", "from exec to the first exchange", ["-m", "wait"], direct=False),
]


def check(test, figures):
    exchanges, injected = figures["exchanges"], figures["injected"]
    if figures["errors"] or not exchanges or injected != exchanges:
        raise Invalid(f"exchanges={exchanges:.0f} injected={injected:.0f} "
                      f"errors={figures['errors']:.0f}\n{figures['stderr']}")
    if test.resumed and figures["resumed"] < 0.9 * figures["handshakes"]:
        raise Invalid("sessions were not resumed")


def figures_of(test, raw):
    """What is reported, from what was counted."""
    exchanges, seconds = raw["exchanges"], raw["seconds"]
    used_ns = raw["end"] - raw["begin"]
    return {
        "rate": exchanges / seconds,
        "p50_us": raw["p50_us"],
        "p99_us": raw["p99_us"],
        "cpu_us": used_ns / 1000 / exchanges,
        "cpu_ns_byte": used_ns / max(raw["bytes"], 1),
        "mb_s": raw["bytes"] / seconds / 1e6,
        "exchanges": exchanges, "injected": raw["injected"], "errors": raw["errors"],
    }


def serve(place, gateway):
    """Starts it and waits until it serves; how long that took, in ms."""
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    gateway.start()
    ready = place.load(gateway.ca, "-m", "wait", *gateway.load_args())
    return ready["ready_us"] / 1000 - begun / 1e6


def idle_of(raw, empty_kib):
    """Memory, and how much of it each resting connection costs."""
    return {"pss_mib": empty_kib / 1024,
            "idle_kib": (raw["begin"] - empty_kib) / raw["exchanges"]}


def measure(place, gateway, test, scale):
    """One test of one gateway, from its start to its stop."""
    args = test.load + gateway.load_args()
    if test.seconds:
        args += ["-s", test.seconds * scale, "-w", test.warm_s]
    if test.count:
        args += ["-n", max(2, int(test.count * scale))]
    try:
        ready_ms = serve(place, gateway)
        if test.name == "start":
            return {"ready_ms": ready_ms}
        pids = gateway.pids()
        prefer(pids, place.nice)
        if test.name == "first":  # the gateway is warm, the hosts are not
            place.load(gateway.ca, "-m", "close", "-n", 20, *gateway.load_args())
        if test.name == "idle":
            empty_kib = pss_kib(pids)
            raw = place.load(gateway.ca, *args, look=lambda: pss_kib(gateway.pids()))
        else:
            raw = place.load(gateway.ca, *args, look=lambda: cpu_ns(pids))
        check(test, raw)
        return idle_of(raw, empty_kib) if test.name == "idle" else figures_of(test, raw)
    finally:
        gateway.stop()
