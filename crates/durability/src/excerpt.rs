//! The part of a ledger that shows what a fault took: missing transactions among their neighbours.

use std::collections::BTreeSet;
use std::time::Duration;

use pgdyno_model::ledger::{Entry, History, State, Token};

use crate::found::Aftermath;

/// Lines of an excerpt at most, without its heading.
const LINES: usize = 30;
/// Transactions before the fault that are shown where none is missing.
const LAST: usize = 8;

/// Returns lines of `history` for people, as a table: the first missing transactions, each with the
/// one sent before it and the one sent after it; where none is missing, the last ones. Times are
/// milliseconds relative to the fault, which struck at `struck_at` on the ledger's clock. None for
/// an empty ledger, and where the fault was not tried.
pub fn ledger_excerpt(
    history: &History,
    aftermath: &Aftermath,
    struck_at: Duration,
) -> Option<String> {
    let there = match aftermath {
        Aftermath::NotTried(_) => return None,
        Aftermath::Up(found) => found.tokens(),
        Aftermath::WillNotStart(_) | Aftermath::WillNotMount(_) => None,
    };
    let mut entries: Vec<&Entry> = history.entries().collect();
    entries.sort_by_key(|entry| (entry.begun, entry.token));
    let is_missing = |entry: &Entry| {
        entry.state == State::Acknowledged
            && there.as_ref().is_some_and(|there| !there.contains(&entry.token))
    };
    let missing = (0..entries.len()).filter(|n| is_missing(entries[*n]));
    let around = missing.flat_map(|n| n.saturating_sub(1)..(n + 2).min(entries.len()));
    let mut shown: BTreeSet<usize> = around.take(3 * LINES).collect();
    if shown.is_empty() {
        shown.extend(entries.len().saturating_sub(LAST)..entries.len());
    }
    let first = *shown.first()?;
    let mut lines = vec![line("transaction", "sent ms", "done ms", "state", "row")];
    let mut before = first;
    for n in shown.into_iter().take(LINES) {
        if n > before + 1 {
            lines.push("…".to_owned());
        }
        lines.push(entry_line(entries[n], there.as_ref(), struck_at));
        before = n;
    }
    Some(lines.join("\n"))
}

fn entry_line(entry: &Entry, there: Option<&BTreeSet<Token>>, struck_at: Duration) -> String {
    let since = |at: Duration| format!("{:.3}", (at.as_secs_f64() - struck_at.as_secs_f64()) * 1e3);
    let (state, is_done) = match entry.state {
        State::Issued => ("COMMIT not sent", false),
        State::Acknowledged => ("acknowledged", true),
        State::Failed => ("failed", true),
        State::Unknown => ("in doubt", false),
    };
    let done = if is_done { since(entry.at) } else { "-".to_owned() };
    let row = match there.map(|there| there.contains(&entry.token)) {
        Some(true) => "found",
        Some(false) if entry.state == State::Acknowledged => "MISSING",
        Some(false) => "none",
        None => "not read",
    };
    line(&entry.token.to_string(), &since(entry.begun), &done, state, row)
}

fn line(token: &str, sent: &str, done: &str, state: &str, row: &str) -> String {
    format!("{token:<16} {sent:>12} {done:>12}  {state:<15}  {row}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod tests {
    use super::*;
    use crate::found::{Found, Unseen};
    use crate::judge::tests::{history, honest};

    const STRUCK: Duration = Duration::from_millis(610);

    fn excerpt(change: impl FnOnce(&mut Found)) -> String {
        let mut found = honest(&history());
        change(&mut found);
        ledger_excerpt(&history(), &Aftermath::Up(Box::new(found)), STRUCK).unwrap()
    }

    #[test]
    fn a_missing_transaction_stands_among_its_neighbours() {
        let text = excerpt(|found| {
            let lost = [Token { client: 1, sequence: 2 }, Token { client: 0, sequence: 5 }];
            found.recovered.rows.as_mut().unwrap().retain(|row| !lost.contains(&row.token));
        });
        let cells: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(cells[2], ["(1,", "2)", "-460.000", "-410.000", "acknowledged", "MISSING"]);
        assert_eq!(cells[4], ["…"], "what lies between is left out");
        let rows: Vec<&str> = cells[1..].iter().map(|line| *line.last().unwrap()).collect();
        assert_eq!(rows, ["found", "MISSING", "none", "…", "found", "MISSING", "found"]);
    }

    #[test]
    fn where_nothing_is_missing_the_last_ones_are_shown() {
        let text = excerpt(|_| {});
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + LAST);
        assert!(lines[7].contains("in doubt") && lines[7].ends_with("found"), "{text}");
        assert!(lines[8].contains("COMMIT not sent") && lines[8].ends_with("none"), "{text}");
    }

    #[test]
    fn rows_that_could_not_be_read_are_not_missing() {
        let text =
            excerpt(|found| found.recovered.rows = Err(Unseen::CouldNotRun("it died".into())));
        assert!(text.lines().skip(1).all(|line| line.ends_with("not read")), "{text}");
        let down = Aftermath::WillNotStart("PANIC".into());
        assert_eq!(ledger_excerpt(&history(), &down, STRUCK), Some(text));
        let not_tried = Aftermath::NotTried("the load had ended".into());
        assert_eq!(ledger_excerpt(&history(), &not_tried, STRUCK), None);
        assert_eq!(ledger_excerpt(&History::default(), &down, STRUCK), None);
    }

    #[test]
    fn the_excerpt_of_a_great_loss_is_bounded() {
        let mut many = history();
        let like = many.clients[0][0];
        many.clients[0] = (0..100_000)
            .map(|sequence| Entry { token: Token { client: 0, sequence }, ..like })
            .collect();
        let mut found = honest(&many);
        found.recovered.rows = Ok(Vec::new());
        let text = ledger_excerpt(&many, &Aftermath::Up(Box::new(found)), STRUCK).unwrap();
        assert_eq!(text.lines().count(), 1 + LINES);
    }
}
