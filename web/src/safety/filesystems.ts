// Filesystems after power cuts: the mount that replays the journal, and a check without repairs.
import type { FilesystemRecovery, FilesystemsView } from '../data/types';
import { duration, milliseconds, NONE } from '../format';

/** Cells of a table: mount and fsck in milliseconds. */
export function mountCells(view: FilesystemsView | null | undefined): [string, string] {
  const { mount_ms = null, fsck_ms = null, complaints = 0 } = view ?? {};
  const fsck = fsck_ms === null ? NONE : `${milliseconds(fsck_ms * 1000)}${complaints ? ' (complains)' : ''}`;
  return [mount_ms === null ? NONE : milliseconds(mount_ms * 1000), fsck];
}

/** Names and values of a round's filesystems. */
export function filesystemFacts(filesystems: FilesystemRecovery[]): [string, string][] {
  return filesystems.flatMap(({ storage, mount_ms, fsck }): [string, string][] => {
    const of = filesystems.length > 1 ? ` of ${storage}` : '';
    return [
      [`Mount${of}`, duration(mount_ms * 1000)],
      [`Fsck${of}`, fsckWords(fsck)],
    ];
  });
}

function fsckWords(fsck: FilesystemRecovery['fsck']): string {
  switch (fsck.outcome) {
    case 'clean':
      return `${duration(fsck.ms * 1000)}: nothing wrong`;
    case 'complained':
      return `${duration(fsck.ms * 1000)}: status ${fsck.status}: ${fsck.said}`;
    case 'not-run':
      return `not run: ${fsck.why}`;
  }
}
