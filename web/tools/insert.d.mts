import type { PageDocument, TrialDetail } from '../src/data/types';

export function forScript(value: unknown): string;
export function escapeHtml(text: string): string;
export function insert(template: string, document: PageDocument, details?: Record<number, TrialDetail>): string;
