//! Words for causes.

use pgdyno_text::format;

use pgdyno_analysis::Cause;

/// Renders a cause with its figures.
pub(crate) fn cause(cause: &Cause) -> String {
    let kind = cause_kind(cause);
    match cause {
        Cause::CheckpointBegins { .. } | Cause::CheckpointEnds | Cause::Autovacuum { .. } => kind,
        Cause::Telemetry { before, after, unit, .. } => {
            format!("{kind} {} → {}{unit}", format::rate(*before), format::rate(*after))
        }
        Cause::DeviceGaveLess { operations: [was, is], latency_ms: [took, takes], .. } => format!(
            "{kind}: {} → {} operations/s of {} → {} ms each, as when burst credit is gone or a \
             limit sets in",
            format::rate(*was),
            format::rate(*is),
            format::seconds(*took),
            format::seconds(*takes)
        ),
    }
}

/// Renders a cause without its figures, so that causes of one kind have one text.
pub(crate) fn cause_kind(cause: &Cause) -> String {
    match cause {
        Cause::CheckpointBegins { reason } if reason.trim() == "time" => {
            "checkpoint begins (timed)".to_owned()
        }
        Cause::CheckpointBegins { reason } => format!("checkpoint begins (requested: {reason})"),
        Cause::CheckpointEnds => "checkpoint ends".to_owned(),
        Cause::Autovacuum { kind, table, begins: true } => format!("{kind} of {table} begins"),
        Cause::Autovacuum { kind, table, begins: false } => format!("{kind} of {table}"),
        Cause::Telemetry { source, .. } => (*source).to_owned(),
        Cause::DeviceGaveLess { device, .. } => {
            format!("device {device} gave less while as much was asked")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_rendered_with_their_figures() {
        let timed = Cause::CheckpointBegins { reason: "time".into() };
        assert_eq!(cause(&timed), "checkpoint begins (timed)");
        let less = Cause::DeviceGaveLess {
            device: "vda".into(),
            operations: [3000.0, 600.0],
            latency_ms: [16.0 / 3.0, 80.0 / 3.0],
        };
        let text = cause(&less);
        let words = "device vda gave less while as much was asked: 3,000 → 600 operations/s of \
                     5.33 → 26.7 ms each";
        assert!(text.starts_with(words), "{text}");
    }
}
