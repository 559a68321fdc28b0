//! Errors and notices of the server as values, rendered as libpq does.

use std::fmt::{self, Write as _};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::backend::Fields;

/// An error or a notice that the server reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE`, …; never translated.
    pub severity: String,
    /// The severity in the server's language (`lc_messages`).
    pub localized_severity: String,
    /// The SQLSTATE.
    pub code: String,
    /// Primary message.
    pub message: String,
    /// Detail.
    pub detail: Option<String>,
    /// Hint.
    pub hint: Option<String>,
    /// Position in the query (characters from 1).
    pub position: Option<u32>,
    /// Position in `internal_query` (characters from 1).
    pub internal_position: Option<u32>,
    /// Query that the server generated, such as one of a function.
    pub internal_query: Option<String>,
    /// Context, such as the function that was executed and its parameters.
    pub context: Option<String>,
}

impl ServerError {
    /// Copies the fields of an `ErrorResponse` or `NoticeResponse`.
    pub fn from_fields(fields: Fields<'_>) -> Self {
        let text = |kind| fields.get(kind).map(|value| String::from_utf8_lossy(value).into_owned());
        let number = |kind| text(kind).and_then(|text| text.parse().ok());
        // Servers before 9.6 send only the severity that they may translate.
        let severity = text(b'V').or_else(|| text(b'S')).unwrap_or_default();
        Self {
            localized_severity: text(b'S').unwrap_or_else(|| severity.clone()),
            severity,
            code: text(b'C').unwrap_or_default(),
            message: text(b'M').unwrap_or_default(),
            detail: text(b'D'),
            hint: text(b'H'),
            position: number(b'P'),
            internal_position: number(b'p'),
            internal_query: text(b'q'),
            context: text(b'W'),
        }
    }

    /// Renders the error as libpq does, lines joined by newlines.
    ///
    /// `query` is the text that [`ServerError::position`] counts in, if it is known.
    ///
    /// ```
    /// # use pgdyno_wire::ServerError;
    /// let error = ServerError {
    ///     localized_severity: "ERROR".into(),
    ///     message: "relation \"t\" does not exist".into(),
    ///     position: Some(15),
    ///     ..ServerError::default()
    /// };
    /// let words = error.libpq_text(Some("SELECT 1 FROM t"));
    /// let excerpt = "LINE 1: SELECT 1 FROM t\n                      ^";
    /// assert_eq!(words, format!("ERROR:  relation \"t\" does not exist\n{excerpt}"));
    /// ```
    pub fn libpq_text(&self, query: Option<&str>) -> String {
        let mut text = format!("{}:  {}", self.localized_severity, self.message);
        let place = match (self.position, self.internal_position) {
            (Some(position), _) => Some((position, query)),
            (None, Some(position)) => Some((position, self.internal_query.as_deref())),
            (None, None) => None,
        };
        match place
            .map(|(position, query)| (position, query.and_then(|query| excerpt(query, position))))
        {
            Some((_, Some(excerpt))) => text.push_str(&excerpt),
            // Writing to a String cannot fail.
            Some((position, None)) => drop(write!(text, " at character {position}")),
            None => {}
        }
        // libpq shows no context of notices by default.
        let context = self.context.as_ref().filter(|_| self.is_error());
        for (label, more) in [
            ("DETAIL", self.detail.as_ref()),
            ("HINT", self.hint.as_ref()),
            ("QUERY", self.internal_query.as_ref()),
            ("CONTEXT", context),
        ] {
            if let Some(more) = more {
                let _ = write!(text, "\n{label}:  {more}");
            }
        }
        text
    }

    /// Returns whether the error ended a statement or the session; a notice does not.
    pub fn is_error(&self) -> bool {
        matches!(self.severity.as_str(), "ERROR" | "FATAL" | "PANIC")
    }
}

/// Renders one line: severity, SQLSTATE and message, then detail, hint and context in parentheses.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.code, self.message)?;
        for (label, more) in
            [("", &self.detail), ("hint: ", &self.hint), ("context: ", &self.context)]
        {
            if let Some(more) = more {
                write!(f, " ({label}{})", more.replace('\n', "; "))?;
            }
        }
        Ok(())
    }
}

