// Follows a live run: the server sends its state, then each record. A browser that lost the
// connection comes back by itself, and gets the state anew.
import type { LiveDocument, LiveRecord, LiveState } from '../data/types';
import { api } from './api';
import { BASE } from './base';
import { added, NO_STATE } from './live';

export class Follower {
  state: LiveState = $state.raw(NO_STATE);
  /** Whether the run's process is gone without having told an end. */
  isDead = $state(false);
  isConnected = $state(false);
  /** Whether the server refused: there is no such live run, or it may not be seen. */
  isRefused = $state(false);
  #events: EventSource | null = null;

  /** Opens the connection; the returned function closes it. */
  follow(run: string): () => void {
    const events = new EventSource(BASE + api('live', run));
    this.#events = events;
    events.addEventListener('open', () => (this.isConnected = true));
    events.addEventListener('error', () => {
      this.isConnected = false;
      this.isRefused = events.readyState === EventSource.CLOSED && this.state.run === null;
    });
    this.#on<LiveDocument>('state', (state) => {
      this.state = state;
      this.isDead = state.has_died;
      this.#endIfOver();
    });
    this.#on<LiveRecord>('record', (record) => {
      this.state = added(this.state, record);
      // Another session goes on with it.
      this.isDead &&= record.event !== 'begun';
      this.#endIfOver();
    });
    events.addEventListener('died', () => (this.isDead = true));
    return () => events.close();
  }

  #on<T>(name: string, take: (value: T) => void): void {
    this.#events?.addEventListener(name, (event: MessageEvent<string>) => {
      this.isConnected = true;
      take(JSON.parse(event.data) as T);
    });
  }

  #endIfOver(): void {
    if (this.state.ended) {
      this.#events?.close();
    }
  }
}
