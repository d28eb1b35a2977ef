# SPDX-License-Identifier: Apache-2.0
"""report.py - medians as markdown tables, ratios against HAProxy"""
import platform
import statistics
from pathlib import Path

from place import SOURCE

BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
BASE = "haproxy"
PLOT = SOURCE / "docs" / "performance.png"

# test, figure, what it is called, format, less is better
ROWS = [
    ("keep", "cpu_us", "kept-alive, 1 KiB: CPU us per exchange", ".1f"),
    ("keep", "rate", "the same: exchanges per second", ",.0f"),
    ("keep", "p50_us", "the same: p50 us", ",.0f"),
    ("keep", "p99_us", "the same: p99 us", ",.0f"),
    ("paced", "cpu_us", "400/s paced: CPU us per exchange", ".1f"),
    ("paced", "p50_us", "the same: p50 us", ",.0f"),
    ("paced", "p99_us", "the same: p99 us", ",.0f"),
    ("full", "cpu_us", "connection per exchange, full handshake: CPU us", ",.0f"),
    ("full", "rate", "the same: per second", ",.0f"),
    ("full", "p50_us", "the same: p50 us", ",.0f"),
    ("resumed", "cpu_us", "connection per exchange, resumed: CPU us", ",.0f"),
    ("resumed", "rate", "the same: per second", ",.0f"),
    ("64k", "cpu_ns_byte", "64 KiB bodies: CPU ns per byte", ".2f"),
    ("64k", "mb_s", "the same: MB/s", ",.0f"),
    ("64m", "cpu_ns_byte", "64 MiB bodies: CPU ns per byte", ".2f"),
    ("64m", "mb_s", "the same: MB/s", ",.0f"),
    ("up-64m", "cpu_ns_byte", "64 MiB uploads: CPU ns per byte", ".2f"),
    ("up-64m", "mb_s", "the same: MB/s", ",.0f"),
    ("h2", "cpu_us", "HTTP/2, 100 streams, 1 KiB: CPU us per exchange", ".1f"),
    ("h2", "rate", "the same: exchanges per second", ",.0f"),
    ("h2", "p50_us", "the same: p50 us", ",.0f"),
    ("h2", "p99_us", "the same: p99 us", ",.0f"),
    ("h2-64k", "cpu_ns_byte", "HTTP/2, 8 streams, 64 KiB bodies: CPU ns per byte", ".2f"),
    ("h2-64k", "mb_s", "the same: MB/s", ",.0f"),
    ("events", "cpu_us", "server-sent events, 1,000/s: CPU us per event", ".1f"),
    ("events", "p50_us", "the same: latency, p50 us", ",.0f"),
    ("events", "p99_us", "the same: latency, p99 us", ",.0f"),
    ("splice", "cpu_us", "not opened, kept-alive, 1 KiB: CPU us per exchange", ".1f"),
    ("splice", "p50_us", "the same: p50 us", ",.0f"),
    ("splice-new", "cpu_us", "not opened, connection per exchange: CPU us", ",.0f"),
    ("splice-64m", "cpu_ns_byte", "not opened, 64 MiB bodies: CPU ns per byte", ".2f"),
    ("splice-64m", "mb_s", "the same: MB/s", ",.0f"),
    ("first", "p50_us", "first contact with a host: p50 us", ",.0f"),
    ("first", "cpu_us", "the same: CPU us", ",.0f"),
    ("idle", "pss_mib", "fresh process tree: PSS MiB", ".1f"),
    ("idle", "idle_kib", "per idle connection: PSS KiB", ".1f"),
    ("start", "ready_ms", "start to first exchange: ms", ",.0f"),
]
SCALE_ROWS = [
    ("rules", "cpu_us", "kept-alive with 100,000 rules: CPU us per exchange", ".1f"),
    ("rules", "p50_us", "the same: p50 us", ",.0f"),
    ("rules", "load_ms", "loading them: ms", ",.0f"),
    ("rules", "rule_bytes", "memory: bytes per rule, all roles", ",.0f"),
    ("sandboxes-10", "cpu_us", "kept-alive with 10 more sandboxes: CPU us per exchange", ".1f"),
    ("sandboxes-1000", "cpu_us", "the same with 1,000", ".1f"),
    ("sandboxes-1000", "p50_us", "the same: p50 us", ",.0f"),
    ("sandboxes-10", "register_ms", "registration of each of 10: ms", ".2f"),
    ("sandboxes-1000", "register_ms", "registration of each of 1,000: ms", ".2f"),
    ("sandboxes-1000", "policy_ms", "its own policy of 200 rules: ms", ".2f"),
    ("sandboxes-at-once", "all_s", "1,000 policies and registrations by 64 callers: s", ".1f"),
    ("sandboxes-at-once", "sandbox_kib", "memory: KiB per sandbox afterwards, all roles", ".1f"),
    ("sandboxes-shared", "sandbox_kib", "memory: KiB per sandbox of one policy, all roles", ".1f"),
    ("sandboxes-1000", "sandbox_kib", "memory: KiB per sandbox with its policy, all roles", ".1f"),
]
CPU_FIGURES = ("cpu_us", "cpu_ns_byte")  # direct has no gateway to charge


