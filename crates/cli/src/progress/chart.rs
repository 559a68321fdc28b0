//! The charts of the view, each in one line of text.

use std::collections::BTreeMap;

use pgdyno_model::PlannedTrial;
use pgdyno_model::live::LoadSecond;
use pgdyno_report::live::LiveTrialState;

use super::line::{Line, Paint};

/// Heights of a column, from the lowest that shows.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the mark of a column that is `share` (0 to 1) of the highest.
fn column(share: f64) -> char {
    let height = (share * HEIGHTS.len() as f64).ceil() as usize;
    HEIGHTS[height.clamp(1, HEIGHTS.len()) - 1]
}

/// Draws `values` from 0 to `highest` in at most `room` columns. Where there are more values, a
/// column has the mean of some.
pub(super) fn sparkline(values: &[f64], highest: f64, room: usize) -> String {
    let each = values.len().div_ceil(room.max(1)).max(1);
    let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
    values
        .chunks(each)
        .map(|some| column(if highest > 0.0 { mean(some) / highest } else { 0.0 }))
        .collect()
}

/// A histogram of latencies over a logarithmic axis.
#[derive(Debug, PartialEq)]
pub(super) struct Histogram {
    /// Lower end of the first column (microseconds).
    pub(super) low_us: f64,
    /// Upper end of the last column (microseconds).
    pub(super) high_us: f64,
    /// The columns, each as many buckets wide. One without a latency is blank.
    pub(super) columns: String,
}

/// Adds up the latencies of `seconds`; none if no transaction ended. It has at most `room` columns.
pub(super) fn histogram(seconds: &[LoadSecond], room: usize) -> Option<Histogram> {
    let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
    for (bucket, count) in seconds.iter().flat_map(|second| &second.latencies) {
        let sum = buckets.entry(usize::from(*bucket)).or_default();
        *sum = sum.saturating_add(*count);
    }
    let (first, last) = (*buckets.keys().next()?, *buckets.keys().next_back()?);
    let each = (last + 1 - first).div_ceil(room.max(1));
    let mut counts = vec![0_u64; (last + 1 - first).div_ceil(each)];
    for (bucket, count) in buckets {
        let sum = &mut counts[(bucket - first) / each];
        *sum = sum.saturating_add(count);
    }
    let highest = counts.iter().max().copied().unwrap_or_default() as f64;
    let mark = |count: &u64| if *count == 0 { ' ' } else { column(*count as f64 / highest) };
    let end_us = |bucket: usize| (bucket as f64 / f64::from(LoadSecond::BUCKETS_PER_OCTAVE)).exp2();
    Some(Histogram {
        low_us: end_us(first),
        high_us: end_us(first + each * counts.len()),
        columns: counts.iter().map(mark).collect(),
    })
}

/// Draws a share (0 to 1) as a bar.
pub(super) fn gauge(share: f64, room: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * room as f64).round() as usize;
    "█".repeat(full) + &"·".repeat(room - full)
}

/// Draws the plan into `line`: one mark a trial, in at most `room` columns, blocks apart where
/// there is room. Of a long plan one mark stands for several trials, and shows the one in progress
/// before one that failed, and that before one that is left.
pub(super) fn ribbon(
    line: &mut Line,
    plan: &[PlannedTrial],
    states: &[LiveTrialState],
    room: usize,
) {
    let is_apart = |n: usize| n > 0 && plan[n].block != plan[n - 1].block;
    let gaps = (0..plan.len()).filter(|n| is_apart(*n)).count();
    // With one treatment, or all repeats of one first, every trial has a block of its own.
    let has_gaps = plan.len() + gaps <= room && (gaps + 1) * 2 <= plan.len();
    let mut each = plan.len().div_ceil(room.max(1)).max(1);
    let scale = |each: usize| format!(" ({each} trials a mark)");
    let has_scale = each > 1 && room > 2 * scale(each).len();
    if has_scale {
        each = plan.len().div_ceil(room - scale(each).len() - 1);
    }
    for (n, some) in states.chunks(each).enumerate() {
        if has_gaps && is_apart(n) {
            line.push(Paint::Plain, " ");
        }
        let (paint, mark) = mark(some);
        line.push(paint, mark);
    }
    if has_scale {
        line.push(Paint::Dim, &scale(each));
    }
}

