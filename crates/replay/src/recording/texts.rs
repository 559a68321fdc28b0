//! Texts, each kept once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Texts by number, each kept once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: String,
    /// Ends of the texts in `bytes`.
    ends: Vec<usize>,
    /// Numbers by the hash of the text, or by the next free one if texts share it.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
}

impl Texts {
    /// Returns the text of `number`.
    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[begin..self.ends[number]]
    }

    /// Returns the number of `text`, and whether it is new.
    pub(super) fn intern(&mut self, text: &str) -> (u32, bool) {
        let mut hash = self.hasher.hash_one(text);
        while let Some(&number) = self.numbers.get(&hash) {
            if self.get(number) == text {
                return (number, false);
            }
            hash = hash.wrapping_add(1);
        }
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.numbers.insert(hash, number);
        (number, true)
    }

    /// Releases what only [`Texts::intern`] needs.
    pub(super) fn freeze(&mut self) {
        self.numbers = HashMap::new();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