/// Width of an excerpt at most (columns).
const WIDEST: usize = 60;
/// Columns that are shown from the position on, where a line is longer.
const AFTER: usize = 10;

/// Returns the line of `query` that holds character `position` (from 1), with a caret under it.
///
/// None if there is no such character.
fn excerpt(query: &str, position: u32) -> Option<String> {
    let index = usize::try_from(position).ok()?.checked_sub(1)?;
    let at = query.char_indices().map(|(at, _)| at).chain([query.len()]).nth(index)?;
    let number = query[..at].matches('\n').count() + 1;
    let begin = query[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = query[at..].find(['\n', '\r']).map_or(query.len(), |length| at + length);
    let line: Vec<char> =
        query[begin..end].chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let caret = query[begin..at].chars().count();

    let width =
        |characters: &[char]| characters.iter().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    // A long line is cut at its end; if that would hide the position, at its beginning, too.
    let (mut first, mut last) = (0, line.len());
    if width(&line) > WIDEST {
        if width(&line[..caret]) + AFTER <= WIDEST {
            while width(&line[..last]) > WIDEST {
                last -= 1;
            }
        } else {
            while last > caret && width(&line[caret..last]) > AFTER {
                last -= 1;
            }
            while width(&line[first..last]) > WIDEST {
                first += 1;
            }
        }
    }
    let cut = |is_cut| if is_cut { "..." } else { "" };
    let label = format!("LINE {number}: {}", cut(first > 0));
    let shown: String = line[first..last].iter().collect();
    let indent = label.width() + width(&line[first..caret]);
    Some(format!("\n{label}{shown}{}\n{:indent$}^", cut(last < line.len()), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of the excerpt of `query` around `nope`.
    fn shown(query: &str) -> Vec<String> {
        let at = query.find("nope").map_or(0, |at| query[..at].chars().count()) + 1;
        let excerpt = excerpt(query, u32::try_from(at).unwrap()).unwrap();
        excerpt.trim_start_matches('\n').lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_cut_where_libpq_cuts_them() {
        let (before, after) = (|n| format!("SELECT {}", "1,".repeat(n)), |n: usize| ",2".repeat(n));
        let line = |n, m| shown(&format!("{}nope{}", before(n), after(m)));
        assert_eq!(
            line(1, 30),
            [
                "LINE 1: SELECT 1,nope,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,...",
                "                 ^"
            ]
        );
        // Fifty columns before the caret are the most that leave the beginning in place.
        assert_eq!(
            line(22, 3),
            [
                "LINE 1: ...ELECT 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,nope,2,2,2",
                &format!("{:61}^", "")
            ]
        );
        assert_eq!(
            line(24, 9),
            [
                "LINE 1: ...T 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,nope,2,2,2...",
                &format!("{:61}^", "")
            ]
        );
        assert_eq!(shown("SELECT 1,\n\tnope\nFROM x"), ["LINE 2:  nope", "         ^"]);
        assert_eq!(
            shown("SELECT '日本', nope"),
            ["LINE 1: SELECT '日本', nope", "                       ^"]
        );
        assert_eq!(excerpt("SELECT", 9), None);
        assert_eq!(excerpt("SELECT", 7).unwrap(), "\nLINE 1: SELECT\n              ^");
    }

    #[test]
    fn whatever_the_server_says_is_shown() {
        let mut error = ServerError {
            severity: "ERROR".into(),
            localized_severity: "FEHLER".into(),
            message: "no".into(),
            detail: Some("d".into()),
            hint: Some("h".into()),
            position: Some(3),
            internal_query: Some("q".into()),
            context: Some("c".into()),
            ..ServerError::default()
        };
        let words = "FEHLER:  no at character 3\nDETAIL:  d\nHINT:  h\nQUERY:  q\nCONTEXT:  c";
        assert_eq!(error.libpq_text(None), words);
        error.code = "XX000".into();
        error.context = Some("one\ntwo".into());
        assert_eq!(error.to_string(), "ERROR XX000: no (d) (hint: h) (context: one; two)");
        error.severity = "WARNING".into();
        assert!(!error.libpq_text(None).contains("CONTEXT"), "a notice has none");
    }
}
