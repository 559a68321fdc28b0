//! Sentences on repeats: how many there are, and how they spread.

use pgdyno_audit::{Compared, Interval, RepeatsKind, RowTrend, Trends};

use super::{exact, joined, rounded};

/// More intervals than these are in JSON only.
const MOST_INTERVALS: usize = 12;

pub(super) fn message(kind: &RepeatsKind, is_right: bool) -> String {
    match kind {
        RepeatsKind::EqualValues { row, equal_values, .. } => {
            let values = joined(equal_values);
            match equal_values.len() {
                1 => format!("`{row}`: n = 1 ({values}): no spread, so no interval"),
                n => format!(
                    "`{row}`: n = 1 in effect: {n} equal values ({values}), of which no spread and \
                     no interval can be had"
                ),
            }
        }
        RepeatsKind::SingleRuns { program, runs, tps, ratio } => {
            let runs = match runs {
                1 => format!("1 run of {program}, n = 1"),
                n => format!("{n} runs of {program}, n = 1 each"),
            };
            let ratio = ratio.map(|ratio| {
                let words = tps.iter().copied().map(exact).collect::<Vec<_>>().join(" ÷ ");
                format!("; the ratio {words} = {} rests on one run of each", exact(ratio))
            });
            format!("{runs}: no spread, so no interval{}", ratio.unwrap_or_default())
        }
        RepeatsKind::MeansAlone { .. } => "means of a number of repeats that is not said, without \
            a spread: no interval can be had"
            .to_owned(),
        RepeatsKind::OneFigure { rows, is_time } => {
            let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
            let figures = if *is_time { "times" } else { "tps" };
            format!(
                "{rows} of {figures} with one figure each and no spread: no interval can be had, \
                 and differences cannot be told from noise"
            )
        }
        RepeatsKind::Trends(trends) if is_right => format!(
            "{} rows of four repeats or more: no more rise or fall than by chance",
            trends.tested
        ),
        RepeatsKind::Trends(found) => trends(found),
        RepeatsKind::Intervals { intervals } => {
            let more = intervals.len().saturating_sub(MOST_INTERVALS);
            let mut words: Vec<String> =
                intervals.iter().take(MOST_INTERVALS).map(interval).collect();
            words.extend((more > 0).then(|| format!("and {more} more")));
            format!("95% intervals of means: {}", words.join("; "))
        }
        RepeatsKind::TooManyRows { rows } => {
            format!("{rows} rows are too many to compare each with each: none was")
        }
        RepeatsKind::Compared(compared) if is_right => {
            format!("{} rows are told apart from each other", compared.rows.len())
        }
        RepeatsKind::Compared(compared) => alike(compared),
    }
}

fn trends(found: &Trends) -> String {
    let row = |row: &RowTrend| {
        let way = if row.rising { "rises" } else { "falls" };
        let (label, values, percent) = (&row.row, joined(&row.values), row.chance * 100.0);
        format!("`{label}` {way} ({values}; by chance in {percent:.1}% of orders, up or down)")
    };
    let rows = found.rows.iter().map(row).collect::<Vec<_>>().join(", ");
    let (event, chance) = if found.chance_of_so_many <= found.chance_of_one_so_steady {
        ("so many do", found.chance_of_so_many)
    } else {
        ("one does so as steadily", found.chance_of_one_so_steady)
    };
    format!(
        "{} of {} rows rise or fall over their repeats, as warm-up or drift makes them: {rows}; \
         {event} by chance in 1 of {} such reports",
        found.rows.len(),
        found.tested,
        exact((1.0 / chance).round())
    )
}

fn interval(interval: &Interval) -> String {
    let Interval { row, n, mean, ci95, why, .. } = interval;
    let mean = mean.map_or_else(|| "–".to_owned(), rounded);
    match ci95 {
        Some([low, high]) => {
            format!("`{row}` {mean} ({}–{}, n = {n})", rounded(*low), rounded(*high))
        }
        None => format!("`{row}` {mean} ({})", why.as_deref().unwrap_or_default()),
    }
}

/// Says which rows do not differ.
fn alike(compared: &Compared) -> String {
    let quoted = |row: &String| format!("`{row}`");
    let mut sentences = Vec::new();
    if !compared.rows.is_empty() {
        let rows = compared.rows.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let from = match &compared.highest {
            Some(highest) => format!("the highest, `{highest}`"),
            None => "each other".to_owned(),
        };
        let seen = compared.detectable_percent.map(|percent| {
            format!("; only a difference over {}% would have been seen", rounded(percent))
        });
        let seen = seen.unwrap_or_default();
        sentences.push(format!("{rows} cannot be told apart from {from}{seen}"));
    }
    if !compared.others.is_empty() {
        let pairs = compared.others.iter().map(|[a, b]| format!("`{a}` and `{b}`"));
        sentences.push(format!("nor can {}", pairs.collect::<Vec<_>>().join(", ")));
    }
    sentences.join("; ")
}
