//! Renders the noise of hosts for a terminal.

use comfy_table::Cell;
use pgdyno_text::format::{self, counted};

use super::table::{NONE, right, table_lines};
use super::terminal::section;
use super::text::{plain, wrap};
use crate::prose;
use pgdyno_analysis::host_noise::{
    ExperimentNoise, Forecast, HostNoiseView, NoForecast, NoiseView, SpreadView,
};

/// Renders the noise as plain text in at most `width` columns, with a newline at the end.
pub fn noise(view: &NoiseView, width: u16) -> String {
    let width = width.max(40);
    let mut lines: Vec<String> = Vec::new();
    for host in &view.hosts {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(of_host(host, width));
    }
    if view.hosts.is_empty() {
        lines.push("No completed run tells the noise of this host.".to_owned());
    }
    if view.read < view.completed {
        lines.push(String::new());
        let text = format!(
            "Of {} {} count: the newest of each host.",
            counted(view.completed as u64, "completed run"),
            view.read
        );
        lines.extend(wrap(&text, width.into(), ""));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Renders what a plan will find, as a section below the plan with a newline at the end.
pub fn forecast(found: &Result<Forecast, NoForecast>, width: u16) -> String {
    let lines = section("What the run can tell", &prose::forecast(found), width.max(40));
    lines.join("\n") + "\n"
}

fn of_host(host: &HostNoiseView, width: u16) -> Vec<String> {
    let name = host.name.as_deref().map_or_else(|| "this host".to_owned(), plain);
    let head = format!(
        "{name}: {} from {} to {}",
        counted(host.runs as u64, "completed run"),
        host.since,
        host.until
    );
    let mut lines = wrap(&head, width.into(), "   ");
    if !host.differs.is_empty() {
        let text = format!(
            "Runs of today are judged without these, since {} changed.",
            host.differs.join(", ")
        );
        lines.extend(wrap(&text, width.into(), "   "));
    }
    lines.push(String::new());
    let header = vec![Cell::new("noise of tps"), right("spread"), Cell::new("known by")];
    let rows = levels(host).map(|(what, spread, known_by)| {
        let known_by = spread.map_or_else(String::new, |s| known_by(s.known_by));
        vec![Cell::new(what), right(cell(spread)), Cell::new(known_by)]
    });
    lines.extend(table_lines(header, rows.into(), width));
    lines.push(String::new());
    let header = vec![
        Cell::new("experiment"),
        right("runs"),
        right("treatments"),
        right("trials"),
        right("equal runs"),
    ];
    let row = |e: &ExperimentNoise| {
        let figures =
            [e.runs.to_string(), e.treatments.to_string(), cell(e.trials), cell(e.between_runs)];
        [Cell::new(plain(&e.recipe))].into_iter().chain(figures.map(right)).collect()
    };
    lines.extend(table_lines(header, host.experiments.iter().map(row).collect(), width));
    lines.extend(section("What it allows", &prose::allowance(host), width));
    lines
}

/// Renders what a level of noise is known by.
type KnownBy = fn(f64) -> String;

/// The levels of noise, from the innermost, with what counts as knowledge of each.
fn levels(host: &HostNoiseView) -> [(&'static str, Option<SpreadView>, KnownBy); 5] {
    let freedom = prose::degrees_of_freedom;
    [
        ("seconds, as a trial's mean has it", host.seconds, trials),
        ("trials of one run", host.trials, freedom),
        ("equal runs, beyond their trials", host.between_runs, freedom),
        ("equal runs of one day", host.runs_of_a_day, freedom),
        ("days, beyond their runs", host.days, freedom),
    ]
}

fn trials(count: f64) -> String {
    if count > 1.0 { format!("{count:.0} trials") } else { "1 trial".to_owned() }
}

fn cell(spread: Option<SpreadView>) -> String {
    spread.map_or_else(|| NONE.to_owned(), |s| format!("{}%", format::percent(s.spread)))
}
