//! Characters, names and numbers as psql and pgbench read them.

/// White space, as psql has it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c')
}

/// Bytes of the backslash and the newline after it that `text` begins with, which are white space
/// in a meta command.
pub(super) fn continuation(text: &[u8]) -> Option<usize> {
    [&b"\\\n"[..], b"\\\r\n"].into_iter().find(|mark| text.starts_with(mark)).map(<[u8]>::len)
}

/// Whether a variable's name, or an SQL name, may begin with `byte`.
pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Bytes of the variable name at the front of `text`; 0 if none is there.
pub(super) fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().copied().is_some_and(is_name_start) {
        return 0;
    }
    bytes.iter().take_while(|&&b| is_name_start(b) || b.is_ascii_digit()).count()
}

/// Whether `name` can be assigned to: made of letters, digits and underscores, with no digit in
/// front.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}

/// The integer that `text` begins with, as C's `atoi` reads it: 0 where there is none; beyond a
/// bigint, the nearest.
#[must_use]
pub fn leading_integer(text: &[u8]) -> i64 {
    let blank = text.iter().take_while(|&&byte| is_space(byte)).count();
    let (is_negative, digits) = match &text[blank..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: i64, digit| {
        let digit = i64::from(digit - b'0');
        let tens = number.saturating_mul(10);
        if is_negative { tens.saturating_sub(digit) } else { tens.saturating_add(digit) }
    })
}