/// Returns the mark of some trials.
fn mark(states: &[LiveTrialState]) -> (Paint, &'static str) {
    let has = |is: fn(&LiveTrialState) -> bool| states.iter().any(is);
    if has(|state| matches!(state, LiveTrialState::Running)) {
        (Paint::Active, "▸")
    } else if has(|state| matches!(state, LiveTrialState::Failed { .. })) {
        (Paint::Bad, "✗")
    } else if has(|state| matches!(state, LiveTrialState::Left)) {
        (Paint::Dim, "·")
    } else {
        (Paint::Good, "■")
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Look;
    use super::*;

    fn latencies(of: &[(u16, u64)]) -> LoadSecond {
        LoadSecond { latencies: of.to_vec(), ..LoadSecond::default() }
    }

    #[test]
    fn a_sparkline_begins_at_zero_and_its_columns_are_means() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0], 100.0, 9), "▁▄█");
        assert_eq!(sparkline(&[0.0, 100.0, 100.0, 100.0], 100.0, 2), "▄█");
        assert_eq!(sparkline(&[0.0, 0.0], 0.0, 9), "▁▁");
        assert_eq!(sparkline(&[], 0.0, 9), "");
        for seconds in [1, 7, 80, 81, 3600] {
            assert!(sparkline(&vec![1.0; seconds], 1.0, 80).chars().count() <= 80);
        }
    }

    #[test]
    fn a_histogram_shows_one_slow_transaction_of_a_million() {
        let seconds = [latencies(&[(40, 500_000)]), latencies(&[(40, 500_000), (44, 1)])];
        let histogram = histogram(&seconds, 10).unwrap();
        assert_eq!(histogram.columns, "█   ▁");
        assert_eq!(histogram.low_us, 1024.0);
        assert!((histogram.high_us - 2048.0 * 2_f64.powf(0.25)).abs() < 1e-9);
    }

    #[test]
    fn a_wide_histogram_is_drawn_in_wider_columns() {
        let histogram = histogram(&[latencies(&[(0, 4), (7, 4), (8, 1)])], 5).unwrap();
        assert_eq!((histogram.columns.as_str(), histogram.low_us), ("█  █▂", 1.0));
        assert_eq!(histogram.high_us, 2_f64.powf(10.0 / 4.0));
        assert_eq!(super::histogram(&[LoadSecond::default()], 5), None);
    }

    fn drawn(blocks: &[u32], states: &[LiveTrialState], room: usize) -> String {
        let trial = |(n, block): (usize, &u32)| PlannedTrial {
            ordinal: u32::try_from(n).unwrap(),
            block: *block,
            treatment: 0,
            repeat: *block,
        };
        let plan: Vec<_> = blocks.iter().enumerate().map(trial).collect();
        let mut line = Line::default();
        ribbon(&mut line, &plan, states, room);
        line.render(Look { width: 200, is_colored: false }).text
    }

    #[test]
    fn a_ribbon_has_a_mark_for_each_trial_and_blocks_apart() {
        use LiveTrialState::{Left, Running};
        let done = || LiveTrialState::Done { tps: None, latency_us_p99: None };
        let failed = || LiveTrialState::Failed { failure: "x".into() };
        let states = || vec![done(), failed(), done(), Running, Left, Left];
        assert_eq!(drawn(&[1, 1, 2, 2, 3, 3], &states(), 20), "■✗ ■▸ ··");
        assert_eq!(drawn(&[1, 2, 3, 4, 5, 6], &states(), 20), "■✗■▸··");
        assert_eq!(drawn(&[1, 1, 2, 2, 3, 3], &states(), 6), "■✗■▸··");
        assert_eq!(drawn(&[1, 1, 2, 2, 3, 3], &states(), 3), "✗▸·");
        assert_eq!(drawn(&[], &[], 3), "");
        let long = drawn(&[1; 100], &vec![done(); 100], 50);
        assert_eq!(long, format!("{} (4 trials a mark)", "■".repeat(25)));
    }

    #[test]
    fn a_gauge_is_full_at_the_end() {
        assert_eq!(
            [0.0, 0.5, 1.0, 7.0].map(|share| gauge(share, 4)),
            ["····", "██··", "████", "████"]
        );
    }
}
