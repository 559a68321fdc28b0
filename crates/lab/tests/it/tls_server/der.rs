//! Reads and writes as much DER as a test needs to make a certificate of version 1.

/// Encodes `content` as a DER value of `tag`.
pub fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut out = vec![tag];
    match length {
        [0, short] if short < 0x80 => out.push(short),
        [0, byte] => out.extend([0x81, byte]),
        both => out.extend([&[0x82], &both[..]].concat()),
    }
    out.extend(content);
    out
}

/// Splits `bytes` into DER values, each with its header.
pub fn values(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (head, length) = match bytes[1] {
            0x81 => (3, usize::from(bytes[2])),
            0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
            short => (2, usize::from(short)),
        };
        let (value, rest) = bytes.split_at(head + length);
        found.push(value);
        bytes = rest;
    }
    found
}

/// Returns the content of the DER value `bytes`, without its header.
pub fn inside(bytes: &[u8]) -> &[u8] {
    &bytes[match bytes[1] {
        0x81 => 3,
        0x82 => 4,
        _ => 2,
    }..]
}

/// Encodes the certificate `der` in PEM.
pub fn pem_of(der: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in der.chunks(3) {
        let bits =
            group.iter().chain(&[0, 0]).take(3).fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        for place in 0..4 {
            let letter = char::from(LETTERS[bits >> (18 - 6 * place) & 63]);
            text.push(if place > group.len() { '=' } else { letter });
        }
    }
    let lines: Vec<&str> =
        (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
