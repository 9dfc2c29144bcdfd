// Drives the explorer in headless Chromium: values, keyboard, dark, phone, links, files, tables.
// Usage: node test.mjs PAGE SIZES DIR...; DIR are the studies of PAGE, in its order. CHROMIUM names
// the browser; SHOTS a directory for screenshots. It expects two studies or more, whose delays
// and policies are those of the presets of 002 §6.3; the page SIZES has the first of them and one
// by working set size, of policies under both loads, with long names.
import { chromium } from "playwright-core";
import { existsSync, mkdtempSync, readFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const [page, sizes, ...dirs] = process.argv.slice(2);
const urlOf = (path) => pathToFileURL(resolve(path)).href;
const results = dirs.map((dir) => JSON.parse(readFileSync(join(dir, "results.json"), "utf8")));
const executablePath =
  process.env.CHROMIUM ??
  ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });
const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

const DESK = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true };
const profile = mkdtempSync(join(tmpdir(), "explorer-"));
let number = 0;

// A page of its own in a browser with a fresh profile; errors on its console fail the test.
async function open(options, hash = "", shown = page) {
  number += 1;
  const context = await chromium.launchPersistentContext(join(profile, String(number)), {
    executablePath,
    args,
    acceptDownloads: true,
    ...options,
  });
  const tab = context.pages()[0] ?? (await context.newPage());
  const errors = [];
  tab.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  tab.on("pageerror", (error) => errors.push(String(error)));
  tab.on("request", (request) => {
    if (/^https?:/.test(request.url())) errors.push(`fetched ${request.url()}`);
  });
  await tab.goto(urlOf(shown) + hash);
  await tab.waitForFunction(() => document.documentElement.dataset.ready);
  return {
    tab,
    close: async () => {
      await context.close();
      assert.deepEqual(errors, []);
    },
  };
}
const shot = (tab, name) =>
  shots && tab.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
const data = (tab, name) => tab.evaluate((n) => Number(document.documentElement.dataset[n]), name);
const valuesOf = (tab, id = "values") =>
  tab.$$eval(`#${id} tbody tr`, (rows) =>
    Object.fromEntries(rows.map((r) => [r.cells[0].textContent, Number(r.cells[1].textContent)])),
  );
function same(shown, study, at) {
  const { policies } = results[study];
  assert.deepEqual(
    Object.keys(shown),
    policies.map((p) => p.policy),
  );
  for (const p of policies) {
    assert.ok(
      Math.abs(shown[p.policy] - p.weighted[at]) < 0.00051,
      `${p.policy}: ${shown[p.policy]} is not ${p.weighted[at]}`,
    );
  }
}
const textOf = async (download) => readFileSync(await download.path(), "utf8");

