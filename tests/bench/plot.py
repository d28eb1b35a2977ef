# SPDX-License-Identifier: Apache-2.0
"""plot.py - the main figures as multiples of HAProxy's, one picture by gnuplot"""
import subprocess

BASE = "haproxy"
COLOURS = {"sallyport": "#1b6ca8", "nginx": "#8fb339", "squid": "#e0a030", "mitmproxy": "#b8544f"}
# test, figure, what it is called; the less the better, all of them
BARS = [
    ("keep", "cpu_us", "kept-alive exchange"),
    ("full", "cpu_us", "new connection"),
    ("resumed", "cpu_us", "new connection, resumed"),
    ("64k", "cpu_ns_byte", "byte of a 64 KiB body"),
    ("64m", "cpu_ns_byte", "byte of a 64 MiB body"),
    ("up-64m", "cpu_ns_byte", "byte of a 64 MiB upload"),
    ("h2", "cpu_us", "HTTP/2 exchange, 100 streams"),
    ("h2-64k", "cpu_ns_byte", "byte of 64 KiB over HTTP/2"),
    ("events", "cpu_us", "server-sent event"),
    ("splice", "cpu_us", "exchange, not opened"),
    ("splice-64m", "cpu_ns_byte", "byte of 64 MiB, not opened"),
    ("first", "cpu_us", "first contact with a host"),
    ("idle", "idle_kib", "memory: idle connection"),
    ("idle", "pss_mib", "memory: fresh process"),
]
ROW, BAR, LEFT, RIGHT = 1.0, 0.18, 0.2, 60

SCRIPT = """
set terminal pngcairo size 1100,{height} font 'DejaVu Sans,11' background '#ffffff'
set output '{path}'
set title "CPU and memory as a multiple of HAProxy's (less is better)" font ',14' offset 0,0.5
set logscale x 2
set xrange [{left}:{right}]
set yrange [{bottom}:0.1]
set xtics ('¼' 0.25, '½' 0.5, '1' 1, '2' 2, '4' 4, '8' 8, '16' 16, '32' 32) scale 0 font ',10'
set ytics ({tics}) scale 0
set grid xtics lc rgb '#e4e4e4' lt 1
set border 0
set lmargin 34
set rmargin 4
set tmargin 4
set key outside bottom center horizontal samplen 1 spacing 1.4
set style fill solid 1.0 noborder
set arrow from 1,graph 0 to 1,graph 1 nohead lc rgb '#555555' lw 1.5 front
{labels}
plot {plots}
"""


def multiples(median):
    """(title, {gateway: multiple}) of each bar that can be drawn."""
    for test, figure, title in BARS:
        base = median(test, BASE, figure)
        if base:
            values = {n: median(test, n, figure) for n in COLOURS}
            yield title, {n: v / base for n, v in values.items() if v}


def script(path, groups):
    """Groups of bars from the top down; what is less than HAProxy's goes left."""
    tics, labels, data, y = [], [], {n: [] for n in COLOURS}, 0
    for title, values in groups:
        height = BAR * len(values)
        tics.append(f"'{title}' {-(y + height / 2):.3f}")
        for name, value in values.items():
            end = min(max(value, LEFT), RIGHT)
            data[name].append(f"1 {-(y + BAR / 2):.3f} {min(1, end):.4f} {max(1, end):.4f} "
                              f"{-(y + BAR):.3f} {-y:.3f}")
            side = "left offset 0.5,0" if value >= 1 else "right offset -0.5,0"
            weight = "DejaVu Sans Bold" if name == "sallyport" else "DejaVu Sans"
            labels.append(f"set label '{value:{'.2f' if value < 10 else '.0f'}}' at {end:.4f},{-(y + BAR / 2):.3f} {side} "
                          f"font '{weight},9' tc rgb '{COLOURS[name]}' front")
            y += BAR
        y += BAR * 0.9
    drawn = {n: rows for n, rows in data.items() if rows}
    plots = ", ".join(f"'-' using 1:2:3:4:5:6 with boxxyerror lc rgb '{COLOURS[n]}' title '{n}'"
                      for n in drawn)
    inline = "".join("\n".join(rows) + "\ne\n" for rows in drawn.values())
    return SCRIPT.format(path=path, height=int(160 + y * 88), left=LEFT, right=RIGHT,
                         bottom=f"{-y:.3f}", tics=", ".join(tics), labels="\n".join(labels),
                         plots=plots) + inline


def draw(path, median):
    """median(test, gateway, figure) or None; False when nothing can be drawn."""
    groups = [g for g in multiples(median) if g[1]]
    if not groups:
        return False
    subprocess.run(["gnuplot"], input=script(path, groups), text=True, check=True, timeout=60)
    return True
