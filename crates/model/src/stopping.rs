//! When a run may end before all its trials are run.

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// A run that goes on, block by block, with the treatments whose comparison is still open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stopping {
    /// Blocks that are run in any case.
    pub floor: u32,
    /// Blocks after which it ends, whatever is open: the plan has that many.
    pub ceiling: u32,
    /// Half the width of a ratio's interval (a share) at which it is known well enough; none: only
    /// a verdict closes a comparison.
    pub precision: Option<f64>,
    /// Time that trials may take, with what comes around them.
    pub budget: Option<Span>,
}
