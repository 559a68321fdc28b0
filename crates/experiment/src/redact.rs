//! Keeps the passwords of DSNs out of whatever is stored or shown.

use toml::{Table, Value};

/// Stands for a DSN that cannot be read: a password could be in any part of it.
const UNREADABLE: &str = "(not shown)";

/// Returns the experiment file `text` without the passwords of its DSNs. Its wording is kept as
/// far as that can be.
pub fn document(text: &str) -> String {
    // One that cannot be parsed is never run.
    let Ok(mut table) = text.parse::<Table>() else { return String::new() };
    let mut replaced = Vec::new();
    hide(&mut table, &mut replaced);
    if replaced.is_empty() {
        return text.to_owned();
    }
    let reworded =
        replaced.iter().fold(text.to_owned(), |text, (dsn, shown)| text.replace(dsn, shown));
    // A file may spell a DSN with TOML's escapes, and what is shown may not fit between its quotes.
    if reworded.parse::<Table>().is_ok_and(|reworded| reworded == table) {
        return reworded;
    }
    crate::file::toml_text::render(&table).unwrap_or_default()
}

/// Takes the passwords out of every DSN in `table`, whatever it stands in: `[postgres]`,
/// `[factors]`, sizes. Returns whether there were any.
pub(crate) fn table(table: &mut Table) -> bool {
    let mut replaced = Vec::new();
    hide(table, &mut replaced);
    !replaced.is_empty()
}

fn hide(table: &mut Table, replaced: &mut Vec<(String, String)>) {
    hide_below(table, "", replaced);
}

fn hide_below(table: &mut Table, path: &str, replaced: &mut Vec<(String, String)>) {
    for (key, value) in table.iter_mut() {
        let path = format!("{path}.{key}");
        let is_dsn = path.ends_with(".postgres.dsn");
        match value {
            Value::Table(inner) => hide_below(inner, &path, replaced),
            Value::Array(list) if is_dsn => list.iter_mut().for_each(|dsn| hide_one(dsn, replaced)),
            value if is_dsn => hide_one(value, replaced),
            _ => {}
        }
    }
}

fn hide_one(value: &mut Value, replaced: &mut Vec<(String, String)>) {
    let Value::String(dsn) = value else { return };
    let shown =
        pgdyno_postgres::external::without_password(dsn).unwrap_or_else(|| UNREADABLE.to_owned());
    if shown != *dsn {
        replaced.push((std::mem::replace(dsn, shown.clone()), shown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Override;

    #[test]
    fn no_spelling_of_the_password_survives() {
        let plain = "# mine\n[postgres]\ndsn = \"host=x user=a password=hunter2\"\n";
        let quoted = plain.replace('"', "'");
        let escaped = plain.replace("hunter2", "h\\u0075nter2");
        let bundles = "[factors]\n\
                       server = { a = { \"postgres.dsn\" = \"postgresql://u:hunter2@x/d\" }, \
                       b = { postgres = { dsn = \"host=x user=b password=hunter2\" } } }\n";
        let plain_levels =
            "[factors]\n\"postgres.dsn\" = [\"host=x password=hunter2\", \"host=y\"]\n";
        let size = "[size.a]\nabout = \"b\"\n[size.a.set]\n\
                    \"postgres.dsn\" = \"host=x password=hunter2\"\n";
        for text in [plain, &quoted, &escaped, bundles, plain_levels, size] {
            let stored = document(text);
            assert!(!stored.contains("nter2") && stored.contains("host='x'"), "{stored}");
            assert!(stored.parse::<Table>().is_ok(), "{stored}");
        }
        assert!(document(plain).starts_with("# mine"), "comments are kept");
        assert_eq!(document("[load]\n"), "[load]\n");
        assert_eq!(document(plain_levels), document(&document(plain_levels)));
    }

    #[test]
    fn overrides_are_stored_and_shown_without_passwords_and_mean_the_same_again() {
        for given in [
            "postgres.dsn=host=x user=a password=hunter2",
            "postgres.dsn=postgresql://a:hunter2@x/d",
            "factors.postgres.dsn=[\"host=x password=hunter2\"]",
            "factors.server.\"a:5432/d\".postgres.dsn=host=x password=hunter2",
            "factors={ server = { a = { \"postgres.dsn\" = \"host=x password=hunter2\" } } }",
        ] {
            let shown = Override::parse(given).unwrap().given;
            assert!(!shown.contains("hunter2") && shown.contains("host='x'"), "{shown}");
            assert_eq!(Override::parse(&shown).unwrap().given, shown);
        }
        assert!(!Override::parse("postgres.dsn=hunter2").unwrap().given.contains("hunter2"));
        assert_eq!(Override::parse("load.clients=3").unwrap().given, "load.clients=3");
    }
}
