// Requests to the server that this page came from.
import { SourceError } from '../data/source';
import { BASE } from './base';

interface Refusal {
  error?: unknown;
  help?: unknown;
  comparable_by?: unknown;
}

/** Two results that differ in what must be equal. */
export class DifferError extends SourceError {
  /** `by` names what they could be compared by. */
  constructor(
    message: string,
    readonly by: string[],
  ) {
    super(message);
  }
}

function words(status: number, refusal: Refusal): string {
  const error = typeof refusal.error === 'string' ? refusal.error : `the server answered with status ${status}`;
  return typeof refusal.help === 'string' ? `${error}. ${refusal.help}` : error;
}

async function answer(what: string, path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE + path, init);
  } catch {
    throw new SourceError(`cannot ${what}: no answer from ${location.host}; does \`pgdyno serve\` still run?`);
  }
  if (!response.ok) {
    const refusal = (await response.json().catch(() => ({}))) as Refusal;
    if (Array.isArray(refusal.comparable_by)) {
      // Its advice is for a command line.
      throw new DifferError(words(response.status, { error: refusal.error }), refusal.comparable_by.map(String));
    }
    throw new SourceError(`cannot ${what}: ${words(response.status, refusal)}`);
  }
  return response;
}

/** Reads a document. `what` says what was attempted: `list the runs`. */
export async function read<T>(what: string, path: string): Promise<T> {
  return (await (await answer(what, path)).json()) as T;
}

/** Path of the server's `what` about `id`. */
export function api(what: string, id: string, rest = ''): string {
  return `/api/${what}/${encodeURIComponent(id)}${rest}`;
}

export interface NoteText {
  text: string;
  tags: string[];
}

/** Writes a note. */
export async function writeNote(id: string, note: NoteText): Promise<void> {
  await answer('write the note', api('notes', id), {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(note),
  });
}

/** Asks a run to end after the trial in progress. */
export async function askToStop(run: string): Promise<void> {
  await answer(`stop ${run}`, api('live', run, '/stop'), { method: 'POST' });
}
