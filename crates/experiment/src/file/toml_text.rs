//! Experiment files written as text again.

/// `table` as text. Factors are written in one line, since tables would move behind lists, and the
/// last factor varies fastest.
pub(crate) fn render(table: &toml::Table) -> Result<String, toml::ser::Error> {
    let mut rest = table.clone();
    let factors =
        rest.remove("factors").map(|factors| format!("factors = {factors}\n")).unwrap_or_default();
    Ok(factors + &toml::to_string(&rest)?)
}
