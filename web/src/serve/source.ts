// Pages over a store: each part is asked of the server when it is looked at.
import { checked, type Source } from '../data/source';
import type { PageDocument, TrialDetail } from '../data/types';
import { api, read } from './api';

export class ServerSource implements Source {
  readonly #details = new Map<number, Promise<TrialDetail | null>>();

  /** `page` is the path of the document; `id` names the run whose trials can be opened. */
  private constructor(
    private readonly page: string,
    private readonly id: string | null,
  ) {}

  /** The page of a stored result. */
  static of(id: string): ServerSource {
    return new ServerSource(api('page', id), id);
  }

  /** The page of a comparison; `by` names what is meant to differ, and `force` compares whatever does. */
  static comparison(a: string, b: string, by: string, force: boolean): ServerSource {
    const query = new URLSearchParams({ a, b, by, force: String(force) });
    return new ServerSource(`/api/compare?${query.toString()}`, null);
  }

  async document(): Promise<PageDocument> {
    return checked(await read<Partial<PageDocument>>('read this page', this.page));
  }

  trial(index: number): Promise<TrialDetail | null> {
    const { id } = this;
    if (id === null) {
      return Promise.resolve(null);
    }
    const known = this.#details.get(index);
    if (known) {
      return known;
    }
    const detail = read<TrialDetail | null>(`read trial ${index + 1}`, api('page', id, `/trials/${index}`));
    this.#details.set(index, detail);
    // What failed is asked for again.
    detail.catch(() => this.#details.delete(index));
    return detail;
  }
}
