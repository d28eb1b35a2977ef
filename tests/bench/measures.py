# SPDX-License-Identifier: Apache-2.0
"""measures.py - what is measured: a table of tests, and the running of one"""
import time
from dataclasses import dataclass, field

from gateways import RULES
from place import (DOMAIN, FRESH, H2_HOST, H2_ORIGIN, PASS_HOST, PASS_ORIGIN, TOKEN, cpu_ns, prefer,
                   pss_kib)


REST_S = 1.0  # of idle connections, before their memory is looked at


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
    only: tuple = ()  # these gateways; none: all
    opened: bool = True  # the gateway opens the TLS, and the client trusts it
    rules: int = 0  # in the policy
    sandboxes: int = 0  # registered besides the one that asks
    own_rules: int = 200  # of each of them
    callers: int = 1  # that register them at once

    def is_for(self, gateway):
        return ((self.direct or gateway.name != "direct") and
                (gateway.resumes or not self.resumed) and
                (not self.only or gateway.name in self.only))


H2 = ["-a", H2_ORIGIN, "-H", H2_HOST, "-m", "h2"]
H2_GATEWAYS = ("direct", "sallyport", "before", "haproxy", "nginx")
PASS = ["-a", PASS_ORIGIN, "-H", PASS_HOST, "-t", TOKEN]
PASS_GATEWAYS = ("direct", "sallyport", "before", "haproxy")
UPLOAD_GATEWAYS = ("direct", "sallyport", "before", "haproxy", "nginx", "mitmproxy")
OURS = ("sallyport", "before")
KEEP = ["-m", "keep", "-c", 32]

TESTS = [
    Test("keep", "kept-alive exchanges, 1 KiB, 32 connections", KEEP, 2),
    Test("paced", "400 exchanges per second, 32 connections",
         ["-m", "paced", "-r", 400, "-c", 32], 2),
    Test("full", "connection per exchange, full handshake", ["-m", "close", "-c", 16], 2),
    Test("resumed", "connection per exchange, resumed handshake",
         ["-m", "close", "-c", 16, "-R"], 2, resumed=True),
    Test("64k", "64 KiB bodies, 8 connections", ["-m", "keep", "-c", 8, "-u", "/64k"], 2),
    Test("64m", "64 MiB bodies, 1 connection", ["-m", "keep", "-u", "/64m"], count=16),
    Test("up-64m", "64 MiB uploads, 1 connection",
         ["-m", "keep", "-u", "/take", "-b", 1 << 26], count=16, only=UPLOAD_GATEWAYS),
    Test("h2", "HTTP/2 exchanges, 1 KiB, 1 connection, 100 streams", [*H2, "-k", 100], 2,
         only=H2_GATEWAYS),
    Test("h2-64k", "64 KiB bodies over HTTP/2, 8 streams", [*H2, "-k", 8, "-u", "/64k"], 2,
         only=H2_GATEWAYS),
    Test("events", "events of 20 streams, 50 a second each",
         ["-m", "events", "-c", 20, "-u", "/events"], 2),
    Test("splice", "kept-alive exchanges, not opened", [*PASS, *KEEP], 2, only=PASS_GATEWAYS,
         opened=False),
    Test("splice-new", "connection per exchange, not opened",
         [*PASS, "-m", "close", "-c", 16, "-R"], 2, only=PASS_GATEWAYS, opened=False),
    Test("splice-64m", "64 MiB bodies, not opened", [*PASS, "-m", "keep", "-u", "/64m"], count=16,
         only=PASS_GATEWAYS, opened=False),
    Test("idle", "1,000 idle connections", ["-m", "idle", "-c", 1000], 1.5, direct=False),
    Test("first", "first contact with a host never seen, one after another",
         ["-m", "close", "-N", len(FRESH), "-H", f"fresh%u.{DOMAIN}"], count=len(FRESH)),
    Test("start", "from exec to the first exchange", ["-m", "wait"], direct=False),
    Test("rules", f"kept-alive exchanges, policy of {RULES:,} rules", KEEP, 2, only=OURS,
         rules=RULES),
    Test("sandboxes-10", "kept-alive exchanges, 10 more sandboxes", KEEP, 2, only=OURS,
         sandboxes=10),
    Test("sandboxes-1000", "kept-alive exchanges, 1,000 more sandboxes", KEEP, 2, only=OURS,
         sandboxes=1000),
    Test("sandboxes-at-once", "the same, registered by 64 callers at once", KEEP, 2, only=OURS,
         sandboxes=1000, callers=64),
    Test("sandboxes-shared", "kept-alive exchanges, 1,000 more sandboxes of one policy", KEEP, 2,
         only=OURS, sandboxes=1000, own_rules=0),
]


def check(test, figures):
    exchanges, injected = figures["exchanges"], figures["injected"]
    if figures["errors"] or not exchanges or injected != exchanges:
        raise Invalid(f"exchanges={exchanges:.0f} injected={injected:.0f} "
                      f"errors={figures['errors']:.0f}\n{figures['stderr']}")
    if test.resumed and figures["resumed"] < 0.9 * figures["handshakes"]:
        raise Invalid("sessions were not resumed")


def figures_of(raw):
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


def rested_kib(gateway):
    """Not the crowd's last moment: what a gateway gives back, it gives back by then."""
    time.sleep(REST_S)
    return pss_kib(gateway.pids())


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
        count = test.count * scale / (10 if gateway.slow else 1)
        args += ["-n", max(2, int(count))]
    try:
        ready_ms = serve(place, gateway)
        if test.name == "start":
            return {"ready_ms": ready_ms}
        pids = gateway.pids()
        prefer(pids, place.nice)
        extra = gateway.extend(test)
        ca = gateway.ca if test.opened else place.bundle
        if test.name == "first":  # the gateway is warm, the hosts are not
            place.load(gateway.ca, "-m", "close", "-n", 20, *gateway.load_args())
        if test.name == "idle":
            empty_kib = pss_kib(pids)
            raw = place.load(gateway.ca, *args, look=lambda: rested_kib(gateway))
        else:
            raw = place.load(ca, *args, look=lambda: cpu_ns(pids))
        check(test, raw)
        return idle_of(raw, empty_kib) if test.name == "idle" else figures_of(raw) | extra
    finally:
        if test.rules or test.sandboxes:
            gateway.restore()
        gateway.stop()
