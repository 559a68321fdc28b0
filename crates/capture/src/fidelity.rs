//! Fidelity of a replayed workload: how alike its activity and the original's are.
//!
//! Each measure has an *agreement* from 0 to 1. For shares a and b, whose sums are at most 1, that
//! is Σ min(a, b): 1 less half the L1 distance where both add up to 1. For sizes a and b it is
//! min(a, b) / max(a, b). The score is the mean of the agreements that are known.

use std::collections::BTreeMap;

use pgdyno_model::json::Document;
use serde::Serialize;

use crate::activity::{Activity, Sessions, StatementCounts};
use crate::document::Captured;
use crate::folder::tagged;

/// Two figures, of the original and of its replay, and how alike they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Figure of the original; none where it is a distribution.
    pub original: Option<f64>,
    /// Figure of the replay.
    pub replay: Option<f64>,
    /// Agreement (0 to 1).
    pub agreement: f64,
}

/// A statement on both servers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatementFidelity {
    /// Number in `captured.json`.
    pub number: usize,
    /// Text, without comments.
    pub text: String,
    /// Calls of a transaction.
    pub calls: Agreement,
    /// Rows of a call.
    pub rows: Agreement,
    /// WAL of a call (bytes).
    pub wal_bytes: Agreement,
    /// Mean execution time (ms), which also tells the two machines apart. No part of the score.
    pub time_ms: Agreement,
}

/// Fidelity of a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// Mean of the agreements below that are known (0 to 1).
    pub score: f64,
    /// Calls of each statement, as shares of all. What is left out counts against it.
    pub calls: Agreement,
    /// Calls of a transaction, all statements together.
    pub calls_per_transaction: Agreement,
    /// Rows of a call, over statements, by their calls.
    pub rows: Agreement,
    /// WAL of a transaction (bytes).
    pub wal_bytes: Agreement,
    /// Share of blocks that were found in shared buffers.
    pub hit_ratio: Option<Agreement>,
    /// Share of updates that were HOT.
    pub hot_share: Option<Agreement>,
    /// Active sessions by what they waited for, as shares of all; none where the original was not
    /// watched.
    pub waits: Option<Agreement>,
    /// Those shares, of the original and of the replay, by class.
    pub wait_classes: BTreeMap<String, (f64, f64)>,
    /// Statements.
    pub statements: Vec<StatementFidelity>,
    /// Versions of the original's server and of the replay's.
    pub versions: (String, String),
    /// Transactions of the original (1/s).
    pub original_per_s: f64,
    /// Transactions of the replay (1/s).
    pub replay_per_s: f64,
}

impl Document for Fidelity {
    const SCHEMA: &'static str = "pgdyno.fidelity/1";
}

/// Compares sizes.
fn sizes(original: f64, replay: f64) -> Agreement {
    let most = original.max(replay);
    let agreement = if most > 0.0 { original.min(replay) / most } else { 1.0 };
    Agreement { original: Some(original), replay: Some(replay), agreement }
}

/// Compares shares of one kind.
fn share(original: f64, replay: f64) -> Agreement {
    let agreement = 1.0 - (original - replay).abs();
    Agreement { original: Some(original), replay: Some(replay), agreement }
}

/// Compares distributions.
fn distributions(pairs: impl Iterator<Item = (f64, f64)>) -> Agreement {
    let agreement = pairs.map(|(a, b)| a.min(b)).sum();
    Agreement { original: None, replay: None, agreement }
}

fn hit_ratio(counts: &StatementCounts) -> Option<f64> {
    let all = counts.blocks_hit + counts.blocks_read;
    (all > 0).then(|| counts.blocks_hit as f64 / all as f64)
}

/// Returns the shares of the classes of waits: `Lock`, `IO`, `running`.
fn classes(sessions: &Sessions) -> BTreeMap<String, f64> {
    let total: f64 = sessions.waits.values().sum();
    let mut classes = BTreeMap::new();
    for (wait, count) in &sessions.waits {
        let class = wait.split(':').next().unwrap_or(wait);
        *classes.entry(class.to_owned()).or_default() += count / total.max(f64::MIN_POSITIVE);
    }
    classes
}

