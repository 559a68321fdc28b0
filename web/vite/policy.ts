// The program of the page and its content security policy, by the hashes of its scripts and style.
//
// Runs after vite-plugin-singlefile has put both into the page. The program becomes text, and
// `start.js` makes a script of it once the plain HTML is painted: it is not even parsed before. Both
// stand in front of the mark that pgdyno replaces by the data, so that a page begins while its data
// still arrive.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

const START = readFileSync(new URL('./start.js', import.meta.url), 'utf8');
const DATA = '<!--pgdyno:data-->';

const SCRIPT = /<script type="module" crossorigin>([\s\S]*?)<\/script>\s*/;
const STYLE = /<style rel="stylesheet" crossorigin>([\s\S]*?)<\/style>/;

function hash(text: string): string {
  return `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;
}

/** Returns `page` with its program as text in front of the data, and its policy filled in. */
export function withPolicy(page: string): string {
  const script = SCRIPT.exec(page)?.[1];
  const style = STYLE.exec(page)?.[1];
  if (script === undefined || style === undefined || !page.includes(DATA)) {
    throw new Error('the page lacks its inlined script or style, or the mark of its data');
  }
  if (/<!--|<\/?script/i.test(script)) {
    throw new Error('the script holds what an HTML parser would not leave alone');
  }
  const policy =
    `default-src 'none'; script-src ${hash(START)} ${hash(script)}; style-src ${hash(style)}; ` +
    `img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const program =
    `<script>${START}</script>\n<script type="text/plain" id="pgdyno-program">${script}</script>\n${DATA}`;
  // Functions, since `$&` in a replacement text has a meaning.
  return page
    .replace(SCRIPT, '')
    .replace(STYLE, () => `<style>${style}</style>`)
    .replace(DATA, () => program)
    .replace('<!--policy-->', () => policy);
}

export function policy(): Plugin {
  return {
    name: 'pgdyno-policy',
    enforce: 'post',
    apply: 'build',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const page = bundle['index.html'];
        if (page?.type !== 'asset') {
          this.error('the build wrote no index.html');
        }
        page.source = withPolicy(String(page.source));
      },
    },
  };
}
