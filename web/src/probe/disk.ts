// Figures of the disk probe, arranged for charts and tables.
import type { DiskPoint, DiskProbe, Transfers } from '../data/types';

/** Point of a curve, one direction of it. */
export interface CurveRow {
  /** Queue depth, or the zone's begin in bytes. */
  at: number;
  transfers: Transfers;
}

export interface DiskCurve {
  name: string;
  rows: CurveRow[];
}

const PATTERNS: Record<string, string> = {
  write: 'sequential write',
  read: 'sequential read',
  randread: 'random read',
  randwrite: 'random write',
};

function rows(points: DiskPoint[], side: 'read' | 'write', at: (p: DiskPoint) => number): CurveRow[] {
  return points
    .flatMap((point) => {
      const transfers = point[side];
      return transfers ? [{ at: at(point), transfers }] : [];
    })
    .sort((a, b) => a.at - b.at);
}

function curves(probe: DiskProbe, names: string[], at: (p: DiskPoint) => number): DiskCurve[] {
  return names
    .flatMap((pattern) => {
      const points = probe.points.filter((point) => point.pattern === pattern);
      const mixed = pattern === 'randrw';
      return (['read', 'write'] as const).map((side) => ({
        name: mixed ? `70:30 mix, ${side}` : (PATTERNS[pattern] ?? pattern),
        rows: rows(points, side, at),
      }));
    })
    .filter((curve) => curve.rows.length > 0);
}

/** Sequential transfers by zone. */
export function zones(probe: DiskProbe): DiskCurve[] {
  return curves(probe, ['write', 'read'], (point) => point.offset);
}

/** Random transfers by queue depth. */
export function depths(probe: DiskProbe): DiskCurve[] {
  return curves(probe, ['randread', 'randwrite', 'randrw'], (point) => point.queue_depth);
}
