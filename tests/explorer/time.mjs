// How long the explorer takes to open, and to answer whatever can be chosen, in headless Chromium.
// Usage: node time.mjs PAGE. CHROMIUM names the browser. Every control is changed to each of its
// values, and back; an answer ends when the browser has drawn it.
import { chromium } from "playwright-core";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const url = pathToFileURL(resolve(process.argv[2])).href;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"];
const middle = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)];
const shown = (all) => `${middle(all).toFixed(0)} ms, at most ${Math.max(...all).toFixed(0)} ms`;

const browser = await chromium.launch({ executablePath, args });
const opened = [];
let tab;
for (let i = 0; i < 5; i += 1) {
  tab = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  const start = performance.now();
  await tab.goto(url);
  await tab.waitForFunction(() => document.documentElement.dataset.ready);
  opened.push(performance.now() - start);
}
const answered = await tab.evaluate(async () => {
  const times = { "a choice": [], "a box": [], "the slider": [] };
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const timed = async (kind, change) => {
    await drawn();
    const start = performance.now();
    change();
    const ours = performance.now() - start;
    await drawn();
    times[kind].push([ours, performance.now() - start]);
  };
  for (const select of document.querySelectorAll("select")) {
    const before = select.value;
    for (const value of [...[...select.options].map((o) => o.value), before])
      await timed("a choice", () => {
        select.value = value;
        select.dispatchEvent(new Event("change", { bubbles: true }));
      });
  }
  for (const box of document.querySelectorAll("input[type=checkbox]:enabled"))
    for (let i = 0; i < 2; i += 1) await timed("a box", () => box.click());
  const slider = document.getElementById("at");
  for (let at = Number(slider.max); at >= 0; at -= 1)
    await timed("the slider", () => {
      slider.value = at;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    });
  return times;
});
await browser.close();
console.log(`opened in ${shown(opened)} (${opened.length} times)`);
for (const [kind, times] of Object.entries(answered)) {
  const [ours, all] = [0, 1].map((i) => times.map((t) => t[i]));
  const often = `${times.length} times`;
  console.log(`${kind}: answered in ${shown(ours)}, drawn in ${shown(all)} (${often})`);
}
