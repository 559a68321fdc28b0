//! Characters, names and numbers as psql and pgbench read them.

/// Returns whether psql treats `byte` as white space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c')
}

/// Returns the length of the backslash and newline that `text` begins with, if it does. They are
/// white space in a meta command.
pub(super) fn continuation(text: &[u8]) -> Option<usize> {
    [&b"\\\n"[..], b"\\\r\n"].into_iter().find(|mark| text.starts_with(mark)).map(<[u8]>::len)
}

/// Returns whether a variable's name or an SQL name may begin with `byte`.
pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Returns the length of the variable name that `text` begins with; 0 if there is none.
pub(super) fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().copied().is_some_and(is_name_start) {
        return 0;
    }
    bytes.iter().take_while(|&&b| is_name_start(b) || b.is_ascii_digit()).count()
}

/// Returns whether a variable can be called `name`: letters, digits and underscores, not beginning
/// with a digit.
///
/// ```
/// use pgdyno_engine::script::is_variable_name;
///
/// assert!(is_variable_name("scale_2"));
/// assert!(!is_variable_name("2nd"));
/// ```
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}

/// Returns the integer that `text` begins with, as C's `atoi` does.
///
/// Without digits the result is 0; beyond a bigint it is the nearest bigint.
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