def median(results, test, gateway, figure):
    rounds = results.get((test, gateway))
    if not rounds or (gateway == "direct" and figure in CPU_FIGURES):
        return None
    return statistics.median(r[figure] for r in rounds)


def spread(results, test, gateway, figure):
    values = [r[figure] for r in results[test, gateway]]
    return f"{min(values):.4g} to {max(values):.4g}"


def table(head, rows):
    lines = ["| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"


def figures_table(results, rows, names):
    def cells(test, figure, title, form):
        yield title
        for n in names:
            value = median(results, test, n, figure)
            yield "-" if value is None else format(value, form)
    return table(["", *names], [list(cells(*r)) for r in rows])


def ratios_table(results, rows, names):
    """Each figure as a multiple of HAProxy's in the same rounds."""
    others = [n for n in names if n not in (BASE, "direct")]

    def cells(test, figure, title, base):
        yield title
        for n in others:
            value = median(results, test, n, figure)
            yield "-" if value is None else f"{value / base:.2f}"
    lines = []
    for test, figure, title, _ in rows:
        base = median(results, test, BASE, figure)
        if base and not title.startswith("the same: p"):
            lines.append(list(cells(test, figure, title, base)))
    return table(["multiple of HAProxy's", *others], lines) if lines else ""


def scale_table(results, names):
    """What grows with an installation, which no peer has; kept-alive again as
    the measure."""
    ours = [n for n in names if n in ("sallyport", "before")]
    small = ("keep", "cpu_us", "kept-alive with the small policy: CPU us per exchange", ".1f")
    rows = [r for r in [small, *SCALE_ROWS] if any((r[0], n) in results for n in ours)]
    return figures_table(results, rows, ours) if rows and rows != [small] else ""


def spread_table(results, rows, names):
    lines = [[title, *(spread(results, test, n, figure) if (test, n) in results else "-"
                       for n in names)] for test, figure, title, _ in rows]
    return table(["least to most", *names], lines)


def change_table(results, rows):
    """Each figure as a multiple of the build before, round by round: a machine that drifts
    does so for both. Many short rounds tell half a per cent; two long ones do not."""
    lines = []
    for test, figure, title, _ in rows:
        ours, before = (results.get((test, n), []) for n in ("sallyport", "before"))
        if len(ours) != len(before) or not all(r[figure] for r in before):
            continue
        ratios = [a[figure] / b[figure] for a, b in zip(ours, before)]
        if len(ratios) > 1:
            error = statistics.stdev(ratios) / len(ratios) ** 0.5
            lines.append([title, f"{statistics.mean(ratios):.3f}", f"{error:.3f}"])
    return table(["multiple of the build before", "mean", "standard error"], lines) if lines else ""


def machine():
    model = next((line.split(":")[1].strip() for line in
                  Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return f"{model}, 2 cores used, Linux {platform.release()}"


def markdown(results, tests, gateways, run):
    names = [g.name for g in gateways]
    wanted = {t.name for t in tests}
    rows = [r for r in ROWS if r[0] in wanted and any((r[0], n) in results for n in names)]
    pair = [n for n in ("sallyport", "before", BASE) if n in names]
    parts = [
        f"{run['date']}, {machine()}; load average {run['load']:.1f} at the start; "
        f"{run['rounds']} rounds. Printed by\n\n    {run['command']}\n",
        "\n".join(f"- {g.name}: {g.version()}" for g in gateways) + "\n",
        figures_table(results, rows, names),
    ]
    if BASE in names:
        parts.append(ratios_table(results, rows, names))
    if "before" in names:
        parts.append(change_table(results, rows))
    parts.append(scale_table(results, names))
    if run["rounds"] > 1 and pair:
        parts.append(spread_table(results, [r for r in rows if r[1] not in
                                            ("p50_us", "p99_us")], pair))
    return "\n".join(parts)


def write(text):
    """Puts it between the marks of docs/performance.md."""
    path = SOURCE / "docs" / "performance.md"
    before, rest = path.read_text().split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(before + BEGIN + "\n" + text + "\n" + END + after)
