// Parts of the page: elements, how policies look, tables, and files to take along.
// It assumes `studies` (model.js), `d3` and `Plot`.
"use strict";
const parts = (() => {
  const M = studies;
  const INKS = 8;
  const DASHES = [
    "",
    "7 3",
    "2 2.5",
    "9 3 2 3",
    "4 2",
    "12 3 2 3 2 3",
    "1 3",
    "14 4",
    "3 6",
    "8 2 1 2",
  ];
  const SYMBOLS = [
    "circle",
    "triangle2",
    "square2",
    "diamond2",
    "times",
    "plus",
    "star",
    "hexagon",
    "asterisk",
    "wye",
  ];
  const place = (policy) => M.policies.indexOf(policy);
  const ink = (policy) => `var(--c${place(policy) % INKS})`;
  const dash = (policy) => DASHES[place(policy) % DASHES.length];

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function tableOf(caption, head, rows) {
    const row = (cells, tag) =>
      make(
        "tr",
        {},
        ...cells.map((c, i) =>
          make(
            i === 0 || tag === "th" ? "th" : "td",
            { scope: tag === "th" ? "col" : i === 0 ? "row" : null },
            String(c),
          ),
        ),
      );
    const table = make(
      "table",
      {},
      make("caption", {}, caption),
      make("thead", {}, row(head, "th")),
      make("tbody", {}, ...rows.map((r) => row(r, "td"))),
    );
    return make(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
      table,
    );
  }

  function download(name, type, text) {
    const href = URL.createObjectURL(new Blob([text], { type }));
    const link = make("a", { href, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(href), 10000);
  }
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  // Words in lines of at most so many letters.
  function lines(text, most) {
    const all = [""];
    for (const word of text.split(" ")) {
      const line = `${all.at(-1)} ${word}`.trim();
      if (line.length <= most) all[all.length - 1] = line;
      else all.push(word);
    }
    return all;
  }
  // The figure as a file of its own: light colors in the place of this page's, a legend, and below
  // it what it shows and what is charged.
  function fileOf(svg, names, said) {
    const copy = svg.cloneNode(true);
    copy.querySelectorAll('[aria-label="tip"]').forEach((tip) => tip.remove());
    const LIGHT = {
      paper: "#fff",
      ink: "#111",
      soft: "#5b6068",
      wash: "#f3f5f8",
      a: "#0072b2",
      b: "#d55e00",
      c0: "#111111",
      c1: "#0072b2",
      c2: "#d55e00",
      c3: "#009e73",
      c4: "#b0578d",
      c5: "#c98600",
      c6: "#3b8fc2",
      c7: "#7a5c3e",
    };
    const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
    const columns = Math.max(1, Math.floor(width / 150)),
      rows = Math.ceil(names.length / columns);
    const legend = names
      .map((p, i) => {
        const [x, y] = [8 + (i % columns) * 150, -16 - (rows - 1 - Math.floor(i / columns)) * 18];
        return (
          `<path d="M${x} ${y}h34" stroke="${ink(p)}" stroke-width="1.8"` +
          ` stroke-dasharray="${dash(p)}"/>` +
          `<text x="${x + 40}" y="${y + 4}">${escaped(p)}</text>`
        );
      })
      .join("");
    const top = rows * 18 + 12;
    const below = lines(said, Math.floor(width / 6.2));
    const words = below
      .map((line, i) => [height + 14 + i * 15, escaped(line)])
      .map(([y, line]) => `<text x="8" y="${y}" font-size="11">${line}</text>`)
      .join("");
    const whole = height + top + below.length * 15 + 8;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("viewBox", `0 ${-top} ${width} ${whole}`);
    copy.setAttribute("height", whole);
    copy.setAttribute("style", "background:#fff;color:#111;font:13px sans-serif");
    const text = new XMLSerializer().serializeToString(copy);
    return text
      .replace("</svg>", `<g fill="#111">${legend}${words}</g></svg>`)
      .replace(/var\(--(\w+)\)/g, (_, name) => LIGHT[name] || "#111");
  }

  function sample(policy) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", 34);
    svg.setAttribute("height", 10);
    svg.setAttribute("aria-hidden", "true");
    const add = (tag, attributes) => {
      const child = document.createElementNS("http://www.w3.org/2000/svg", tag);
      Object.entries(attributes).forEach(([n, v]) => child.setAttribute(n, v));
      svg.append(child);
    };
    add("path", {
      d: "M0 5h34",
      stroke: ink(policy),
      "stroke-width": 1.8,
      "stroke-dasharray": dash(policy),
    });
    const symbol = Plot.scale({
      symbol: { range: [SYMBOLS[place(policy) % SYMBOLS.length]], domain: [0] },
    }).apply(0);
    add("path", {
      d: d3.symbol(symbol.draw ? symbol : d3.symbolCircle, 36)(),
      transform: "translate(17 5)",
      stroke: ink(policy),
      fill: "var(--paper)",
      "stroke-width": 1.4,
    });
    return svg;
  }

  return { make, tableOf, download, fileOf, sample, ink, dash, place, SYMBOLS };
})();
