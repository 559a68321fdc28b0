//! Connection strings: URIs and lists of `keyword=value`, as libpq reads them.

use std::collections::BTreeMap;

use super::error::ConninfoError;
use super::keywords::{self, Keyword};

/// Options by keyword.
pub type Options = BTreeMap<&'static str, String>;

/// Whether `text` is a connection string. Otherwise it is the name of a database.
pub fn is_connection_string(text: &str) -> bool {
    uri_rest(text).is_some() || text.contains('=')
}

/// Parses a URI or a list of `keyword=value`. No error quotes any part of `text`.
///
/// # Errors
/// [`ConninfoError::Unreadable`], [`ConninfoError::Keyword`].
pub fn parse(text: &str) -> Result<Options, ConninfoError> {
    match uri_rest(text) {
        Some(rest) => uri(rest),
        None => keyword_list(text),
    }
}

fn uri_rest(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

fn put(options: &mut Options, keyword: &str, value: String) -> Result<(), ConninfoError> {
    match keywords::find(keyword) {
        Some(Keyword { name, .. }) => {
            options.insert(name, value);
            Ok(())
        }
        None => Err(ConninfoError::Keyword { nearest: keywords::nearest(keyword) }),
    }
}

fn keyword_list(text: &str) -> Result<Options, ConninfoError> {
    const BAD: ConninfoError =
        ConninfoError::Unreadable("a keyword is not followed by `=` and its value");
    let mut options = Options::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (keyword, after) = rest.split_once('=').ok_or(BAD)?;
        let keyword = keyword.trim_end();
        if keyword.is_empty() || keyword.contains(char::is_whitespace) {
            return Err(BAD);
        }
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('\'') {
            Some(quoted) => split_value(quoted, |c| c == '\'')
                .and_then(|(value, left)| Some((value, left.strip_prefix('\'')?)))
                .ok_or(ConninfoError::Unreadable("a quoted value has no end"))?,
            None => split_value(after, char::is_whitespace)
                .ok_or(ConninfoError::Unreadable("it ends with a backslash"))?,
        };
        put(&mut options, keyword, value)?;
        rest = left.trim_start();
    }
    Ok(options)
}

/// Splits `text` where `ends` holds, and returns the value and the rest. `\` escapes the next
/// character.
fn split_value(text: &str, ends: impl Fn(char) -> bool) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.push(characters.next()?.1),
            c if ends(c) => return Some((value, &text[at..])),
            c => value.push(c),
        }
    }
    Some((value, ""))
}

fn uri(rest: &str) -> Result<Options, ConninfoError> {
    let mut options = Options::new();
    let mut rest = rest;
    // User and password stand before an `@`, unless a `/` comes first.
    if let Some(at) = rest.find(['@', '/']).filter(|at| rest[*at..].starts_with('@')) {
        let (user, password) = match rest[..at].split_once(':') {
            Some((user, password)) => (user, password),
            None => (&rest[..at], ""),
        };
        for (keyword, value) in [("user", user), ("password", password)] {
            if !value.is_empty() {
                put(&mut options, keyword, decode(value)?)?;
            }
        }
        rest = &rest[at + 1..];
    }
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
    uri_hosts(hosts, &mut options)?;
    if !database.is_empty() {
        put(&mut options, "dbname", decode(database)?)?;
    }
    for pair in query.into_iter().flat_map(|q| q.split('&')).filter(|pair| !pair.is_empty()) {
        let (keyword, value) =
            pair.split_once('=').ok_or(ConninfoError::Unreadable("a parameter has no `=`"))?;
        let (keyword, value) = (decode(keyword)?, decode(value)?);
        match (keyword.as_str(), value.as_str()) {
            // JDBC's spelling.
            ("ssl", "true") => put(&mut options, "sslmode", "require".into())?,
            _ => put(&mut options, &keyword, value)?,
        }
    }
    Ok(options)
}

fn uri_hosts(list: &str, options: &mut Options) -> Result<(), ConninfoError> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for entry in list.split(',') {
        let (host, port) = match entry.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed
                    .split_once(']')
                    .filter(|(host, _)| !host.is_empty())
                    .ok_or(ConninfoError::Unreadable("an IPv6 address is not closed by `]`"))?;
                if !after.is_empty() && !after.starts_with(':') {
                    return Err(ConninfoError::Unreadable("`]` is not followed by `:` or `/`"));
                }
                (host, after.strip_prefix(':').unwrap_or(""))
            }
            None => entry.split_once(':').unwrap_or((entry, "")),
        };
        let host = decode(host)?;
        // Such a host is the end of a password with an unescaped `@`.
        if !host.starts_with(['/', '@']) && host.contains(['@', ' ', '?', '=', '/']) {
            return Err(ConninfoError::Unreadable(
                "a host's name holds characters that no name has",
            ));
        }
        hosts.push(host);
        ports.push(decode(port)?);
    }
    if hosts.iter().any(|host| !host.is_empty()) {
        put(options, "host", hosts.join(","))?;
    }
    if ports.iter().any(|port| !port.is_empty()) {
        put(options, "port", ports.join(","))?;
    }
    Ok(())
}

/// Decodes the `%xx` of `text`.
fn decode(text: &str) -> Result<String, ConninfoError> {
    const BAD: ConninfoError =
        ConninfoError::Unreadable("a `%` is not followed by two hexadecimal digits of UTF-8 text");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit().ok_or(BAD)?, digit().ok_or(BAD)?);
        match u8::try_from(high << 4 | low) {
            Ok(0) | Err(_) => return Err(BAD),
            Ok(byte) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| BAD)
}

/// Formats `options` as a list of `keyword='value'` that [`parse`] reads back.
pub fn format_options<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let word = |(keyword, value): (&str, &str)| {
        format!("{keyword}='{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
    };
    options.map(word).collect::<Vec<_>>().join(" ")
}
