"""A run as text, as markdown, and as one row for each CPU model."""
import json
import os
import re
from pathlib import Path

from contest import NAMES, PEERS, geometric_mean

import architectures
import plot

HEAD = """# Speed by CPU

Made by `bench/compare`; don't edit. One row for each CPU model that was measured: times that Locution is faster than the faster of ONNX
Runtime and OpenVINO (above 1: Locution is ahead), float32, batch 1, at one thread and at two. The figures behind a row stand in the
JSON file of its name.

"""


def title_of(name):
    return architectures.TITLES.get(name, name)


def cell(row, engine):
    entry = row["engines"].get(engine)
    if entry is None:
        return "-"
    return "bad" if "bad" in entry else f"{entry['ms']:.3g}"


def engines_of(rows):
    return [e for e in NAMES if any(e in r["engines"] for r in rows)]


def means(rows):
    """{threads: geometric mean of the ratios}"""
    by_threads = {}
    for r in rows:
        if "ratio" in r:
            by_threads.setdefault(r["threads"], []).append(r["ratio"][0])
    return {t: geometric_mean(v) for t, v in sorted(by_threads.items())}


def as_text(rows):
    engines = engines_of(rows)
    lines = [["model", "threads", *(f"{NAMES[e]}, ms" for e in engines), "times faster than the best peer (10-90 %)", "compile, s"]]
    for r in rows:
        ratio = "{0:.3f} ({1:.3f}-{2:.3f})".format(*r["ratio"]) if "ratio" in r else "-"
        own = r["engines"].get("locution", {})
        lines.append([r["model"], str(r["threads"]), *(cell(r, e) for e in engines), ratio, f"{own['compile_s']:.2f}" if "ms" in own else "-"])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))) for line in lines)
    for r in rows:
        for e, entry in r["engines"].items():
            if "bad" in entry:
                text += f"\n{r['model']}, {r['threads']} threads: {NAMES[e]} is left out: {entry['bad']}"
    return text + "".join(f"\ngeometric mean at {t} thread{'s' if t > 1 else ''}: {m:.3f}" for t, m in means(rows).items())


def as_markdown(rows):
    """The README's table."""
    engines, threads = engines_of(rows), sorted({r["threads"] for r in rows})
    by_key = {(r["model"], r["threads"]): r for r in rows}
    head = ["model"]
    for t in threads:
        head += [f"{t} thread{'s' if t > 1 else ''}", *(NAMES[e] for e in engines if e != "locution")]
    out = ["| " + " | ".join([*head, "compile, s"]) + " |", "|---|" + "---:|" * len(head)]
    for name in dict.fromkeys(r["model"] for r in rows):
        cells, seconds = [title_of(name)], "-"
        for t in threads:
            r = by_key.get((name, t), {"engines": {}})
            cells += [cell(r, "locution"), *(cell(r, e) for e in engines if e != "locution")]
            if "ms" in r["engines"].get("locution", {}):
                seconds = f"{r['engines']['locution']['compile_s']:.1f}"
        out.append("| " + " | ".join([*cells, seconds]) + " |")
    return "\n".join(out) + "\n"


def cpu():
    """What the processor is called, with its microarchitecture where the name doesn't say it, and its widest vectors."""
    facts = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = re.sub(r"\s*(\(R\)|\(TM\)|\d+-Core|CPU|Processor|@.*)", "", facts.get("model name", "unknown")).strip()
    family, model = int(facts.get("cpu family", 0)), int(facts.get("model", 0))
    if facts.get("vendor_id") == "AuthenticAMD":
        zen = {0x17: "Zen 2" if model >= 0x30 else "Zen", 0x19: "Zen 4" if 0x10 <= model < 0x20 or model >= 0x60 else "Zen 3", 0x1A: "Zen 5"}.get(family)
        name += f" {zen}" if zen else ""
    flags = facts.get("flags", "").split()
    isa = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE4.2"
    return {"name": name, "isa": isa}


def slug(machine):
    return re.sub(r"[^a-z0-9]+", "-", f"{machine['name']} {machine['isa']}".lower()).strip("-")


def drawn(run):
    rows = []
    for name in dict.fromkeys(r["model"] for r in run["rows"]):
        by_threads = {r["threads"]: {e: d["ms"] for e, d in r["engines"].items() if "ms" in d} for r in run["rows"] if r["model"] == name}
        rows.append((title_of(name), by_threads))
    return plot.speeds(f"{run['machine']['name']}, {run['machine']['isa']}", rows, NAMES)


def write(path, content):
    part = f"{path}.part"
    Path(part).write_text(content)
    os.replace(part, path)


def record(folder, run):
    """The machine's row, its figures and its picture; returns the path of the figures."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    slim = dict(run, geometric_mean={str(t): m for t, m in means(run["rows"]).items()}, rows=[dict(r, engines={e: {k: v for k, v in d.items() if k != "rounds"} for e, d in r["engines"].items()}) for r in run["rows"]])
    path = folder / f"{slug(run['machine'])}.json"
    write(path, json.dumps(slim, indent=1) + "\n")
    write(path.with_suffix(".svg"), drawn(run))
    refresh(folder)
    return path


def refresh(folder):
    """The table of all rows, from the JSON files."""
    runs = [json.loads(p.read_text()) for p in sorted(Path(folder).glob("*.json"))]
    names = [n for n in architectures.TITLES if any(r["model"] == n for run in runs for r in run["rows"])]
    names += sorted({r["model"] for run in runs for r in run["rows"]} - set(names))
    out = HEAD + "| CPU | scheduler | geometric mean | " + " | ".join(names) + " |\n|---|---|---:|" + "---:|" * len(names) + "\n"
    for run in runs:
        ratios = {}
        for r in run["rows"]:
            ratios.setdefault(r["model"], {})[r["threads"]] = f"{r['ratio'][0]:.2f}" if "ratio" in r else "-"
        average = " / ".join(f"{m:.3f}" for m in run["geometric_mean"].values())
        cells = [" / ".join(ratios.get(n, {}).values()) or "-" for n in names]
        out += f"| {run['machine']['name']}, {run['machine']['isa']} | {run['scheduler']} | {average} | " + " | ".join(cells) + " |\n"
    write(Path(folder) / "README.md", out)
