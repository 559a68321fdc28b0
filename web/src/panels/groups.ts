// The pace of a group of clients in words.
import type { GroupView } from '../data/types';

/** `500 due/s`, `thinks 40ms`, or `closed loop`. */
export function pace(group: Pick<GroupView, 'rate' | 'think_time'>): string {
  if (group.rate !== null) return `${group.rate} due/s`;
  return group.think_time === null ? 'closed loop' : `thinks ${group.think_time}`;
}
