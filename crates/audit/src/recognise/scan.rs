//! The document while recognisers go over it.

use crate::document::Line;
use crate::figure::Decimals;
use crate::finding::{NotUnderstood, WhyNot};

/// A document while recognisers go over it.
pub(super) struct Scan<'a> {
    pub(super) lines: &'a [Line],
    /// Which lines a recogniser has read.
    pub(super) read: Vec<bool>,
    /// Decimal sign that numbers of several groups of thousands prove for the whole document.
    pub(super) decimals: Option<Decimals>,
    pub(super) not_understood: Vec<NotUnderstood>,
}

impl Scan<'_> {
    pub(super) fn not_understood(&mut self, line: usize, why: WhyNot) {
        self.not_understood.push(NotUnderstood { line, quoted: String::new(), why });
    }
}
