//! Comparisons: two runs, or a run beside an imported report, with all that is said of them.

mod side_by_side;
mod text;

use pgdyno_analysis::comparison::runs::{self, CompareError, CompareOptions, CompareView};
use pgdyno_store::Store;

use crate::prose;

pub use side_by_side::side_by_side;
pub(crate) use side_by_side::{HEADER as SIDES_HEADER, cells as side_cells};
pub(crate) use text::{LEGEND, escaped, row, titles};
pub use text::{compare, compare_markdown};

/// A comparison with its words, which all its reports share.
#[derive(Clone, Debug)]
pub struct CompareReport {
    /// Figures and kinds.
    pub view: CompareView,
    /// Summary in a sentence or two.
    pub answer: Vec<String>,
    /// Notes that a reader needs to trust or doubt the figures.
    pub notes: Vec<String>,
    /// Result of each gate for each pair as a sentence, in the view's order.
    pub gates: Vec<String>,
}

impl CompareReport {
    /// Finds the words for `view`.
    pub fn new(view: CompareView) -> Self {
        let gate = |gate| prose::gate(gate, &view.pairs[gate.pair].label);
        Self {
            answer: prose::pairs(&view.pairs, view.measure),
            notes: view.notes.iter().map(prose::compare_note).collect(),
            gates: view.gates.iter().map(gate).collect(),
            view,
        }
    }

    /// Compares side `b` with side `a`, and finds the words for it.
    ///
    /// # Errors
    /// As [`runs::compare`].
    pub fn read(
        store: &Store,
        a: &str,
        b: &str,
        options: &CompareOptions,
    ) -> Result<Self, CompareError> {
        runs::compare(store, a, b, options).map(Self::new)
    }
}
