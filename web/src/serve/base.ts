// The path under which a proxy offers this server.
function read(): string {
  // Tests have no document.
  const given = typeof document === 'undefined' ? null : document.getElementById('pgdyno-server');
  const { base } = JSON.parse(given?.textContent || '{}') as { base?: unknown };
  return typeof base === 'string' ? base : '';
}

/** `/pgdyno`; empty where the server has a host of its own. */
export const BASE = read();
