//! Words that a text must have.

/// Asserts that every one of `words` is in `text`.
#[track_caller]
pub fn assert_contains(text: impl AsRef<str>, words: &[impl AsRef<str>]) {
    let text = text.as_ref();
    for word in words {
        let word = word.as_ref();
        assert!(text.contains(word), "no `{word}` in {text}");
    }
}
