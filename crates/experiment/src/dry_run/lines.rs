//! Lines of a plan's text. Names and values in them come from files of anybody's: none begins a
//! line of its own.

use std::fmt;

use pgdyno_text::printable::escape_line;

/// As `writeln!`, for one line; an empty line may come before it.
macro_rules! line {
    ($out:expr, $($arguments:tt)*) => {{
        piece!($out, $($arguments)*);
        $out.push('\n');
    }};
}

/// As `write!`, for a piece of a line.
macro_rules! piece {
    ($out:expr, $($arguments:tt)*) => {
        $out.push_str(&$crate::dry_run::lines::escape(format_args!($($arguments)*)))
    };
}

/// Adds a step: its first line with a dash, the others below it.
macro_rules! step {
    ($out:expr, $($arguments:tt)*) => {
        $crate::dry_run::lines::push_step($out, &format!($($arguments)*))
    };
}

/// Returns `text` on one line, after an empty one if it begins with a newline.
pub(super) fn escape(text: fmt::Arguments<'_>) -> String {
    let text = text.to_string();
    match text.strip_prefix('\n') {
        Some(line) => format!("\n{}", escape_line(line)),
        None => escape_line(&text).into_owned(),
    }
}

pub(super) fn push_step(out: &mut String, step: &str) {
    for (i, line) in step.lines().enumerate() {
        line!(out, "  {} {line}", if i == 0 { "-" } else { " " });
    }
}
