// Takes the pictures of the docs from pages.
//
//     node tools/screenshots.mjs docs PAGES FOLDER
//     node tools/screenshots.mjs field-reports PAGES FOLDER
//
// PAGES is the folder of the pages: for `docs` those that the browser tests made (e2e/out/pages), for
// `field-reports` those that `just field-report-picture` writes. CHROMIUM names the browser.
import { mkdirSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { chromium } from "@playwright/test";

/** Picture, page, what of it (the window if nothing), and how it is looked at. */
const DOCS = [
  { name: "run", page: "quickstart", height: 1180 },
  { name: "run-dark", page: "quickstart", height: 1180, colorScheme: "dark" },
  { name: "run-phone", page: "quickstart", width: 390, height: 844 },
  { name: "shape", page: "sweep", part: "#shape" },
  { name: "two-factors", page: "heat", part: "#shape" },
  { name: "capacity", page: "capacity", part: "#shape" },
  { name: "time", page: "long", part: "#time", height: 1500 },
  { name: "why", page: "why", part: "#why" },
  { name: "statements", page: "quickstart", part: "#statements" },
  { name: "safety", page: "crash" },
  { name: "comparison", page: "compare-runs" },
  { name: "disk", page: "disk" },
  { name: "beside", page: "beside" },
];

/** Of each page of a field report's run: its chart over the factor. */
const fieldReports = (folder) =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".html"))
    .map((file) => file.slice(0, -".html".length))
    .map((name) => ({ name, page: name, part: "#shape", height: 740 }));

const [set, ...paths] = process.argv.slice(2);
const [pages, folder] = paths.map((path) => resolve(path));
const pictures =
  pages && { docs: () => DOCS, "field-reports": fieldReports }[set]?.(pages);
if (!pictures || !folder) {
  console.error(
    "cannot take pictures: say `docs` or `field-reports`, the folder of the pages and one for the pictures",
  );
  process.exit(1);
}

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  for (const {
    name,
    page: from,
    part,
    width = 1200,
    height = 900,
    colorScheme = "light",
  } of pictures) {
    const page = await browser.newPage({
      viewport: { width, height },
      colorScheme,
    });
    await page.goto(`file://${join(pages, `${from}.html`)}`);
    await page.locator("#content[aria-busy=false]").waitFor();
    await page.waitForFunction(
      () => document.querySelectorAll("[aria-busy=true]").length === 0,
    );
    if (part) {
      await page.locator(part).evaluate((element) => element.scrollIntoView());
    }
    const box = part ? await page.locator(part).boundingBox() : null;
    const clip = box && {
      x: 0,
      y: Math.max(box.y, 0),
      width,
      height: Math.min(box.height, height),
    };
    await page.screenshot({
      path: join(folder, `${name}.png`),
      ...(clip && { clip }),
    });
    await page.close();
  }
} finally {
  await browser.close();
}
