"use strict";
// Draws what changes over time. All data are in the document; nothing is loaded.
(() => {
  const view = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const trials = view.trials.filter((t) => t.series.length > 0);
  if (trials.length === 0 || typeof uPlot !== "function") return;
  byId("charts").hidden = false;

  const COLOURS = 7;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (index) => css(`--c${index % COLOURS}`);
  const label = (trial) => `${view.treatments[trial.treatment].label}, repeat ${trial.repeat}`;
  const show = (value, unit) => value == null ? "–" : `${Number(value.toPrecision(3)).toLocaleString("en")}${unit}`;
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
  let charts = [];

  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
  const element = (className, text) => Object.assign(document.createElement("div"), { className, textContent: text ?? "" });

  /// Lines of `{ name, stroke, dash, t, values }` over one time axis, aligned by their seconds.
  function draw(place, { title, unit, lines, length, height = 170, sync, legend = true, max, stacked = false }) {
    const times = [...new Set(lines.flatMap((l) => l.t))].sort((a, b) => a - b);
    const at = new Map(times.map((t, i) => [t, i]));
    const columns = lines.map((l) => {
      const column = new Array(times.length + 1).fill(null);
      l.t.forEach((t, i) => { column[at.get(t)] = l.values[i]; });
      // A step needs an end: the last interval reaches to the window's close.
      column[times.length] = column[times.length - 1];
      return column;
    });
    // Parts of a whole are drawn as sums, the highest first, so that each covers what is below it.
    const order = stacked ? lines.map((_, i) => lines.length - 1 - i) : lines.map((_, i) => i);
    const drawn = stacked ? columns.map((_, i) => columns[0].map((_, j) =>
      columns.slice(0, i + 1).reduce((sum, column) => (column[j] == null ? sum : sum + column[j]), 0))) : columns;
    const chart = element("chart");
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", `${title}: ${lines.map((l) => `${l.name} ${summary(l.values, unit)}`).join("; ")}`);
    if (title) chart.append(element("title", unit ? `${title} (${unit.trim()})` : title));
    place.append(chart);
    const grid = { stroke: css("--faint"), width: 1 };
    const axis = { stroke: css("--quiet"), grid, ticks: { ...grid, size: 4 }, font: "12px system-ui, sans-serif" };
    charts.push(new uPlot({
      width: Math.max(240, place.clientWidth),
      height,
      legend: { show: legend, live: true },
      cursor: { sync: sync ? { key: sync } : undefined, drag: { x: true, y: false }, points: { size: 5 } },
      scales: {
        x: { time: false, range: () => [0, length] },
        y: { range: (_, low, high) => [0, max ?? (high > 0 ? high * 1.06 : 1)] },
      },
      axes: [
        { ...axis, size: 28, values: (_, ticks) => ticks.map((t) => `${t} s`) },
        { ...axis, size: 58, values: (_, ticks) => ticks.map((v) => v.toLocaleString("en")) },
      ],
      series: [
        { label: "time", value: (_, t) => t == null ? "–" : `${t} s` },
        ...order.map((i) => ({
          label: lines[i].name,
          stroke: lines[i].stroke,
          fill: stacked ? lines[i].stroke : undefined,
          dash: lines[i].dash,
          width: stacked ? 0 : 1.75,
          points: { show: false },
          paths: uPlot.paths.stepped({ align: 1 }),
          value: (_, value, __, at) => show(at == null ? value : columns[i][at], unit),
        })),
      ],
    }, [[...times, length], ...order.map((i) => drawn[i])], chart));
  }

  function summary(values, unit) {
    const known = values.filter((v) => v != null);
    if (known.length === 0) return "unknown";
    return `from ${show(Math.min(...known), unit)} to ${show(Math.max(...known), unit)}`;
  }

  // The last element may cover a sliver of a second: its rate says nothing.
  const whole = (trial) => trial.series.filter((s) => s.length_s > 0.5);
  const lengthOf = (trial) => Math.max(trial.measured_s ?? 0, ...trial.series.map((s) => s.t_s + s.length_s));

  function overview() {
    const chosen = byId("treatment").value;
    const shown = trials.filter((t) => t.state === "completed" && (chosen === "all" || t.treatment === Number(chosen)));
    byId("overview").replaceChildren();
    if (shown.length === 0) return byId("overview").append(element("title", "No completed trial."));
    const few = shown.length <= 6;
    draw(byId("overview"), {
      title: "Transactions per second, one line a trial",
      unit: "",
      length: Math.max(...shown.map(lengthOf)),
      height: 240,
      legend: few,
      lines: shown.map((t) => ({
        name: label(t),
        stroke: colour(t.treatment),
        dash: dashes[(t.repeat - 1) % dashes.length],
        t: whole(t).map((s) => s.t_s),
        values: whole(t).map((s) => s.tps),
      })),
    });
    if (few) return;
    // A live legend of many lines is a wall: one entry a treatment, and the choice above for the rest.
    const legend = element("title");
    for (const index of [...new Set(shown.map((t) => t.treatment))].sort((a, b) => a - b)) {
      const entry = Object.assign(document.createElement("span"), { className: `legend c${index % COLOURS}` });
      const key = Object.assign(document.createElement("span"), { className: "key line" });
      entry.append(key, ` ${view.treatments[index].label}`);
      legend.append(entry, " ");
    }
    byId("overview").append(legend);
  }

  function detail() {
    const trial = trials[Number(byId("trial").value)];
    const place = byId("detail");
    place.replaceChildren();
    const length = lengthOf(trial);
    const seconds = whole(trial);
    const t = seconds.map((s) => s.t_s);
    const of = (name, key, stroke, scale) => ({
      name, stroke, t, values: seconds.map((s) => s[key] == null ? null : s[key] * scale),
    });
    const common = { length, sync: "trial" };
    draw(place, { ...common, title: "Transactions per second", unit: "", lines: [of("tps", "tps", colour(trial.treatment), 1)] });
    draw(place, {
      ...common, title: "Latency", unit: " ms",
      lines: [of("p50", "latency_us_p50", colour(2), 1e-3), of("p99", "latency_us_p99", colour(1), 1e-3)],
    });
    const panel = (where, table) => {
      // A sample is taken just before the window opens: it is the window's beginning.
      const times = table.t_s.map((at) => Math.min(length, Math.max(0, Math.round(at * 10) / 10)));
      draw(where, {
        ...common,
        title: table.title,
        unit: table.unit === "%" ? "%" : ` ${table.unit}`,
        max: table.unit === "%" && !table.detail ? 100 : undefined,
        height: table.stacked ? 220 : 140,
        stacked: table.stacked,
        lines: table.lines.map((line, i) => ({ name: line.name, stroke: colour(i), t: times, values: line.values })),
      });
    };
    trial.telemetry.filter((table) => !table.detail).forEach((table) => panel(place, table));
    events(place, trial);
    const details = trial.telemetry.filter((table) => table.detail);
    if (details.length === 0) return;
    const more = document.createElement("details");
    more.append(Object.assign(document.createElement("summary"), { textContent: `${details.length} more charts: ${[...new Set(details.map((d) => d.title))].slice(0, 4).join(", ")}, …` }));
    place.append(more);
    // Drawn when first opened: a chart in something closed has no width.
    more.addEventListener("toggle", () => details.splice(0).forEach((table) => panel(more, table)), { once: true });
  }

  /// What the server logged of checkpoints and autovacuum.
  function events(place, trial) {
    if (!trial.events || trial.events.length === 0) return;
    place.append(element("title", "Checkpoints and autovacuum, from the server's log"));
    const table = document.createElement("table");
    for (const event of trial.events) {
      const row = table.insertRow();
      const numbers = Object.entries(event.numbers).map(([name, value]) => `${name} ${value.toLocaleString("en")}`).join(", ");
      const at = event.t_s == null ? "–" : `${event.t_s.toFixed(1)} s`;
      for (const [text, name] of [[at, "n"], [event.kind, "word"], [event.of, ""], [numbers, ""]]) {
        Object.assign(row.insertCell(), { textContent: text, className: name });
      }
    }
    const scroll = element("scroll");
    scroll.append(table);
    place.append(scroll);
  }

  function redraw() {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    overview();
    detail();
  }

  byId("treatment").append(option("all", "all treatments"), ...view.treatments.map((t) => option(t.index, t.label)));
  byId("trial").append(...trials.map((t, i) => option(i, `${t.ordinal + 1}: ${label(t)}${t.state === "completed" ? "" : ` (${t.state})`}`)));
  byId("treatment").addEventListener("change", redraw);
  byId("trial").addEventListener("change", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    redraw();
  });
  redraw();
})();
