//! A run that may end by itself.

use serde::Serialize;

/// A run that may end before its most repeats.
#[derive(Clone, Debug, Serialize)]
pub struct StoppingView {
    /// Blocks that are run in any case.
    pub floor: u32,
    /// The most blocks.
    pub ceiling: u32,
    /// After how many blocks it is looked at.
    pub looks: Vec<u32>,
    /// Blocks of the treatment that was measured most (count).
    pub blocks: u32,
    /// Comparisons that are decided (count).
    pub decided: usize,
    /// Those that are not, each in a line.
    pub open: Vec<String>,
    /// Why it ended; none while it has not.
    pub ended: Option<Ended>,
    /// All of it in a sentence.
    pub words: String,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Every comparison is decided.
    Decided,
    /// The most repeats are run.
    Ceiling,
    /// Its time is spent.
    Budget,
}
