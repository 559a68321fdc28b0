// Which page of the server is looked at: the path and query of the URL.
import { tick } from 'svelte';
import { choices } from '../state/choices.svelte';
import { BASE } from './base';

export type Route =
  | { page: 'runs' }
  | { page: 'result' | 'live'; id: string }
  | { page: 'compare'; a: string; b: string; by: string; force: boolean }
  | { page: 'history'; recipe: string | null; treatment: string | null }
  | { page: 'unknown' };

/** The page that a path and a query lead to, on a server under the path `base`. */
export function routeOf(path: string, search: string, base = BASE): Route {
  const query = new URLSearchParams(search);
  const own = path.startsWith(`${base}/`) || path === base ? path.slice(base.length) : path;
  const [first = '', second, ...rest] = own.replace(/^\/|\/$/g, '').split('/');
  const unknown: Route = { page: 'unknown' };
  if (rest.length) {
    return unknown;
  }
  let id: string | null;
  try {
    id = second ? decodeURIComponent(second) : null;
  } catch {
    return unknown;
  }
  switch (first) {
    case '':
      return { page: 'runs' };
    case 'runs':
      return id === null ? { page: 'runs' } : { page: 'result', id };
    case 'live':
      return id === null ? unknown : { page: 'live', id };
    case 'compare': {
      const [a, b] = [query.get('a'), query.get('b')];
      return a && b ? { page: 'compare', a, b, by: query.get('by') ?? '', force: query.get('force') === 'true' } : unknown;
    }
    case 'history':
      return { page: 'history', recipe: query.get('recipe'), treatment: query.get('treatment') };
    default:
      return unknown;
  }
}

class Router {
  current: Route = $state.raw({ page: 'runs' });
  search = $state('');

  /** Reads the URL, follows it, and takes over links within the server. */
  follow(): void {
    this.#read();
    addEventListener('popstate', () => this.#read());
    addEventListener('click', (event) => this.#click(event));
  }

  /** Goes to another page: a step that `back` undoes. The focus follows. */
  go(href: string): void {
    this.show(href);
    scrollTo(0, 0);
    void tick().then(() => document.getElementById('content')?.focus());
  }

  /** Shows the page in another way, as a step that `back` undoes. */
  show(href: string): void {
    history.pushState(null, '', href);
    this.#read();
  }

  /** Changes the query of this page without a step of its own. */
  adjust(href: string): void {
    history.replaceState(null, '', href);
    this.search = location.search;
  }

  #read(): void {
    const next = routeOf(location.pathname, location.search);
    // A change of the hash leaves the page as it is.
    if (JSON.stringify(next) !== JSON.stringify(this.current)) {
      this.current = next;
    }
    this.search = location.search;
    choices.read();
  }

  #click(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    const href = link?.getAttribute('href');
    if (link && href?.startsWith(`${BASE}/`) && isPlain && !event.defaultPrevented && link.origin === location.origin) {
      event.preventDefault();
      this.go(href);
    }
  }
}

export const router = new Router();

/** Link to a stored result. */
export const resultLink = (id: string) => `${BASE}/runs/${encodeURIComponent(id)}`;
/** Link to a live run. */
export const liveLink = (id: string) => `${BASE}/live/${encodeURIComponent(id)}`;
/** Link to a comparison; `by` names what is meant to differ, and `force` compares whatever does. */
export const compareLink = (a: string, b: string, by = '', force = false) =>
  `${BASE}/compare?${new URLSearchParams({ a, b, ...(by && { by }), ...(force && { force: 'true' }) }).toString()}`;
/** Link to the history of a recipe, of one of its treatments if that is named. */
export const historyLink = (recipe: string, treatment = '') =>
  `${BASE}/history?${new URLSearchParams({ recipe, ...(treatment && { treatment }) }).toString()}`;
