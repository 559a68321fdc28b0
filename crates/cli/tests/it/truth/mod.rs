//! Judgements beside a known truth: stores of runs that never happened, judged by the real binary.
//!
//! Each cell is a promise of docs/statistics.md. `just check-all` runs a few stores of each, which
//! finds what is wrong by far; `just truth` runs many and writes the table of docs/statistics.md.

mod cells;
mod factors;
mod noise;
mod pairs;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::support;
use cells::{CELLS, Cell, Promise};
use pgdyno_test_support::records;

/// Stores of each cell.
fn times() -> u32 {
    std::env::var("PGDYNO_TRUTH")
        .map_or(24, |times| times.parse().expect("PGDYNO_TRUTH is a number"))
}

/// How many of `times` stores make `cell` true (percent).
fn found(cell: &Cell, times: u32) -> f64 {
    let (next, held) = (AtomicU32::new(0), AtomicU32::new(0));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= times {
                        return;
                    }
                    // Far from each other: neighbouring seeds of such a generator begin alike.
                    let seed = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let mut random = records::Random(seed);
                    (0..20).for_each(|_| {
                        random.uniform();
                    });
                    held.fetch_add(u32::from((cell.is_true)(&mut random)), Ordering::Relaxed);
                }
            });
        }
    });
    100.0 * f64::from(held.into_inner()) / f64::from(times)
}

#[test]
#[ignore = "long: simulations of error rates"]
fn judgements_keep_their_promises_on_stores_whose_truth_is_known() {
    let times = times();
    let mut table = String::new();
    let mut broken = Vec::new();
    // Rows alone, for whoever works on them: the table is that of all.
    let only = std::env::var("PGDYNO_ONLY").unwrap_or_default();
    let cells = CELLS.iter().chain(pairs::CELLS).chain(factors::CELLS).chain(noise::CELLS);
    for cell in cells.filter(|cell| cell.name.contains(&only)) {
        let found = found(cell, times);
        // Standard error of a share (percent).
        let error = |share: f64| {
            100.0 * (share * (1.0 - share) / f64::from(times)).sqrt().max(0.5 / f64::from(times))
        };
        let own = error(found / 100.0);
        let row = format!("| {} | {} | {found:.1}% ± {own:.1} |\n", cell.name, cell.promise);
        eprint!("{row}");
        // Four of a share that is just as promised.
        let slack = |share: f64| 4.0 * error(share);
        let holds = match cell.promise {
            Promise::AtMost(percent) => found <= percent + slack(percent / 100.0),
            Promise::AtLeast(percent) => found >= percent - slack(percent / 100.0),
            Promise::None => true,
            Promise::About(percent, by) => (found - percent).abs() <= by + slack(percent / 100.0),
        };
        if !holds {
            broken.push(row.clone());
        }
        table.push_str(&row);
    }
    if only.is_empty() {
        write(&table, times);
    }
    assert!(broken.is_empty(), "promises that are not kept:\n{}", broken.concat());
}

/// Puts the table into docs/statistics.md, where that is asked for.
fn write(table: &str, times: u32) {
    let head = format!(
        "`just truth {times}`, on {}: {times} stores for each row, with the standard error.\n\n\
         | truth | promise | found |\n|---|---|---|\n",
        support::docs::date()
    );
    support::docs::write("statistics.md", "truth", &format!("{head}{table}"));
}
