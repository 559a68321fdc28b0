// Where a page's data come from: elements of the page itself, or a server over the store
// (`serve/source.ts`).
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

/** Returns `found` as a document if it has the schema of one. */
export function checked(found: Partial<PageDocument> | null): PageDocument {
  if (found?.schema !== PAGE_SCHEMA) {
    throw new SourceError(
      `cannot read this page: its data are \`${String(found?.schema)}\`, not \`${PAGE_SCHEMA}\``,
    );
  }
  return found as PageDocument;
}

/** Reads the elements that pgdyno wrote into the page. Details are unpacked once they are asked for. */
export class EmbeddedSource implements Source {
  readonly #details = new Map<number, Promise<TrialDetail | null>>();

  constructor(private readonly page: Document) {}

  async document(): Promise<PageDocument> {
    const text = (await arrived(this.page, 'pgdyno-data'))?.textContent;
    if (text == null) {
      throw new SourceError('cannot read this page: it holds no data; write it again with `pgdyno report`');
    }
    let found: Partial<PageDocument>;
    try {
      found = JSON.parse(text) as Partial<PageDocument>;
    } catch (error) {
      throw new SourceError(`cannot read this page: its data are no JSON (${String(error)})`);
    }
    return checked(found);
  }

  trial(index: number): Promise<TrialDetail | null> {
    const known = this.#details.get(index);
    if (known) {
      return known;
    }
    const detail = arrived(this.page, `pgdyno-trial-${index}`).then((element) =>
      element?.textContent ? unpack(element.textContent.trim()) : null,
    );
    this.#details.set(index, detail);
    return detail;
  }
}

/** Milliseconds between two looks for what a page still reads. */
const LOOK = 5;

/** Waits until an element is complete: something follows it, or the page is. Null without one. */
async function arrived(page: Document, id: string): Promise<HTMLElement | null> {
  for (;;) {
    const isRead = page.readyState !== 'loading';
    const found = page.getElementById(id);
    if (isRead || found?.nextSibling) {
      return found;
    }
    await new Promise((done) => setTimeout(done, LOOK));
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
