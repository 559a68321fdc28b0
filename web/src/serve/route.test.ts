import { expect, it } from 'vitest';
import { compareLink, historyLink, resultLink, routeOf } from './route.svelte';

const at = (href: string) => {
  const url = new URL(href, 'http://localhost');
  return routeOf(url.pathname, url.search);
};

it('a path leads to its page', () => {
  expect(at('/')).toEqual({ page: 'runs' });
  expect(at('/runs')).toEqual({ page: 'runs' });
  expect(at('/live/try')).toEqual({ page: 'live', id: 'try' });
  expect(at('/history')).toEqual({ page: 'history', recipe: null, treatment: null });
});

it('a server under a path has its pages there', () => {
  expect(routeOf('/pgdyno/runs/x', '', '/pgdyno')).toEqual({ page: 'result', id: 'x' });
  expect(routeOf('/pgdyno', '', '/pgdyno')).toEqual({ page: 'runs' });
  expect(routeOf('/pgdynos/runs/x', '', '/pgdyno')).toEqual({ page: 'unknown' });
  // As a proxy that takes the path away has it, and who asks the server itself.
  expect(routeOf('/runs/x', '', '/pgdyno')).toEqual({ page: 'result', id: 'x' });
});

it('links lead where they say, whatever is in a name', () => {
  const name = 'a/b?c=<d>&e %';
  expect(at(resultLink(name))).toEqual({ page: 'result', id: name });
  expect(at(compareLink(name, 'latest:clients=8'))).toEqual({ page: 'compare', a: name, b: 'latest:clients=8', by: '', force: false });
  expect(at(compareLink('a', 'b', 'host'))).toEqual({ page: 'compare', a: 'a', b: 'b', by: 'host', force: false });
  expect(at(compareLink('a', 'b', '', true))).toEqual({ page: 'compare', a: 'a', b: 'b', by: '', force: true });
  expect(at(historyLink(name))).toEqual({ page: 'history', recipe: name, treatment: null });
});

it('what leads nowhere is said to', () => {
  for (const path of ['/moon', '/runs/a/b', '/live', '/compare?a=x', '/runs/%E0%A4%A']) {
    expect(at(path), path).toEqual({ page: 'unknown' });
  }
});
