//! A file as lines that know where they stand: text and Markdown as they are, HTML as a reader sees
//! it.

mod html;
mod line;

pub(crate) use line::{Cell, Line};

/// A file's text, line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) lines: Vec<Line>,
    /// Whether bytes were no UTF-8 and are shown as U+FFFD.
    pub(crate) garbled: bool,
}

impl Document {
    /// The text of a file; none where it is no text. `name` decides what a file is that its text
    /// does not tell.
    pub(crate) fn read(name: &str, bytes: &[u8]) -> Option<Self> {
        let (text, garbled) = decode(bytes)?;
        // Lines are those that editors and grep count.
        let text = text.replace("\r\n", "\n").replace('\r', " ");
        let lines = if is_html(name, &text) { html::lines(&text) } else { plain(&text) };
        Some(Self { lines, garbled })
    }

    /// Returns the text at a line of the file: where HTML breaks no line there, the line that it
    /// belongs to.
    pub(crate) fn quote(&self, line: usize) -> &str {
        let at = self.lines.iter().find(|l| l.number == line && !l.text.is_empty());
        let before = || self.lines.iter().rev().find(|l| l.number <= line && !l.text.is_empty());
        at.or_else(before).map_or("", |l| l.text.trim())
    }
}

/// The bytes as text, and whether some were none.
fn decode(bytes: &[u8]) -> Option<(String, bool)> {
    let utf16 = |units: Vec<u16>| {
        let text = String::from_utf16_lossy(&units);
        let garbled = text.contains('\u{fffd}');
        Some((text, garbled))
    };
    let pairs = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        rest.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect::<Vec<_>>()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(pairs(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => utf16(pairs(rest, u16::from_be_bytes)),
        bytes if bytes.contains(&0) => None,
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => {
            let text = String::from_utf8_lossy(rest);
            let garbled = matches!(text, std::borrow::Cow::Owned(_));
            Some((text.into_owned(), garbled))
        }
    }
}

fn is_html(name: &str, text: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if [".html", ".htm", ".xhtml"].iter().any(|end| name.ends_with(end)) {
        return true;
    }
    let start: String = text.chars().take(1024).collect::<String>().to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<?xml")
}

fn plain(text: &str) -> Vec<Line> {
    (1..)
        .zip(text.lines())
        .map(|(number, text)| {
            let quoted = text.starts_with('>');
            let text = if quoted { text.trim_start_matches(['>', ' ']) } else { text };
            let text = without_break(text.trim_end());
            Line { number, text: text.to_owned(), cells: cells(number, text), quoted }
        })
        .collect()
}

/// The line without HTML's line break at its end, as Markdown bears it.
fn without_break(text: &str) -> &str {
    ["<br>", "<br/>", "<br />"]
        .iter()
        .find_map(|mark| text.strip_suffix(mark))
        .unwrap_or(text)
        .trim_end()
}

/// The cells of a row of a Markdown table, of psql's, or of one with tabs; none of another line.
fn cells(line: usize, text: &str) -> Vec<Cell> {
    let bars = |c: char| matches!(c, '|' | '│' | '┃');
    let trimmed = text.trim();
    let parts: Vec<&str> = if trimmed.contains(bars) {
        trimmed.trim_start_matches(bars).trim_end_matches(bars).split(bars).collect()
    } else if trimmed.contains('\t') {
        trimmed.split('\t').collect()
    } else {
        return Vec::new();
    };
    if parts.len() < 2 {
        return Vec::new();
    }
    let bare = |part: &str| part.trim().trim_matches(['*', '`', '_']).trim().to_owned();
    parts.iter().map(|part| Cell { text: bare(part), line }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_whatever_ends_them() {
        let document = Document::read("a.txt", b"one\r\ntwo\n\nfour").unwrap();
        let lines: Vec<_> = document.lines.iter().map(|l| (l.number, l.text.as_str())).collect();
        assert_eq!(lines, [(1, "one"), (2, "two"), (3, ""), (4, "four")]);
        assert_eq!(document.quote(3), "two");
    }

    #[test]
    fn rows_of_markdown_and_of_psql_have_cells() {
        let texts = |line: &str| cells(1, line).into_iter().map(|c| c.text).collect::<Vec<_>>();
        assert_eq!(texts("| ext4 | **545** | |"), ["ext4", "545", ""]);
        assert_eq!(texts(" public | user_info | 3006 MB "), ["public", "user_info", "3006 MB"]);
        assert_eq!(texts("ext4\t545"), ["ext4", "545"]);
        assert_eq!(texts("no table here"), Vec::<String>::new());
    }

    #[test]
    fn other_encodings_are_read_and_binary_files_are_not() {
        let utf16: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("tps".bytes().flat_map(|b| [b, 0])).collect();
        assert_eq!(Document::read("a", &utf16).unwrap().lines[0].text, "tps");
        let latin = Document::read("a", b"pr\xf9m\xecr 5").unwrap();
        assert!(latin.garbled && latin.lines[0].text.ends_with(" 5"));
        assert!(Document::read("a", b"\x7fELF\0\0").is_none());
    }
}