/// Compares `replay`, on a server of `version`, with what was captured.
pub(crate) fn fidelity(captured: &Captured, replay: &Activity, version: &str) -> Fidelity {
    let mut replayed: BTreeMap<usize, StatementCounts> = BTreeMap::new();
    for statement in &replay.statements {
        if let Some(number) = statement.text.as_deref().and_then(tagged) {
            let counts = replayed.entry(number).or_default();
            *counts = counts.plus(statement.counts);
        }
    }
    let per = |count: f64, all: u64| count / (all as f64).max(1.0);
    let all = replayed.values().fold(StatementCounts::default(), |all, one| all.plus(*one));
    let (commits, replayed_commits) = (captured.database.commits, replay.database.commits);
    let of_rows = captured.statements.iter().map(|statement| statement.counts);
    let captured_all = of_rows.fold(StatementCounts::default(), StatementCounts::plus);
    let statements = captured.statements.iter().map(|statement| {
        let (a, b) =
            (statement.counts, replayed.get(&statement.number).copied().unwrap_or_default());
        StatementFidelity {
            number: statement.number,
            text: statement.text.clone(),
            calls: sizes(per(a.calls as f64, commits), per(b.calls as f64, replayed_commits)),
            rows: sizes(a.rows_per_call(), b.rows_per_call()),
            wal_bytes: sizes(per(a.wal_bytes as f64, a.calls), per(b.wal_bytes as f64, b.calls)),
            time_ms: sizes(per(a.time_ms, a.calls), per(b.time_ms, b.calls)),
        }
    });
    let statements: Vec<StatementFidelity> = statements.collect();
    let left_out: u64 = captured.statements_left_out.iter().map(|s| s.counts.calls).sum();
    let original_calls = captured_all.calls + left_out;
    let calls = distributions(captured.statements.iter().map(|statement| {
        let replayed = replayed.get(&statement.number).map_or(0, |counts| counts.calls);
        let original = per(statement.counts.calls as f64, original_calls);
        (original, per(replayed as f64, all.calls))
    }));
    let agreed: f64 = statements
        .iter()
        .zip(&captured.statements)
        .map(|(fidelity, statement)| fidelity.rows.agreement * statement.counts.calls as f64)
        .sum();
    let agreement = per(agreed, captured_all.calls);
    let rows = Agreement { original: None, replay: None, agreement };
    let (original, total) = (captured.total, replay.total());
    let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| share(a, b));
    let is_watched = captured.sessions.looks > 0 && !captured.sessions.waits.is_empty();
    let (waits, replayed_waits) = (classes(&captured.sessions), classes(&replay.sessions));
    let names: std::collections::BTreeSet<&String> =
        waits.keys().chain(replayed_waits.keys()).collect();
    let of = |waits: &BTreeMap<String, f64>, name: &String| waits.get(name).copied().unwrap_or(0.0);
    let wait_classes: BTreeMap<String, (f64, f64)> = names
        .into_iter()
        .map(|name| (name.clone(), (of(&waits, name), of(&replayed_waits, name))))
        .collect();
    let mut fidelity = Fidelity {
        score: 0.0,
        calls,
        calls_per_transaction: sizes(
            per(original_calls as f64, commits),
            per(all.calls as f64, replayed_commits),
        ),
        rows,
        wal_bytes: sizes(
            per(original.wal_bytes as f64, commits),
            per(total.wal_bytes as f64, replayed_commits),
        ),
        hit_ratio: both(hit_ratio(&captured_all), hit_ratio(&all)),
        hot_share: both(captured.database.hot_share(), replay.database.hot_share()),
        waits: is_watched.then(|| distributions(wait_classes.values().copied())),
        wait_classes,
        statements,
        versions: (captured.server_version.clone(), version.to_owned()),
        original_per_s: captured.commits_per_s(),
        replay_per_s: replayed_commits as f64 / replay.seconds.max(0.001),
    };
    fidelity.score = fidelity.mean();
    fidelity
}

impl Fidelity {
    fn mean(&self) -> f64 {
        let always = [self.calls, self.calls_per_transaction, self.rows, self.wal_bytes];
        let known = [self.hit_ratio, self.hot_share, self.waits];
        let all: Vec<f64> = always
            .into_iter()
            .chain(known.into_iter().flatten())
            .map(|agreement| agreement.agreement)
            .collect();
        all.iter().sum::<f64>() / all.len() as f64
    }
}