const tests = {
  async "values are those of results.json, and change with the slider by keyboard"() {
    const { tab, close } = await open(DESK);
    same(await valuesOf(tab), 0, 0);
    await tab.focus("#at");
    for (let i = 0; i < 5; i += 1) await tab.keyboard.press("ArrowRight");
    same(await valuesOf(tab), 0, 5);
    assert.match(await tab.getAttribute("#at", "aria-valuetext"), /^500 µs$/);
    assert.match(await tab.textContent("#said"), /D = 500 µs/);
    await shot(tab, "light");
    console.log(
      `# opened in ${await data(tab, "ready")} ms, answered in ${await data(tab, "answered")} ms`,
    );
    await close();
  },
  async "every control is reached by the Tab key and has a name"() {
    const { tab, close } = await open(DESK);
    const controls = "a[href],button,select,input,summary";
    const wanted = await tab.$$eval(controls, (all) => all.filter((e) => !e.disabled).length);
    const reached = new Set();
    for (let i = 0; i < wanted + 40; i += 1) {
      await tab.keyboard.press("Tab");
      reached.add(
        await tab.evaluate((all) => {
          const e = document.activeElement;
          return e.matches(all) ? [...document.querySelectorAll(all)].indexOf(e) : -1;
        }, controls),
      );
    }
    reached.delete(-1);
    assert.equal(reached.size, wanted);
    const unnamed = await tab.$$eval(
      "button,select,input",
      (all) =>
        all.filter(
          (e) => !(e.labels?.length || e.textContent.trim() || e.getAttribute("aria-label")),
        ).length,
    );
    assert.equal(unnamed, 0);
    const charts = await tab.$$eval("#charts svg[role=img], #map svg[role=img]", (all) =>
      all.map((svg) => svg.getAttribute("aria-label")),
    );
    assert.equal(charts.length, 3);
    assert.match(charts[0], /P-EDF goes from 0\.\d+ to 0\.\d+/);
    await close();
  },
  async "two scenarios stand side by side, and a link brings the same view back"() {
    const { tab, close } = await open(DESK);
    await tab.selectOption("#other", "1");
    await tab.uncheck('[data-policy="G-EDF"]');
    await tab.check("#log");
    const left = await valuesOf(tab),
      right = await valuesOf(tab, "values-2");
    assert.ok(!("G-EDF" in left) && "P-EDF" in right);
    assert.ok(Math.abs(right["P-EDF"] - results[1].policies[0].weighted[0]) < 0.00051);
    await shot(tab, "beside");
    const { hash } = new URL(tab.url());
    await close();
    const again = await open(DESK, hash);
    assert.deepEqual(await valuesOf(again.tab), left);
    assert.deepEqual(await valuesOf(again.tab, "values-2"), right);
    assert.ok(await again.tab.isChecked("#log"));
    await again.close();
  },
  async "the table of the chart has the standard schedulability behind a point"() {
    const { tab, close } = await open(DESK);
    await tab.click('[data-figure="schedulability"] summary');
    // The page makes the table when it is told that it was opened, a moment after the click.
    await tab.waitForSelector('[data-figure="schedulability"] tbody tr');
    const first = await tab.$$eval('[data-figure="schedulability"] tbody tr', (rows) =>
      rows.map((r) => Number(r.cells[1].textContent)),
    );
    const { accepted } = results[0].policies[0];
    assert.deepEqual(
      first,
      accepted.map((row) => Number((row[0] / results[0].sets).toFixed(3))),
    );
    await close();
  },
  async "the map tells where A beats B, and its rows choose a scenario"() {
    const { tab, close } = await open(DESK);
    await tab.selectOption("#a", "G-EDF");
    await tab.selectOption("#b", "P-EDF");
    const rows = await tab.$$eval("#map-table tbody tr", (all) =>
      all.map((r) => [...r.cells].map((c) => c.textContent)),
    );
    assert.equal(rows.length, results.length);
    results.forEach((study, i) => {
      const [p, g] = ["P-EDF", "G-EDF"].map((name) =>
        study.policies.find((x) => x.policy === name),
      );
      if (rows[i][1] !== "nowhere")
        assert.ok(study.axis.points.some((_, d) => g.weighted[d] > p.weighted[d]));
      if (rows[i][2] !== "nowhere")
        assert.ok(study.axis.points.some((_, d) => p.weighted[d] > g.weighted[d]));
    });
    assert.ok(rows.some((row) => row[1] !== "nowhere" || row[2] !== "nowhere"));
    await tab.focus('[data-scenario="1"]');
    await tab.keyboard.press("Enter");
    same(await valuesOf(tab), 1, 0);
    await close();
  },
  async "idle or load is one choice, and the link keeps it"() {
    const { tab, close } = await open(DESK, "#s=1", sizes);
    const checked = (t) =>
      t.$$eval("[data-policy]:checked:enabled", (all) => all.map((e) => e.dataset.policy));
    const both = await checked(tab);
    assert.ok(both.some((p) => p.endsWith(" idle")) && both.some((p) => p.endsWith(" load")));
    await tab.selectOption("#load", "idle");
    // A policy whose name says nothing of it stays.
    const idle = both.filter((p) => !p.endsWith(" load"));
    assert.deepEqual(await checked(tab), idle);
    assert.deepEqual(Object.keys(await valuesOf(tab)).toSorted(), idle.toSorted());
    const { hash } = new URL(tab.url());
    await close();
    const again = await open(DESK, hash, sizes);
    assert.equal(await again.tab.inputValue("#load"), "idle");
    assert.deepEqual(await checked(again.tab), idle);
    await again.tab.selectOption("#load", "");
    assert.deepEqual(await checked(again.tab), both);
    await again.close();
  },
  async "scenarios of another axis are told apart, and have no cells on the map of this one"() {
    const { tab, close } = await open(DESK, "#s=1", sizes);
    assert.equal(await tab.inputValue('[data-facet="swept"]'), "ξ");
    await tab.selectOption("#a", "P-EDF idle");
    await tab.selectOption("#b", "P-EDF load");
    const names = await tab.$$eval("#map svg text", (all) => all.map((e) => e.textContent));
    assert.ok(names.includes("48 KiB"), names.join());
    await tab.selectOption("#a", "P-EDF");
    await tab.selectOption("#b", "G-EDF");
    assert.equal((await tab.$$("#map-table tbody tr")).length, 1);
    // P-EDF is in both studies, by D in one and by ξ in the other.
    await tab.selectOption("#b", "P-EDF");
    assert.equal((await tab.$$("#map-table tbody tr")).length, 1);
    assert.match(await tab.textContent("#map-note"), /1 scenarios do not sweep ξ/);
    await tab.selectOption('[data-facet="swept"]', "D");
    assert.match(await tab.textContent("#map-note"), /1 scenarios do not sweep D/);
    const caption = await tab.textContent("figcaption");
    assert.match(caption, /^Charged: D once a job; no kernel overheads\./);
    await close();
  },
  async "0 is not drawn on a logarithmic axis, and the caption says so"() {
    const { tab, close } = await open(DESK, "#s=1", sizes);
    const drawn = '[data-figure="weighted"] g[aria-label=dot] path';
    const dots = () => tab.$$eval(drawn, (all) => all.length);
    const linear = await dots();
    await tab.check("#log");
    assert.ok((await dots()) < linear, `${await dots()} of ${linear}`);
    assert.match(await tab.textContent("figcaption"), /0 has no place on the logarithmic x axis/);
    const ticks = await tab.$$eval('[data-figure="weighted"] svg text', (all) =>
      all.map((e) => e.textContent).filter((text) => text.endsWith("iB")),
    );
    assert.deepEqual(
      ticks,
      ["16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB"],
    );
    await close();
  },
  async "data and figures are downloaded"() {
    const { tab, close } = await open(DESK);
    const [csv] = await Promise.all([tab.waitForEvent("download"), tab.click("#csv")]);
    const lines = (await textOf(csv)).trim().split("\n");
    const { policies, caps, axis } = results[0];
    assert.equal(lines.length, 1 + policies.length * caps.length * axis.points.length);
    assert.match(lines[0], /policy,cap,D_ns,sets,accepted,schedulability,low,high$/);
    const [svg] = await Promise.all([
      tab.waitForEvent("download"),
      tab.click('[data-save="weighted"]'),
    ]);
    const figure = await textOf(svg);
    assert.match(figure, /^<svg[^>]* xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    assert.ok(!figure.includes("var(--") && figure.includes("P-EDF"));
    const words = figure.replace(/<\/text><text[^>]*>/g, " ");
    assert.match(words, /Soft, uniform light, moderate periods, no kernel overheads\. Charged:/);
    await close();
  },
  async "a dark screen has a dark page"() {
    const { tab, close } = await open({ ...DESK, colorScheme: "dark" });
    const colors = await tab.evaluate(() => {
      const of = (e) => getComputedStyle(e);
      return [of(document.body).backgroundColor, of(document.body).color];
    });
    assert.deepEqual(colors, ["rgb(22, 24, 29)", "rgb(236, 239, 244)"]);
    await shot(tab, "dark");
    await close();
  },
  async "a phone shows everything without moving the page sideways"() {
    const { tab, close } = await open(PHONE);
    const [inside, outside] = await tab.evaluate(() => [
      document.documentElement.scrollWidth,
      innerWidth,
    ]);
    assert.ok(inside <= outside, `${inside} is wider than ${outside}`);
    const charts = await tab.$$eval("#charts svg[role=img]", (all) =>
      all.map((e) => e.getBoundingClientRect().width),
    );
    assert.ok(
      charts.every((width) => width > 250 && width <= 375),
      String(charts),
    );
    await shot(tab, "phone");
    await close();
    const long = await open(PHONE, "#s=1", sizes);
    const width = await long.tab.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.deepEqual(width, [PHONE.viewport.width, PHONE.viewport.width], "with long names");
    await shot(long.tab, "phone-sizes");
    await long.close();
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok - ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok - ${name}\n${error.stack}`);
  }
}
console.log(`explorer: ${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
