// Makes a page's document out of what `pgdyno show ID --json` prints, for development without
// `pgdyno report`: node tools/from-show.mjs SHOWN.json DOCUMENT.json DETAILS.json
//
// Headline, cautions and pairs are made here in a simple way; pgdyno makes the real ones.
import { readFileSync, writeFileSync } from 'node:fs';

const KINDS = { run: 'run', crash: 'crash', probe: 'probe', compare: 'compare', beside: 'beside', import: 'import' };

function pairs(view) {
  const rows = [];
  view.treatments.forEach((a, i) =>
    view.treatments.slice(i + 1).forEach((b) => {
      if (!a.tps || !b.tps) {
        return;
      }
      const known = view.comparisons.find((c) => c.treatment === b.index && c.to === a.index);
      const turned = view.comparisons.find((c) => c.treatment === a.index && c.to === b.index);
      const ratio = b.tps.mean / a.tps.mean;
      const ci = known?.ratio.ci95 ?? (turned?.ratio.ci95 && [1 / turned.ratio.ci95[1], 1 / turned.ratio.ci95[0]]);
      const made = (known ?? turned)?.ratio;
      rows.push([a.index, b.index, ratio, ci?.[0] ?? null, ci?.[1] ?? null, made?.p_together ?? null, made?.told_apart ?? null]);
    }),
  );
  return { treatments: view.treatments.length, rows, complete: true };
}

function detail(trial) {
  const pick = (name) => trial.series.map((s) => s[name]);
  const series = {
    t_s: pick('t_s'),
    length_s: pick('length_s'),
    tps: { mean: pick('tps') },
    transactions: pick('transactions'),
    failed: pick('failed'),
    p50: pick('latency_us_p50'),
    p95: pick('latency_us_p95'),
    p99: pick('latency_us_p99'),
    max: pick('latency_us_max'),
  };
  const telemetry = trial.telemetry.map(({ lines, ...rest }) => ({
    ...rest,
    lines: lines.map(({ name, values }) => ({ name, mean: values })),
  }));
  return { buckets: series.t_s.length, reduced: false, series, heat: trial.heat ?? null, telemetry };
}

function headline(view, kind) {
  const answer = [view.answer ?? view.reason ?? []].flat().join(' ') || `${view.id ?? kind}`;
  const best = view.treatments?.[view.best];
  const figures = best?.tps
    ? [
        { name: `tps of ${best.label}`, value: best.tps.mean.toFixed(0), detail: best.tps.ci95?.map((v) => v.toFixed(0)).join('–') ?? null },
        { name: 'trials', value: `${view.run.trials_completed} of ${view.run.trials_planned}`, detail: null },
      ]
    : [];
  return {
    question: view.run?.question ?? null,
    badge: kind === 'run' ? 'answered' : 'recorded',
    answer,
    figures,
    command: kind === 'run' ? `pgdyno run ${view.run.recipe}` : null,
    proofs: [],
  };
}

/** Makes the document and the details of its trials. */
export function fromShow(shown) {
  const { schema, ...view } = shown;
  const kind = KINDS[/^pgdyno\.([a-z]+)\//.exec(schema)?.[1]] ?? 'run';
  const isRun = kind === 'run';
  const details = {};
  if (isRun) {
    view.trials.forEach((trial, i) => {
      if (trial.series.length || trial.telemetry.length) {
        details[i] = detail(trial);
      }
      delete trial.series;
      delete trial.telemetry;
    });
  }
  const notes = view.notes ?? [];
  const document = {
    schema: 'pgdyno.page/1',
    kind,
    pgdyno_version: view.run?.pgdyno_version ?? view.pgdyno_version ?? 'development',
    title: isRun ? `${view.run.recipe} · ${view.run.id}` : `${kind} · ${view.id ?? view.name ?? ''}`,
    headline: headline(view, kind),
    cautions: notes.map((text, i) => ({ text: String(text), kind: 'note', tier: i < 2 ? 'conclusion' : 'context' })),
    view,
    environment: [],
    pairs: isRun ? pairs(view) : null,
    steadiness: null,
    differences: null,
  };
  return { document, details };
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [shown, document, details] = process.argv.slice(2);
  const made = fromShow(JSON.parse(readFileSync(shown, 'utf8')));
  writeFileSync(document, JSON.stringify(made.document));
  writeFileSync(details, JSON.stringify(made.details));
}
