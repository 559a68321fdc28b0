//! Word lists in the languages of the reports that were read.

/// Words or phrases parted by `|`. They are compared as they are: callers fold case.
#[derive(Clone, Copy)]
pub(crate) struct Words(pub(crate) &'static str);

impl Words {
    /// Iterates over the words in the order of the list.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split('|')
    }

    /// Whether `word` is one of the list.
    pub(crate) fn has(self, word: &str) -> bool {
        self.iter().any(|known| known == word)
    }

    /// The first of the list that stands anywhere in `text`, and be it inside a word.
    pub(crate) fn first_in(self, text: &str) -> Option<&'static str> {
        self.iter().find(|known| text.contains(known))
    }

    /// Whether one of the list stands anywhere in `text`.
    pub(crate) fn any_in(self, text: &str) -> bool {
        self.first_in(text).is_some()
    }

    /// Whether `text` starts with one of the list.
    pub(crate) fn any_starts(self, text: &str) -> bool {
        self.iter().any(|known| text.starts_with(known))
    }
}

/// Parts `text` into its words: letters and digits.
pub(crate) fn split(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Returns a heading without its marks.
pub(crate) fn heading(text: &str) -> &str {
    text.trim()
        .trim_start_matches(['#', '*', '=', '-', '•'])
        .trim()
        .trim_end_matches([':', '：', '*', '='])
        .trim()
}
