// Makes a page out of a document and, for a run, details of its trials, as `pgdyno report` does. Tests
// make pages with it that no run would make. By hand: node tools/insert.mjs DOCUMENT.json [DETAILS.json] > page.html
// DETAILS.json is an object of trial details by index.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

// eslint-disable-next-line no-control-regex
const HAZARDS = /[<>&\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Writes JSON so that an HTML parser reads it as text only. */
export function forScript(value) {
  const code = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(HAZARDS, code);
}

export function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** Puts a document and details into the template. */
export function insert(template, document, details = {}) {
  const data = [
    `<script type="application/json" id="pgdyno-data">${forScript(document)}</script>`,
    ...Object.entries(details).map(
      ([i, detail]) =>
        `<script type="text/plain" id="pgdyno-trial-${i}">${gzipSync(JSON.stringify(detail)).toString('base64')}</script>`,
    ),
  ].join('\n');
  const plain = `<h1>${escapeHtml(document.title)}</h1><p class="answer">${escapeHtml(document.headline?.answer ?? '')}</p>`;
  const parts = {
    title: escapeHtml(document.title),
    version: escapeHtml(document.pgdyno_version),
    static: plain,
    data,
  };
  return template.replace(/<!--pgdyno:(title|version|static|data)-->/g, (_, name) => parts[name]);
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [document, details] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')));
  const template = readFileSync(new URL('../dist/index.html', import.meta.url), 'utf8');
  process.stdout.write(insert(template, document, details));
}
