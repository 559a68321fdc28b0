// Where a page's data come from: elements of the page itself, or, later, a server over the store.
//
// Call `document()` once; `trial()` as often as a trial is opened.
import { PAGE_SCHEMA, type PageDocument, type TrialDetail } from './types';

/** Data of one page. */
export interface Source {
  document(): Promise<PageDocument>;
  /** Details of the trial with index `index`; none where nothing was recorded. */
  trial(index: number): Promise<TrialDetail | null>;
}

/** What was attempted, on what, and what was found. */
export class SourceError extends Error {}

/** Reads the elements that pgdyno wrote into the page. Details are unpacked once they are asked for. */
export class EmbeddedSource implements Source {
  readonly #details = new Map<number, Promise<TrialDetail | null>>();

  constructor(private readonly page: Document) {}

  async document(): Promise<PageDocument> {
    const text = this.page.getElementById('pgdyno-data')?.textContent;
    if (text == null) {
      throw new SourceError('cannot read this page: it holds no data; write it again with `pgdyno report`');
    }
    let found: Partial<PageDocument>;
    try {
      found = JSON.parse(text) as Partial<PageDocument>;
    } catch (error) {
      throw new SourceError(`cannot read this page: its data are no JSON (${String(error)})`);
    }
    if (found?.schema !== PAGE_SCHEMA) {
      throw new SourceError(
        `cannot read this page: its data are \`${String(found?.schema)}\`, not \`${PAGE_SCHEMA}\``,
      );
    }
    return found as PageDocument;
  }

  trial(index: number): Promise<TrialDetail | null> {
    const known = this.#details.get(index);
    if (known) {
      return known;
    }
    const text = this.page.getElementById(`pgdyno-trial-${index}`)?.textContent;
    const detail = text == null ? Promise.resolve(null) : unpack(text.trim());
    this.#details.set(index, detail);
    return detail;
  }
}

/** Unpacks gzip in base64. */
async function unpack(base64: string): Promise<TrialDetail> {
  if (typeof DecompressionStream === 'undefined') {
    throw new SourceError(
      'cannot unpack the trial: this browser lacks DecompressionStream; use a version of 2023 or later',
    );
  }
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  try {
    return (await new Response(stream).json()) as TrialDetail;
  } catch (error) {
    throw new SourceError(`cannot unpack the trial: its data are damaged (${String(error)})`);
  }
}
