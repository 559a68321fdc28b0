// Pages under test, each with what `pgdyno show --json` or `pgdyno compare --json` prints of the
// same thing.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IS_SMOKE, OUT, pgdyno } from './program';
import { store } from './stores';

interface Wanted {
  store: string;
  /** One id, or two that are compared; `first`: the oldest run. */
  ids: string[];
  /** Further options of the comparison. */
  options?: string[];
}

const commit = ['latest:synchronous_commit=off', 'latest:synchronous_commit=on'];

const GATES = ['--fail-if', 'tps < -3%, p99 > +10%'];

const WANTED = {
  quickstart: { store: 'quickstart', ids: ['latest'] },
  sweep: { store: 'sweep', ids: ['latest'] },
  heat: { store: 'heat', ids: ['latest'] },
  long: { store: 'long', ids: ['latest'] },
  why: { store: 'why', ids: ['latest'] },
  capacity: { store: 'capacity', ids: ['latest'] },
  failed: { store: 'failed', ids: ['latest'] },
  hostile: { store: 'hostile', ids: ['latest'] },
  crash: { store: 'crash', ids: ['crash'] },
  crashfail: { store: 'crashfail', ids: ['crash'] },
  fsync: { store: 'probes', ids: ['fsync'] },
  disk: { store: 'probes', ids: ['disk'] },
  'compare-runs': { store: 'quickstart', ids: ['first', 'latest'], options: ['--force', ...GATES] },
  'compare-treatments': { store: 'sweep', ids: commit, options: ['--by', 'synchronous_commit'] },
  import: { store: 'import', ids: ['import'] },
  beside: { store: 'import', ids: ['import', 'latest'] },
} satisfies Record<string, Wanted>;

export type PageName = keyof typeof WANTED;

/** One page of each kind. Tests of these alone that are quick have the tag `@smoke`. */
const ONE_OF_EACH = ['quickstart', 'compare-runs', 'crashfail', 'fsync', 'import'] satisfies PageName[];

/** Pages that are made and tested. */
export const NAMES: PageName[] = IS_SMOKE ? ONE_OF_EACH : (Object.keys(WANTED) as PageName[]);

const path = (name: string, extension: string) => join(OUT, 'pages', `${name}.${extension}`);

/** Address of a page. */
export function address(name: PageName, hash = ''): string {
  return `file://${path(name, 'html')}${hash}`;
}

/** What pgdyno prints of the page's thing as JSON. */
export function shown<View>(name: PageName): View {
  return JSON.parse(readFileSync(path(name, 'json'), 'utf8')) as View;
}

const DATA = /(<script type="application\/json" id="pgdyno-data">)(.*?)(<\/script>)/s;

/** The document of a page. */
export function pageDocument(name: PageName): Record<string, unknown> {
  const found = DATA.exec(readFileSync(path(name, 'html'), 'utf8'));
  if (!found) {
    throw new Error(`${path(name, 'html')} holds no data`);
  }
  return JSON.parse(found[2]) as Record<string, unknown>;
}

/** Address of a copy of a page with another document in it, as another store would have made it. */
export function edited(name: PageName, variant: string, document: unknown): string {
  const data = JSON.stringify(document).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  const file = path(`${name}-${variant}`, 'html');
  const page = readFileSync(path(name, 'html'), 'utf8');
  writeFileSync(file, page.replace(DATA, (_, begin: string, __, end: string) => begin + data + end));
  return `file://${file}`;
}

function named(id: string, file: string): string {
  const list = (what: string[]) =>
    JSON.parse(pgdyno(['list', ...what, '--json', '--store', file])) as { id: string; started_at: string }[];
  if (id === 'first') {
    return list([]).sort((a, b) => a.started_at.localeCompare(b.started_at))[0].id;
  }
  return id === 'import' ? list(['--imported'])[0].id : id;
}

/** Makes all pages that are not there. */
export function makePages(): void {
  mkdirSync(join(OUT, 'pages'), { recursive: true });
  for (const name of NAMES) {
    const wanted: Wanted = WANTED[name];
    if (existsSync(path(name, 'html')) && !process.env.CI) {
      continue;
    }
    const file = store(wanted.store);
    const ids = wanted.ids.map((id) => named(id, file));
    const options = [...(wanted.options ?? []), '--store', file];
    const command = ids.length > 1 ? 'compare' : 'show';
    writeFileSync(path(name, 'json'), pgdyno([command, ...ids, ...options, '--json']));
    pgdyno(['report', ...ids, ...options, '-o', path(name, 'html')]);
  }
}
