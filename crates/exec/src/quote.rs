//! Words as a shell would take them.

/// Returns a path as [`quote`] does a word.
pub(crate) fn quote_path(path: &std::path::Path) -> String {
    quote(path.as_os_str())
}

/// Returns a word as a shell would take it whole; only for display, nothing is run by a shell.
pub fn quote(word: &std::ffi::OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=,:@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
