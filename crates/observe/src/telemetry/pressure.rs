//! Time in which tasks waited for a resource, from `/proc/pressure`
//! (Documentation/accounting/psi.rst). `some` counts while at least one task waited, `full` while
//! all tasks that were not idle did.

use std::path::Path;

use pgdyno_model::telemetry::Kind;

use super::probe::{EACH_SAMPLE, ProbeError, ProbeResult, column, fixed_columns, float, read};

const RESOURCES: &[&str] = &["cpu", "io", "memory", "irq"];

pub(super) fn make(_: Option<&Path>) -> ProbeResult {
    // Each file and its lines: `irq` has no `some`, and an old kernel's `cpu` has no `full`.
    let mut sources: Vec<(String, Vec<&str>)> = Vec::new();
    let mut columns = Vec::new();
    let mut why = None;
    for resource in RESOURCES {
        let path = format!("/proc/pressure/{resource}");
        match read(&path) {
            Ok(text) => {
                let lines: Vec<&str> = ["some", "full"]
                    .into_iter()
                    .filter(|line| total(&text, line).is_some())
                    .collect();
                columns.extend(
                    lines
                        .iter()
                        .map(|line| column(format!("{resource}.{line}"), "us", Kind::Counter)),
                );
                sources.push((path, lines));
            }
            Err(e) => why = why.or(Some(e)),
        }
    }
    match why {
        Some(why) if sources.is_empty() => Err(ProbeError::NoPressure(Box::new(why))),
        _ => Ok(fixed_columns(EACH_SAMPLE, columns, move || {
            let mut values = Vec::new();
            for (path, lines) in &sources {
                let text = read(path)?;
                values.extend(lines.iter().map(|line| total(&text, line).map(float)));
            }
            Ok(values)
        })),
    }
}

/// Returns the total of the line that begins with `line` (microseconds since boot).
pub(super) fn total(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(line))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_that_of_the_line_asked_for() {
        let text = "some avg10=0.14 avg60=0.84 avg300=0.67 total=5899414\n\
            full avg10=0.01 avg60=0.72 avg300=0.59 total=51\n";
        assert_eq!((total(text, "some"), total(text, "full")), (Some(5_899_414), Some(51)));
        assert_eq!(total("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", "full"), None);
    }
}
