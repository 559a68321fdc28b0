//! How much of a report is printed.

/// How much of a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The first few notes, and how many more there are.
    Brief,
    /// Everything.
    Full,
}

impl Detail {
    /// Cuts `notes` to the printed ones, with a line for the rest.
    pub(super) fn notes(self, notes: Vec<String>) -> Vec<String> {
        const SHOWN: usize = 5;
        if self == Self::Full || notes.len() <= SHOWN {
            return notes;
        }
        let more = format!("{} more with `--verbose`.", notes.len() - SHOWN);
        notes[..SHOWN].iter().cloned().chain([more]).collect()
    }
}
