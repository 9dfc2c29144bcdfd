// What the reader sees and does: charts by Observable Plot, tables behind them, the form, the map.
// It assumes `studies` (model.js), `parts` (parts.js), `d3` and `Plot`.
"use strict";
const view = (() => {
  const $ = (id) => document.getElementById(id);
  const M = studies;
  const { make, tableOf, download, fileOf, sample, ink, dash, place, SYMBOLS } = parts;
  const three = (v) => v.toFixed(3);
  const state = {
    scenario: 0,
    other: -1,
    at: 0,
    shown: new Set(M.policies),
    bands: true,
    log: false,
    a: M.policies[0],
    b: M.policies[1] || M.policies[0],
  };
  const shown = () => M.scenarios[state.scenario];

  const say = (text) => {
    $("said").textContent = text;
  };

  // The place of a value of the sweep in another scenario: the nearest one.
  function placeIn(s, value) {
    const far = s.sweep.values.map((v) => Math.abs(v - value));
    return far.indexOf(Math.min(...far));
  }

  function toHash() {
    const hidden = M.policies.filter((p) => !state.shown.has(p));
    const all = {
      s: state.scenario,
      t: state.other >= 0 ? state.other : null,
      x: shown().sweep.values[state.at],
      hide: hidden.join(",") || null,
      bands: state.bands ? null : 0,
      log: state.log ? 1 : null,
      a: state.a,
      b: state.b,
    };
    const given = Object.entries(all).filter((e) => e[1] !== null);
    return "#" + new URLSearchParams(given).toString();
  }
  function fromHash() {
    const given = new URLSearchParams(location.hash.slice(1));
    const index = (name, none) => {
      const n = Number(given.get(name) ?? none);
      return Number.isInteger(n) && n >= 0 && n < M.scenarios.length ? n : none;
    };
    state.scenario = index("s", 0);
    state.other = index("t", -1);
    state.at = placeIn(shown(), Number(given.get("x") ?? 0) || 0);
    const hidden = (given.get("hide") ?? "").split(",");
    state.shown = new Set(M.policies.filter((p) => !hidden.includes(p)));
    state.bands = given.get("bands") !== "0";
    state.log = given.get("log") === "1";
    if (M.policies.includes(given.get("a"))) state.a = given.get("a");
    if (M.policies.includes(given.get("b"))) state.b = given.get("b");
  }

  function changed(change, said) {
    const start = performance.now();
    const value = shown().sweep.values[state.at];
    change();
    state.at = placeIn(shown(), said === "at" ? shown().sweep.values[state.at] : value);
    history.replaceState(null, "", toHash());
    draw();
    say(said && said !== "at" ? said : spoken());
    document.documentElement.dataset.answered = (performance.now() - start).toFixed(1);
  }
  function spoken() {
    const s = shown();
    const x = `${s.sweep.name} = ${M.written(s, s.sweep.values[state.at])}`;
    return `${M.label(s)}, at ${x}.`;
  }

  function choose(name, value) {
    const s = M.nearest(shown(), name, value);
    const moved = M.varied.filter((n) => n !== name && M.facet(s, n) !== M.facet(shown(), n));
    const said = moved.length
      ? `There is no study with ${value} and the rest as it was: also changed ${moved.join(", ")}.`
      : "";
    changed(() => {
      state.scenario = M.scenarios.indexOf(s);
    }, said);
  }

  // Shows the policies under this load, or under both.
  function chooseLoad(load) {
    changed(() => {
      for (const policy of M.policies.filter(M.loadOf))
        state.shown[!load || M.loadOf(policy) === load ? "add" : "delete"](policy);
    });
  }
  // The only load of which a policy is shown; "" if there are several.
  function onlyLoad() {
    const seen = new Set([...state.shown].map(M.loadOf).filter((load) => load));
    return seen.size === 1 ? [...seen][0] : "";
  }

  // ---- charts

  function axisOf(s) {
    const values = s.sweep.values,
      [scale, unit] = M.unit(s, values.at(-1));
    const log = state.log && values.at(-1) > 0;
    const least = values.find((v) => v > 0);
    // Sizes by their logarithm have powers of two for ticks, as few as have room.
    const powers = d3.range(0, 60).map((n) => 2 ** n);
    const inside = powers.filter((size) => least <= size && size <= values.at(-1));
    const sizes = log && s.sweep.unit === "B";
    const few = inside.filter((_, i) => i % Math.ceil(inside.length / (narrow() ? 4 : 8)) === 0);
    return {
      of: (p) => (log ? Math.max(p.x, least) : p.x) / scale,
      // 0 has no place on a logarithmic axis.
      has: (p) => !log || p.x > 0,
      options: {
        label: (narrow() ? s.sweep.name : s.sweep.title) + (sizes ? "" : ` (${unit})`),
        type: log ? "log" : "linear",
        base: sizes ? 2 : 10,
        ticks: sizes ? few.map((size) => size / scale) : 6,
        tickFormat: sizes ? (v) => M.written(s, v * scale) : log ? "~g" : undefined,
        grid: true,
      },
    };
  }
  const narrow = () => window.innerWidth < 600;
  // Every mark of a curve: band, line, a dozen symbols, and the values where the pointer is.
  function marks(curves, x) {
    const line = ([policy, points]) => {
      const every = Math.max(1, Math.ceil(points.length / 12));
      const some = points.filter((_, i) => (i + place(policy)) % every === 0);
      return [
        Plot.line(points, { x, y: "y", stroke: ink(policy), strokeDasharray: dash(policy) }),
        Plot.dot(some, {
          x,
          y: "y",
          stroke: ink(policy),
          fill: "var(--paper)",
          symbol: SYMBOLS[place(policy) % SYMBOLS.length],
          r: 3.6,
        }),
      ];
    };
    const all = curves.flatMap((c) => c[1]);
    const fill = { value: (p) => ink(p.policy), scale: null };
    const bands = state.bands
      ? [Plot.areaY(all, { x, y1: "low", y2: "high", z: "policy", fill, fillOpacity: 0.14 })]
      : [];
    const title = (p) => `${p.policy}\n${three(p.y)} (${three(p.low)} to ${three(p.high)})`;
    return [
      ...bands,
      ...curves.flatMap(line),
      Plot.tip(all, Plot.pointer({ x, y: "y", title, fill: "var(--paper)" })),
    ];
  }
  const widthOf = (two) => {
    const room = $("charts").clientWidth;
    return Math.max(280, window.innerWidth > 896 ? (room - (two ? 16 : 0)) / (two ? 2 : 1) : room);
  };
  function plot(label, said, axis, y, all) {
    const width = widthOf(true);
    const svg = Plot.plot({
      width,
      height: Math.min(400, Math.max(260, width * 0.62)),
      marginTop: 28,
      marginLeft: 46,
      marginBottom: 42,
      marginRight: 24,
      style: { background: "none", fontSize: "13px" },
      x: axis,
      y: { label: y, domain: [0, 1], grid: true, ticks: 5 },
      marks: all,
    });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${label}. ${said}`);
    return svg;
  }
  const curvesOf = (s, points) =>
    s.policies.filter((p) => state.shown.has(p)).map((p) => [p, points(p)]);

  // The chart of W is kept while only the point moves: then its rule alone does.
  const kept = new Map();
  function keep(key, drawn) {
    if (!kept.has(key)) {
      if (kept.size > 12) kept.clear();
      kept.set(key, drawn());
    }
    return kept.get(key);
  }
  const keyOf = (s, ...more) =>
    [M.scenarios.indexOf(s), state.bands, state.log, widthOf(true), ...more, ...state.shown].join();
  function weightedChart(s) {
    const svg = keep(keyOf(s, "W"), () => drawWeighted(s));
    const point = { x: s.sweep.values[placeOf(s)] };
    const x = svg.scale("x").apply(axisOf(s).of(point));
    const rule = svg.querySelector("[data-rule]");
    rule.setAttribute("visibility", axisOf(s).has(point) ? "visible" : "hidden");
    rule.setAttribute("x1", x);
    rule.setAttribute("x2", x);
    return svg;
  }
  function drawWeighted(s) {
    const { of, has, options } = axisOf(s);
    const curves = curvesOf(s, (p) => M.weighted(s, p).filter(has));
    const said = curves.map(([p, c]) => `${p} goes from ${three(c[0].y)} to ${three(c.at(-1).y)}`);
    const svg = plot(
      `Weighted schedulability W(${s.sweep.name}), ${M.label(s)}`,
      said.join("; "),
      options,
      `W(${s.sweep.name})`,
      marks(curves, of),
    );
    const rule = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const given = {
      "data-rule": "",
      y1: svg.scale("y").apply(0),
      y2: svg.scale("y").apply(1),
      stroke: "var(--soft)",
    };
    Object.entries(given).forEach(([name, value]) => rule.setAttribute(name, value));
    svg.append(rule);
    svg.addEventListener("click", (event) => {
      const scale = svg.scale("x");
      const box = svg.getBoundingClientRect(),
        ratio = svg.width.baseVal.value / box.width;
      const [unit] = M.unit(s, s.sweep.values.at(-1));
      const value = scale.invert((event.clientX - box.left) * ratio) * unit;
      changed(() => {
        state.at = placeIn(shown(), value);
      }, "at");
    });
    return svg;
  }
  const utilizationChart = (s) => keep(keyOf(s, "S", placeOf(s)), () => drawUtilization(s));
  function drawUtilization(s) {
    const curves = curvesOf(s, (p) => M.byUtilization(s, p, placeOf(s)));
    const x = M.written(s, s.sweep.values[placeOf(s)]);
    const label = `Schedulability S(U) at ${s.sweep.name} = ${x}`;
    return plot(
      `${label}, ${M.label(s)}`,
      "The table behind it has every value.",
      {
        label: s.shares ? "total utilization U, as a share of all processors" : "total utilization U",
        grid: true,
        domain: [0, s.shares ? 1 : s.processors],
      },
      "S(U)",
      marks(curves, "x"),
    );
  }
  const placeOf = (s) => placeIn(s, shown().sweep.values[state.at]);

  function charged(s) {
    const facts = ["accounting", "profile", "statistic", "load"].filter((n) =>
      s.facets.some((f) => f[0] === n),
    );
    const zero = state.log && s.sweep.values.some((value) => value <= 0);
    return [
      s.charges || `Charged: ${facts.map((n) => `${n} ${M.facet(s, n)}`).join(", ")}.`,
      ...(zero ? ["0 has no place on the logarithmic x axis."] : []),
      `${M.sets(s)} task sets for each of ${s.caps.length} caps, ${s.processors} processors.`,
      ...s.notes,
    ].join(" ");
  }
  const opened = new Set();
  // A chart with its caption, the file of it with what is said below, and the table behind it.
  function figure(s, title, svg, caption, name, table) {
    const save = make(
      "button",
      {
        type: "button",
        "data-save": name,
        onclick: () =>
          download(
            `${name}.svg`,
            "image/svg+xml",
            fileOf(
              svg,
              s.policies.filter((p) => state.shown.has(p)),
              `${title}: ${s.title || M.label(s)}. ${s.charges || charged(s)}`,
            ),
          ),
      },
      `Download figure (SVG)`,
    );
    const details = make("details", {}, make("summary", {}, `Values of this chart`));
    const fill = () => {
      opened[details.open ? "add" : "delete"](name);
      if (details.open && details.children.length < 2) details.append(table());
    };
    details.addEventListener("toggle", fill);
    // A table that was open stays so when its values change.
    details.open = opened.has(name);
    fill();
    return make(
      "figure",
      { "data-figure": name },
      make("h3", {}, title),
      svg,
      make("figcaption", {}, caption),
      save,
      details,
    );
  }
  function column(s, suffix) {
    const x = M.written(s, s.sweep.values[placeOf(s)]);
    const policies = s.policies.filter((p) => state.shown.has(p));
    const weighted = () =>
      tableOf(
        `W(${s.sweep.name}) of ${M.label(s)}`,
        [s.sweep.name, ...policies],
        s.sweep.values.map((v, i) => [
          M.written(s, v),
          ...policies.map((p) => three(M.weighted(s, p)[i].y)),
        ]),
      );
    const by = () =>
      tableOf(
        `S(U) of ${M.label(s)} at ${s.sweep.name} = ${x}`,
        ["U", ...policies],
        s.caps.map((cap, i) => [
          cap,
          ...policies.map((p) => three(M.byUtilization(s, p, placeOf(s))[i].y)),
        ]),
      );
    return [
      make("h2", {}, M.label(s)),
      make(
        "div",
        { class: "pair" },
        figure(
          s,
          `Weighted schedulability W(${s.sweep.name})`,
          weightedChart(s),
          charged(s),
          `weighted${suffix}`,
          weighted,
        ),
        figure(
          s,
          `Schedulability S(U) at ${s.sweep.name} = ${x}`,
          utilizationChart(s),
          "What stands behind the point on the left.",
          `schedulability${suffix}`,
          by,
        ),
      ),
      values(s, x, policies, suffix),
    ];
  }
  function values(s, x, policies, suffix) {
    const rows = policies.map((p) => {
      const w = M.weighted(s, p)[placeOf(s)];
      return [p, three(w.y), `${three(w.low)} to ${three(w.high)}`];
    });
    const table = tableOf(
      `Weighted schedulability at ${s.sweep.name} = ${x}`,
      ["policy", `W(${s.sweep.name})`, "95 % interval"],
      rows,
    );
    table.id = `values${suffix}`;
    return table;
  }

  const map = createMap({ state, shown, changed, widthOf, narrow });

  // ---- the form

  function options(select, values, chosen) {
    select.replaceChildren(
      ...values.map(([value, text]) =>
        make("option", { value, selected: String(value) === String(chosen) }, text),
      ),
    );
    select.value = chosen;
  }
  function build() {
    for (const name of M.varied) {
      const select = make("select", {
        "data-facet": name,
        onchange: (e) => choose(name, e.target.value),
      });
      options(
        select,
        M.facets.get(name).map((v) => [v, v]),
        M.facet(shown(), name),
      );
      $("scenario").append(make("label", {}, name, select));
    }
    if (M.loads.length > 1) {
      const select = make("select", {
        id: "load",
        onchange: (e) => chooseLoad(e.target.value),
      });
      options(select, [["", "idle and load"], ...M.loads.map((load) => [load, load])], "");
      $("scenario").append(make("label", {}, "idle or load", select));
    }
    const other = make("select", {
      id: "other",
      onchange: (e) =>
        changed(() => {
          state.other = Number(e.target.value);
        }),
    });
    options(other, [[-1, "nothing"], ...M.scenarios.map((s, i) => [i, M.label(s)])], state.other);
    $("scenario").append(make("label", {}, "Beside it", other));
    for (const policy of M.policies) {
      const box = make("input", {
        type: "checkbox",
        "data-policy": policy,
        onchange: (e) =>
          changed(() => {
            state.shown[e.target.checked ? "add" : "delete"](policy);
          }),
      });
      $("policies").append(make("label", { class: "row" }, box, sample(policy), policy));
    }
    for (const id of ["a", "b"])
      $(id).addEventListener("change", (e) =>
        changed(() => {
          state[id] = e.target.value;
        }),
      );
    for (const id of ["bands", "log"])
      $(id).addEventListener("change", (e) =>
        changed(() => {
          state[id] = e.target.checked;
        }),
      );
    $("at").addEventListener("input", (e) =>
      changed(() => {
        state.at = Number(e.target.value);
      }, "at"),
    );
    $("csv").addEventListener("click", () =>
      download("study.csv", "text/csv", M.toCsv(shown(), state.shown)),
    );
    $("link").addEventListener("click", async () => {
      history.replaceState(null, "", toHash());
      try {
        await navigator.clipboard.writeText(location.href);
        say("The link is copied.");
      } catch {
        say(`The link stands in the address bar: ${location.href}`);
      }
    });
    $("skip").addEventListener("click", (e) => {
      e.preventDefault();
      $("charts").focus();
    });
    const origin = [...new Set(M.scenarios.map((s) => `${s.source}: ${s.command}`))];
    $("origin").replaceChildren(
      ...origin.map((t) => make("p", {}, t)),
      make(
        "p",
        {},
        `Made by ${M.data.program}.` +
          " Charts: Observable Plot © Observable, Inc., D3 © Mike Bostock (ISC license).",
      ),
    );
    $("intro").textContent =
      `${M.scenarios.length} scenarios, ${M.policies.length} policies. ` +
      "S(U) is the share of task sets that a policy keeps; W weighs it by the utilization U.";
  }
  function draw() {
    const s = shown();
    for (const select of document.querySelectorAll("[data-facet]"))
      select.value = M.facet(s, select.dataset.facet);
    for (const box of document.querySelectorAll("[data-policy]")) {
      box.checked = state.shown.has(box.dataset.policy);
      box.disabled = !s.policies.includes(box.dataset.policy) && state.other < 0;
    }
    $("other").value = state.other;
    if ($("load")) $("load").value = onlyLoad();
    $("at").max = s.sweep.values.length - 1;
    $("at").value = state.at;
    $("at-name").textContent = `${s.sweep.title}: ${s.sweep.name}\u00a0=`;
    $("at-value").textContent = M.written(s, s.sweep.values[state.at]);
    $("at").setAttribute("aria-valuetext", M.written(s, s.sweep.values[state.at]));
    $("bands").checked = state.bands;
    $("log").checked = state.log;
    options(
      $("a"),
      M.policies.map((p) => [p, p]),
      state.a,
    );
    options(
      $("b"),
      M.policies.map((p) => [p, p]),
      state.b,
    );
    const two = state.other >= 0;
    $("charts").className = two ? "two" : "one";
    const columns = [column(s, ""), ...(two ? [column(M.scenarios[state.other], "-2")] : [])];
    $("charts").replaceChildren(...columns.map((parts) => make("section", {}, ...parts)));
    map();
  }

  async function start() {
    try {
      await M.load();
    } catch (error) {
      say(
        `The data of this page cannot be read (${error.message}): ` +
          "a browser of 2023 or later is needed.",
      );
      return;
    }
    fromHash();
    build();
    draw();
    addEventListener("hashchange", () => {
      fromHash();
      draw();
    });
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth !== width) {
        width = innerWidth;
        draw();
      }
    });
    document.documentElement.dataset.ready = performance.now().toFixed(0);
  }
  start();
  return { state };
})();
