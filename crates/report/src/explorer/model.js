// The studies of this page: counts, shares and their intervals, and the state in the address.
// Formulas as in crates/study/src/results.rs (000 §5; Wilson; Zou, Huang and Zhang).
// It assumes counts as unsigned 32-bit integers: by scenario, policy, cap, point of the sweep.
"use strict";
const studies = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const scenarios = data.scenarios;
  const Z = 1.959963984540054;
  let counts = null;

  async function load() {
    const bytes = Uint8Array.from(atob(data.counts), (c) => c.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    counts = new Uint32Array(await new Response(unpacked).arrayBuffer());
    let offset = 0;
    for (const s of scenarios) {
      s.offset = offset;
      s.curves = new Map();
      offset += s.policies.length * s.caps.length * s.sweep.values.length;
    }
    if (offset !== counts.length) throw new Error("the counts are not those of the scenarios");
  }

  function wilson(accepted, sets) {
    const p = accepted / sets;
    const middle = p + (Z * Z) / (2 * sets);
    const reach = Z * Math.sqrt((p * (1 - p)) / sets + (Z * Z) / (4 * sets * sets));
    const whole = 1 + (Z * Z) / sets;
    return [
      Math.min(Math.max((middle - reach) / whole, 0), p),
      Math.max(Math.min((middle + reach) / whole, 1), p),
    ];
  }

  const accepted = (s, policy, cap, at) => {
    const place = (s.policies.indexOf(policy) * s.caps.length + cap) * s.sweep.values.length;
    return counts[s.offset + place + at];
  };

  // W at every point of the sweep: {x, y, low, high}; nothing where the policy is not judged.
  function weighted(s, policy) {
    if (!s.policies.includes(policy)) return [];
    const kept = s.curves.get(policy);
    if (kept) return kept;
    const total = s.caps.reduce((a, b) => a + b, 0);
    const most = Math.max(...s.sets);
    const curve = s.sweep.values.map((x, at) => {
      let sum = 0,
        below = 0,
        above = 0;
      s.caps.forEach((cap, c) => {
        const n = accepted(s, policy, c, at),
          share = n / s.sets[c],
          weight = cap / total;
        const [low, high] = wilson(n, s.sets[c]);
        sum += cap * n * (most / s.sets[c]);
        below += (weight * (share - low)) ** 2;
        above += (weight * (high - share)) ** 2;
      });
      const y = sum / (total * most);
      return {
        policy,
        x,
        y,
        low: Math.max(y - Math.sqrt(below), 0),
        high: Math.min(y + Math.sqrt(above), 1),
      };
    });
    s.curves.set(policy, curve);
    return curve;
  }

  function byUtilization(s, policy, at) {
    if (!s.policies.includes(policy)) return [];
    return s.caps.map((x, cap) => {
      const n = accepted(s, policy, cap, at);
      const [low, high] = wilson(n, s.sets[cap]);
      return { policy, x, y: n / s.sets[cap], low, high };
    });
  }

  // The names of all facets in the order of their first scenario, and the values of each.
  const facets = new Map();
  for (const s of scenarios) {
    for (const [name, value] of s.facets) {
      if (!facets.has(name)) facets.set(name, []);
      if (!facets.get(name).includes(value)) facets.get(name).push(value);
    }
  }
  const facet = (s, name) => (s.facets.find((f) => f[0] === name) || ["", "none"])[1];
  for (const [name, values] of facets) {
    const lacks = scenarios.some((s) => !s.facets.some((f) => f[0] === name));
    if (lacks) values.push("none");
  }
  // Which statistic and load are charged often follows from the guarantee: they are no choice then.
  const follows = (name, from) => {
    const values = new Map();
    return scenarios.every((s) => {
      const known = values.get(facet(s, from)) ?? facet(s, name);
      values.set(facet(s, from), known);
      return known === facet(s, name);
    });
  };
  const differ = [...facets.keys()].filter((name) => facets.get(name).length > 1);
  const varied = differ.filter(
    (name) =>
      !["statistic", "load"].includes(name) ||
      !differ.some((from) => from === "guarantee" && follows(name, from)),
  );
  // What is the same of two scenarios is told apart by their names, or by their places.
  const labels = new Map();
  for (const s of scenarios) {
    const words = varied.map((name) => facet(s, name)).join(" · ") || s.title || s.name;
    labels.set(s, words);
  }
  const shared = (text) => [...labels.values()].filter((t) => t === text).length > 1;
  for (const [s, text] of [...labels]) if (shared(text)) labels.set(s, `${text} · ${s.name}`);
  for (const [s, text] of [...labels])
    if (shared(text)) labels.set(s, `${text} (${scenarios.indexOf(s) + 1})`);
  const label = (s) => labels.get(s);
  const policies = [...new Set(scenarios.flatMap((s) => s.policies))];

  // Under which load a policy is judged, where its name says so: "idle", "load", or "".
  const loadOf = (policy) => (policy.match(/ (idle|load)$/) || ["", ""])[1];
  const loads = ["idle", "load"].filter((load) => policies.some((p) => loadOf(p) === load));

  // The scenario with this value that is nearest to the one that is shown.
  function nearest(from, name, value) {
    let best = from,
      most = -1;
    for (const s of scenarios) {
      if (facet(s, name) !== value) continue;
      const same = varied.filter((n) => facet(s, n) === facet(from, n)).length;
      if (same > most) [best, most] = [s, same];
    }
    return best;
  }

  // 1 where A lies above B beyond both intervals, -1 where B does, 0 where neither.
  const beats = (a, b) => (a.low > b.high ? 1 : b.low > a.high ? -1 : 0);

  function toCsv(s, shown) {
    const quoted = (t) => (/[",\n]/.test(t) ? `"${t.replaceAll('"', '""')}"` : t);
    const head = [
      ...varied,
      "policy",
      "cap",
      `${s.sweep.name}_${s.sweep.unit}`,
      "sets",
      "accepted",
      "schedulability",
      "low",
      "high",
    ];
    const rows = [head];
    for (const policy of s.policies.filter((p) => shown.has(p))) {
      s.sweep.values.forEach((x, at) =>
        byUtilization(s, policy, at).forEach((p, cap) => {
          rows.push([
            ...varied.map((n) => facet(s, n)),
            policy,
            p.x,
            x,
            s.sets[cap],
            accepted(s, policy, cap, at),
            p.y,
            p.low,
            p.high,
          ]);
        }),
      );
    }
    return rows.map((row) => row.map((v) => quoted(String(v))).join(",")).join("\n") + "\n";
  }

  const UNITS = {
    ns: [
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "µs"],
      [1, "ns"],
    ],
    B: [
      [2 ** 30, "GiB"],
      [2 ** 20, "MiB"],
      [2 ** 10, "KiB"],
      [1, "B"],
    ],
  };
  const unit = (s, largest) =>
    (UNITS[s.sweep.unit] || [[1, s.sweep.unit]]).find((u) => largest >= u[0]) || [1, s.sweep.unit];
  // How many sets a cap has: one number, or from least to most.
  function sets(s) {
    const [least, most] = [Math.min(...s.sets), Math.max(...s.sets)];
    return least === most ? `${most}` : `${least} to ${most}`;
  }
  function written(s, value) {
    const [scale, name] = unit(s, value);
    return value === 0 ? "0" : `${+(value / scale).toPrecision(6)} ${name}`.trim();
  }

  return {
    data,
    scenarios,
    load,
    weighted,
    byUtilization,
    sets,
    facets,
    facet,
    varied,
    label,
    policies,
    loadOf,
    loads,
    nearest,
    beats,
    toCsv,
    unit,
    written,
  };
})();
