//! Programs that a filesystem needs, and the packages that have them.

/// A program that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// Debian's package that has it.
    pub debian: &'static str,
    /// Fedora's package, where there is one.
    pub fedora: Option<&'static str>,
    /// What it does, for a sentence: `makes it`.
    pub purpose: &'static str,
}
