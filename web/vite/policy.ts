// The content security policy of the page, by the hashes of its script and its style.
//
// Runs after vite-plugin-singlefile has put both into the page. The script moves to the end of the
// body, behind the mark that pgdyno replaces by the data.
import { createHash } from 'node:crypto';
import type { Plugin } from 'vite';

const SCRIPT = /<script type="module" crossorigin>([\s\S]*?)<\/script>\s*/;
const STYLE = /<style rel="stylesheet" crossorigin>([\s\S]*?)<\/style>/;

function hash(text: string): string {
  return `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;
}

/** Returns `page` with its script at the end of the body and its policy filled in. */
export function withPolicy(page: string): string {
  const script = SCRIPT.exec(page)?.[1];
  const style = STYLE.exec(page)?.[1];
  if (script === undefined || style === undefined) {
    throw new Error('the page lacks its inlined script or style');
  }
  if (/<!--|<\/?script/i.test(script)) {
    throw new Error('the script holds what an HTML parser would not leave alone');
  }
  const policy =
    `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
    `img-src data: blob:; base-uri 'none'; form-action 'none'`;
  // Functions, since `$&` in a replacement text has a meaning.
  return page
    .replace(SCRIPT, '')
    .replace(STYLE, () => `<style>${style}</style>`)
    .replace('</body>', () => `<script type="module">${script}</script>\n</body>`)
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
