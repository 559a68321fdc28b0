//! Keeps a DSN's password out of whatever is stored or shown.

use pgdyno_model::target::Secret;

/// `text` (a DSN, an override, an experiment file) with the password of `dsn` taken out.
pub(crate) fn dsn(text: &str, dsn: Option<&Secret>) -> String {
    let Some(dsn) = dsn.map(Secret::reveal) else { return text.to_owned() };
    // What cannot be read names no server, so nothing of it is worth keeping.
    let shown = pgdyno_host::postgres::given::without_password(dsn).unwrap_or_default();
    if text.contains(dsn) {
        return text.replace(dsn, &shown);
    }
    // A file may spell it with TOML's escapes.
    let Ok(mut table) = text.parse::<toml::Table>() else { return text.to_owned() };
    match table.get_mut("postgres").and_then(|postgres| postgres.get_mut("dsn")) {
        Some(spelled) => *spelled = toml::Value::String(shown),
        None => return text.to_owned(),
    }
    toml::to_string(&table).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_the_password_survives() {
        let secret = Secret::new("host=x user=a password=hunter2".into());
        let plain = "[postgres]\ndsn = \"host=x user=a password=hunter2\"\n";
        let escaped = plain.replace("hunter2", "h\\u0075nter2");
        for text in [plain, &escaped, "postgres.dsn=host=x user=a password=hunter2"] {
            let stored = dsn(text, Some(&secret));
            assert!(!stored.contains("nter2") && stored.contains("host='x'"), "{stored}");
        }
        assert_eq!(dsn("[load]\n", Some(&secret)), "[load]\n");
    }
}
