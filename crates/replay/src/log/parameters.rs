//! Parameters of a statement, as the detail of a record has them: `$1 = 'it''s', $2 = NULL`.

/// Parameters cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// A value ends in `...`, as one that `log_parameter_max_length` cut does.
    Cut,
    /// The text is no list of parameters.
    Unreadable,
}

/// Appends the parameters in `text` to `out`, and returns how many there are. Each is its length
/// (32 bits, big-endian; -1 for NULL) and its value, as in Bind.
///
/// With `may_be_cut`, a value that ends in `...` is an error.
///
/// # Errors
/// [`ParameterError`]; `out` is as it was.
///
/// ```
/// use pgdyno_replay::log::append_parameters;
///
/// let mut out = Vec::new();
/// assert_eq!(append_parameters("$1 = 'it''s', $2 = NULL", true, &mut out), Ok(2));
/// assert_eq!(out, b"\0\0\0\x04it's\xff\xff\xff\xff");
/// ```
pub fn append_parameters(
    text: &str,
    may_be_cut: bool,
    out: &mut Vec<u8>,
) -> Result<u16, ParameterError> {
    let begin = out.len();
    let read = append(text, may_be_cut, out);
    if read.is_err() {
        out.truncate(begin);
    }
    read
}

fn append(text: &str, may_be_cut: bool, out: &mut Vec<u8>) -> Result<u16, ParameterError> {
    let unreadable = ParameterError::Unreadable;
    let (mut rest, mut count) = (text, 0_u16);
    loop {
        count = count.checked_add(1).ok_or(unreadable)?;
        rest = rest.strip_prefix('$').ok_or(unreadable)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if rest[..digits].parse() != Ok(count) {
            return Err(unreadable);
        }
        rest = rest[digits..].strip_prefix(" = ").ok_or(unreadable)?;
        rest = match rest.strip_prefix('\'') {
            Some(quoted) => append_value(quoted, may_be_cut, out)?,
            None => {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                rest.strip_prefix("NULL").ok_or(unreadable)?
            }
        };
        if rest.is_empty() {
            return Ok(count);
        }
        rest = rest.strip_prefix(", ").ok_or(unreadable)?;
    }
}

/// Appends a value whose opening quote has been read; returns what follows its closing quote.
fn append_value<'a>(
    mut rest: &'a str,
    may_be_cut: bool,
    out: &mut Vec<u8>,
) -> Result<&'a str, ParameterError> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    loop {
        let quote = rest.find('\'').ok_or(ParameterError::Unreadable)?;
        out.extend_from_slice(&rest.as_bytes()[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push(b'\'');
                rest = after;
            }
            None => break,
        }
    }
    let value = &out[at + 4..];
    if may_be_cut && value.ends_with(b"...") {
        return Err(ParameterError::Cut);
    }
    let length = i32::try_from(value.len()).map_err(|_| ParameterError::Unreadable)?;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<Option<String>>, ParameterError> {
        let mut out = Vec::new();
        let count = append_parameters(text, true, &mut out)?;
        let (mut rest, mut values) = (out.as_slice(), Vec::new());
        while let Some((length, more)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (value, more) = more.split_at(length.unwrap_or(0));
            values.push(length.map(|_| String::from_utf8(value.to_vec()).unwrap()));
            rest = more;
        }
        assert_eq!(values.len(), usize::from(count));
        Ok(values)
    }

    #[test]
    fn quotes_newlines_backslashes_and_nulls_are_read_as_they_were() {
        let text = "$1 = 'a''b', $2 = NULL, $3 = 'x\n\\y, $9 = ''NULL''', $4 = ''";
        let expected = [Some("a'b"), None, Some("x\n\\y, $9 = 'NULL'"), Some("")];
        assert_eq!(values(text), Ok(expected.map(|v| v.map(str::to_owned)).to_vec()));
    }

    #[test]
    fn a_value_that_was_cut_is_no_value() {
        assert_eq!(values("$1 = 'abc...'"), Err(ParameterError::Cut));
        assert_eq!(append_parameters("$1 = 'abc...'", false, &mut Vec::new()), Ok(1));
        assert_eq!(values("$1 = 'abc...', $2 = '1'"), Err(ParameterError::Cut));
    }

    #[test]
    fn other_texts_are_no_parameters() {
        for text in ["", "$1", "$2 = '1'", "$1 = 'a", "$1 = x", "$1 = '1' $2 = '2'", "$1 = '1', "] {
            assert_eq!(values(text), Err(ParameterError::Unreadable), "{text}");
        }
    }
}
