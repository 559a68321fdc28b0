//! Which generators an experiment asks for.

use crate::units::Span;

/// `[generators]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorChoice {
    /// Generators of treatments that name none: `local:NUM` or `ssh:HOST,HOST*WEIGHT`; none means
    /// this process alone.
    pub launch: Option<String>,
    /// How far apart they may begin.
    pub max_start_skew: Span,
    /// Whether a trial counts in which a generator had no time left.
    pub allow_saturated: bool,
    /// How often a trial is tried again in which a generator failed.
    pub retry: u32,
}

impl GeneratorChoice {
    /// Stands for this process alone, in a file and as a level.
    pub const NONE: &str = "none";
}
