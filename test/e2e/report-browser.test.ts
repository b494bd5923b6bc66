/** The page of `watchdog report --html` in a real browser: it tells all, and asks for nothing. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { ask } from "../support/ask.ts";
import { openScene } from "../support/scene.ts";

const LIMIT_MS = 120_000;
let browser: Browser | undefined;
// Before the scene looks for what is left.
afterAll(async () => browser?.close(), LIMIT_MS);
const scene = openScene(import.meta.file);
const PROGRAM = "/usr/bin/chromium";
const hasBrowser = existsSync(PROGRAM);
if (!hasBrowser) console.error("needs Debian's chromium, not run here: the page in a browser");

const requests: string[] = [];
const troubles: string[] = [];

/** Its own processes are ended by `close`; without a sandbox, because root has none. */
async function openPage(dark = false): Promise<Page> {
  browser ??= await chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });
  const page = await browser.newPage({
    colorScheme: dark ? "dark" : "light",
    viewport: { width: 1200, height: 800 },
  });
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(error.message));
  await page.goto(`file://${scene.path("page.html")}`);
  return page;
}

beforeAll(async () => {
  if (!hasBrowser) return;
  for (const [name, status] of [
    ["backup", "0"],
    ["<b>import</b>", "3"],
  ] as const) {
    await scene.run(["--name", name, "--", "sh", "-c", `sleep 0.1; exit ${status}`]);
  }
  const written = await ask(scene, ["report", "--since", "1h", "--html", scene.path("page.html")]);
  expect(written.status).toBe(0);
}, LIMIT_MS);

const browserTest = test.skipIf(!hasBrowser);

browserTest(
  "a person sees what needs one, a bar for each run and a row for each job",
  async () => {
    const page = await openPage();
    expect(await page.textContent("h1")).toBe("1 thing needs a person");
    expect(await page.textContent(".needs li")).toBe("<b>import</b> failed");
    expect(await page.locator("tbody tr").count()).toBe(2);
    expect(await page.getByRole("img", { name: "Time line of 2 jobs" }).isVisible()).toBe(true);
    const bars = page.locator("svg rect");
    expect(await bars.count()).toBe(2);
    for (const bar of await bars.all()) {
      const box = await bar.boundingBox();
      expect(box?.width ?? 0).toBeGreaterThan(1);
      expect(box?.height ?? 0).toBeGreaterThan(5);
    }
    expect(await page.locator("svg rect.bad title").textContent()).toContain("import</b>: failed");
    const isTooWide = await page.evaluate("document.body.scrollWidth > innerWidth");
    expect(isTooWide).toBe(false);
    // A picture of both faces is not the same one.
    const dark = await openPage(true);
    const pictures = [await page.screenshot(), await dark.screenshot()];
    expect(Buffer.compare(pictures[0] ?? Buffer.of(), pictures[1] ?? Buffer.of())).not.toBe(0);
  },
  LIMIT_MS,
);

browserTest(
  "it asks for nothing but itself, and no browser complains",
  async () => {
    await openPage();
    expect(troubles).toEqual([]);
    expect(new Set(requests)).toEqual(new Set([`file://${scene.path("page.html")}`]));
  },
  LIMIT_MS,
);
