//! Programs that a filesystem needs, and the packages that have them.

/// A program that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Name of the program.
    pub program: &'static str,
    /// Debian's package that has it.
    pub debian: &'static str,
    /// Fedora's package, where there is one.
    pub fedora: Option<&'static str>,
    /// Purpose of the program, for a sentence: `makes it`.
    pub purpose: &'static str,
}

impl Tool {
    pub(crate) const fn new(
        program: &'static str,
        debian: &'static str,
        fedora: Option<&'static str>,
        purpose: &'static str,
    ) -> Self {
        Self { program, debian, fedora, purpose }
    }
}
