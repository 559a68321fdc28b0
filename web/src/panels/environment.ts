// What was recorded about machines, storages and servers, as groups of rows that can be searched.
import type { Environment, Row, ServerView } from '../data/types';

export interface Group {
  title: string;
  rows: Row[];
}

function settingText(setting: ServerView['settings'][number]): string {
  const shown = setting.shown ?? [];
  if (setting.value !== null && setting.value !== undefined) {
    return `${shown[0]} (${setting.source})`;
  }
  return (setting.values ?? [])
    .map(([, trials], place) => `${shown[place]} (${trials.length} ${trials.length === 1 ? 'trial' : 'trials'})`)
    .join('; ');
}

/** Sources of settings that nobody chose: the server's own values, and what pgdyno needs. */
const UNTOLD = ['default', 'override', 'client'];

/** Name of a server: its version without the words on how it was built. */
function serverTitle({ version, trials }: ServerView): string {
  const words = String(version).split(' on ')[0].split(' (')[0];
  const name = words.startsWith('PostgreSQL') ? words : `PostgreSQL ${words}`;
  return trials?.length ? `${name}, ${trials.length} ${trials.length === 1 ? 'trial' : 'trials'}` : name;
}

/** Groups of rows, in the order in which they are shown. */
export function groups(environment: Environment[], servers: ServerView[] = []): Group[] {
  const several = environment.length > 1;
  const machines = environment.flatMap(({ title, rows, storages }) => [
    { title: several || !title ? title || 'Machine' : title, rows: rows ?? [] },
    ...(storages ?? []).map((storage) => ({
      title: [several ? title : '', storage.name ? `storage ${storage.name}` : 'storage'].filter(Boolean).join(', '),
      rows: storage.rows ?? [],
    })),
  ]);
  const clusters = servers.map((server) => ({
    title: serverTitle(server),
    rows: [
      { name: 'Version', text: server.version, detail: false },
      ...(server.settings ?? []).map((setting) => ({
        name: setting.name,
        text: settingText(setting),
        detail: UNTOLD.includes(setting.source),
      })),
    ],
  }));
  return [...machines, ...clusters].filter((group) => group.rows.length > 0);
}

/** Whether a row holds every word of `query`. */
function holds(row: Row, group: string, words: string[]): boolean {
  const text = `${group} ${row.name} ${row.text}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Groups with the rows that hold every word of `query`; details too, once something is asked for. */
export function search(all: Group[], query: string): Group[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return all;
  }
  return all
    .map(({ title, rows }) => ({
      title,
      rows: rows.filter((row) => holds(row, title, words)).map((row) => ({ ...row, detail: false })),
    }))
    .filter((group) => group.rows.length > 0);
}
