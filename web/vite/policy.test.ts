import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { withPolicy } from './policy';

const page = (script: string) =>
  `<meta content="<!--policy-->"><script type="module" crossorigin>${script}</script>` +
  `<style rel="stylesheet" crossorigin>p{}</style><body><!--pgdyno:data--></body>`;
const hash = (text: string) => createHash('sha256').update(text).digest('base64');

it('the policy names scripts and style by their hashes, and the program is text before the data', () => {
  const made = withPolicy(page("let a='$&'"));
  const start = /<script>([^]*?)<\/script>/.exec(made)?.[1] ?? '';
  expect(made).toContain(`script-src 'sha256-${hash(start)}' 'sha256-${hash("let a='$&'")}'`);
  expect(made).toContain(`style-src 'sha256-${hash('p{}')}'`);
  expect(made).not.toContain('unsafe');
  expect(made).toContain(`<script type="text/plain" id="pgdyno-program">let a='$&'</script>\n<!--pgdyno:data-->`);
  expect(made).not.toContain('type="module"');
});

it('a script that would end its element is refused', () => {
  expect(() => withPolicy(page('"<!--"'))).toThrow('leave alone');
  expect(() => withPolicy('<body></body>')).toThrow('lacks');
});

it('the template has each of its marks once', () => {
  const template = readFileSync(new URL('../index.html', import.meta.url), 'utf8');
  for (const mark of ['title', 'version', 'static', 'data']) {
    expect(template.split(`<!--pgdyno:${mark}-->`).length - 1, mark).toBe(1);
  }
  expect(template.indexOf('<!--pgdyno:version-->')).toBeLessThan(4096 - 2000);
});
