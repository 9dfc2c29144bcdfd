// The map of scenarios: where one policy keeps more than another, and the table behind it.
// It assumes `studies` (model.js), `parts` (parts.js), `d3` and `Plot`.
"use strict";
const createMap = ({ state, shown, changed, widthOf, narrow }) => {
  const M = studies;
  const { make, download, fileOf } = parts;
  const $ = (id) => document.getElementById(id);
  const three = (v) => v.toFixed(3);

  function runs(s, signs, sign) {
    const parts = [];
    signs.forEach((v, i) => {
      if (v !== sign) return;
      if (parts.length && parts.at(-1)[1] === i - 1) parts.at(-1)[1] = i;
      else parts.push([i, i]);
    });
    const x = (i) => M.written(s, s.sweep.values[i]);
    return (
      parts.map(([from, to]) => (from === to ? x(from) : `${x(from)} – ${x(to)}`)).join(", ") ||
      "nowhere"
    );
  }
  let mapped = "";
  function map() {
    const { a, b } = state;
    const judged = M.scenarios.filter((s) => s.policies.includes(a) && s.policies.includes(b));
    // One axis for all rows: that of the scenario that is shown, where it is among them.
    const first = judged.includes(shown()) ? shown() : judged[0];
    const both = judged.filter((s) => s.sweep.name === first.sweep.name);
    const key = [a, b, widthOf(false), first && first.sweep.name].join();
    if (key === mapped) return mark();
    mapped = key;
    const others = judged.length - both.length;
    $("map-note").textContent = !first
      ? `No scenario judges both ${a} and ${b}.`
      : `Blue, “A”: ${a} keeps more; orange, “B”: ${b} does. ` +
        "Pale where the 95 % intervals of the two overlap." +
        " Both judge the same sets, so that a pale difference may be real." +
        (others
          ? ` ${others} scenarios do not sweep ${first.sweep.name}: show one to see them.`
          : "");
    const cells = both.flatMap((s) => {
      const [wa, wb] = [M.weighted(s, a), M.weighted(s, b)];
      return wa.map((p, i) => ({ s, at: p.x, difference: p.y - wb[i].y, sign: M.beats(p, wb[i]) }));
    });
    drawMap(both, cells);
    tabulate(both, cells);
    mark();
  }
  // The row of the scenario that is shown.
  function mark() {
    for (const button of document.querySelectorAll("[data-scenario]")) {
      const current = Number(button.dataset.scenario) === state.scenario;
      button.closest("tr").setAttribute("aria-current", String(current));
    }
  }
  function drawMap(both, cells) {
    if (!both.length) {
      $("map").replaceChildren();
      return;
    }
    const s = both[0],
      width = widthOf(false),
      values = [...new Set(cells.map((c) => c.at))].sort(d3.ascending);
    const every = Math.ceil(values.length / (width / 90));
    const name = (i) => (narrow() ? `${i + 1}` : `${i + 1}. ${M.label(both[i])}`);
    const number = new Map(both.map((each, i) => [each, i]));
    const longest = d3.max(both, (_, i) => name(i).length);
    const svg = Plot.plot({
      width,
      height: both.length * 22 + 70,
      padding: 0.04,
      style: { background: "none", fontSize: "12px" },
      marginLeft: narrow() ? 34 : Math.min(width * 0.45, longest * 7 + 16),
      marginBottom: 42,
      x: {
        label: narrow() ? s.sweep.name : `${s.sweep.title}: ${s.sweep.name}`,
        domain: values,
        tickFormat: (v) => M.written(s, v),
        ticks: values.filter((_, i) => i % every === 0),
      },
      y: { label: null, domain: both.map((_, i) => i), tickFormat: name },
      marks: [
        Plot.cell(cells, {
          x: "at",
          y: (c) => number.get(c.s),
          fill: (c) =>
            c.difference > 0 ? "var(--a)" : c.difference < 0 ? "var(--b)" : "var(--wash)",
          fillOpacity: (c) =>
            c.sign ? 0.35 + 0.65 * Math.min(1, Math.abs(c.difference) * 3) : 0.18,
        }),
        Plot.tip(
          cells,
          Plot.pointer({
            x: "at",
            y: (c) => number.get(c.s),
            fill: "var(--paper)",
            title: (c) =>
              `${M.label(c.s)}\nat ${M.written(c.s, c.at)}: W(A) − W(B) = ${three(c.difference)}`,
          }),
        ),
      ],
      opacity: { type: "identity" },
    });
    svg.setAttribute("role", "img");
    svg.setAttribute(
      "aria-label",
      `Map of the scenarios: where ${state.a} or ${state.b} keeps more. ` +
        "The table below says the same.",
    );
    $("map").replaceChildren(
      svg,
      make(
        "button",
        {
          type: "button",
          "data-save": "map",
          onclick: () =>
            download("map.svg", "image/svg+xml", fileOf(svg, [], $("map-note").textContent)),
        },
        "Download figure (SVG)",
      ),
    );
  }
  function tabulate(both, cells) {
    const head = make(
      "thead",
      {},
      make(
        "tr",
        {},
        ...["scenario", `A: ${state.a} beats B`, `B: ${state.b} beats A`].map((t) =>
          make("th", { scope: "col" }, t),
        ),
      ),
    );
    const rows = both.map((s, i) => {
      const signs = cells.filter((c) => c.s === s).map((c) => c.sign);
      const index = M.scenarios.indexOf(s);
      return make(
        "tr",
        {},
        make(
          "th",
          { scope: "row" },
          make(
            "button",
            {
              type: "button",
              "data-scenario": index,
              onclick: () => {
                changed(() => {
                  state.scenario = index;
                });
                document.querySelector(`[data-scenario="${index}"]`).focus();
              },
            },
            `${i + 1}. ${M.label(s)}`,
          ),
        ),
        make("td", {}, runs(s, signs, 1)),
        make("td", {}, runs(s, signs, -1)),
      );
    });
    $("map-table").replaceChildren(
      make("caption", {}, "Where the 95 % intervals are apart"),
      head,
      make("tbody", {}, ...rows),
    );
  }
  return map;
};
