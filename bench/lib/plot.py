"""The speeds as a picture: an SVG of horizontal bars, written by hand so that it needs no library and diffs well."""
from html import escape

COLOURS = {"locution": "#2563eb", "onnxruntime": "#9ca3af", "openvino": "#d6a14a"}
WIDTH, LABEL, BAR, GAP, TOP = 900, 240, 11, 14, 64


def text(x, y, content, size=13, anchor="start", weight="normal", colour="#1f2937"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">{escape(content)}</text>'


def speeds(title, rows, names):
    """rows: (label, {threads: {engine: ms}}); a bar is a speed over that of the fastest other engine (longer is faster)."""
    threads = sorted({t for _, by_threads in rows for t in by_threads})
    engines = [e for e in names if any(e in ms for _, by in rows for ms in by.values())]
    panel = (WIDTH - LABEL - 24) / max(1, len(threads))
    height = TOP + len(rows) * (len(engines) * (BAR + 2) + GAP) + 34
    relative = {}
    for label, by_threads in rows:
        for t, ms in by_threads.items():
            peers = [v for e, v in ms.items() if e != "locution"]
            relative[label, t] = {e: min(peers) / v for e, v in ms.items()} if peers else {}
    longest = max([1.1, *(v for r in relative.values() for v in r.values())])
    scale = (panel - 56) / longest
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" role="img" aria-label="{escape(title)}">',
           f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>', text(16, 24, title, 15, weight="600")]
    x = WIDTH - 16
    for e in reversed(engines):
        x -= 7.2 * len(names[e]) + 24
        out += [f'<rect x="{x:.1f}" y="14" width="11" height="11" fill="{COLOURS[e]}"/>', text(x + 15, 24, names[e], 12)]
    for p, t in enumerate(threads):
        left = LABEL + p * panel
        one = left + scale
        out.append(text(left, 50, f"{t} thread{'s' if t > 1 else ''}", 12, weight="600"))
        out.append(f'<line x1="{one:.1f}" y1="{TOP - 8}" x2="{one:.1f}" y2="{height - 28}" stroke="#9ca3af" stroke-dasharray="3 3"/>')
        y = TOP
        for label, by_threads in rows:
            if p == 0:
                out.append(text(LABEL - 10, y + len(engines) * (BAR + 2) / 2 + 4, label, 12, "end"))
            for e in engines:
                value = relative.get((label, t), {}).get(e)
                if value:
                    out.append(f'<rect x="{left:.1f}" y="{y}" width="{value * scale:.1f}" height="{BAR}" fill="{COLOURS[e]}"/>')
                    out.append(text(left + value * scale + 4, y + BAR - 1.5, f"{by_threads[t][e]:.3g} ms", 10, colour="#4b5563"))
                y += BAR + 2
            y += GAP
    out += [text(LABEL, height - 10, "speed over that of the fastest other engine (dashed: 1); longer is faster", 11, colour="#4b5563"), "</svg>"]
    return "\n".join(out) + "\n"
