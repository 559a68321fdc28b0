//! Frames: a length in four bytes, the highest first, and so many bytes of JSON.

use std::io::{self, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame (bytes). A second of 512 statements with full distributions takes a quarter.
const LONGEST: usize = 64 << 20;

/// Why no message could be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end is gone, or its system failed.
    #[error("{0}")]
    Io(io::Error),
    /// The bytes are no frame: another program talks.
    #[error("{} bytes were announced as one message: the other end is no pgdyno", .0)]
    TooLong(usize),
    /// The frame holds no message of this version.
    #[error("a message that is not understood: {0}")]
    Unknown(serde_json::Error),
}

/// Writes `message`, and flushes.
///
/// # Errors
/// The other end is gone, or the message is too long.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > LONGEST {
        return Err(io::Error::new(ErrorKind::InvalidData, FrameError::TooLong(length)));
    }
    let header = u32::try_from(length).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&header.to_be_bytes());
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads the next message; none where the other end closed in order.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>, FrameError> {
    let mut header = [0; 4];
    let begun = loop {
        match from.read(&mut header) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read.map_err(FrameError::Io)?,
        }
    };
    if begun == 0 {
        return Ok(None);
    }
    from.read_exact(&mut header[begun..]).map_err(FrameError::Io)?;
    let length = u32::from_be_bytes(header) as usize;
    if length > LONGEST {
        return Err(FrameError::TooLong(length));
    }
    let mut bytes = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut bytes).map_err(FrameError::Io)?;
    if read < length {
        return Err(FrameError::Io(ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(FrameError::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_in_order_until_the_end() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"one").unwrap();
        write(&mut bytes, &vec![2; 1000]).unwrap();
        let mut from = &bytes[..];
        assert_eq!(read::<String>(&mut from).unwrap().unwrap(), "one");
        assert_eq!(read::<Vec<u32>>(&mut from).unwrap().unwrap(), [2; 1000]);
        assert!(read::<String>(&mut from).unwrap().is_none());
    }

    #[test]
    fn a_cut_frame_and_another_programs_words_are_errors() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"one").unwrap();
        for cut in 1..bytes.len() {
            assert!(matches!(read::<String>(&mut &bytes[..cut]), Err(FrameError::Io(_))));
        }
        let banner = &mut &b"Welcome to gen1!"[..];
        assert!(matches!(read::<String>(banner), Err(FrameError::TooLong(_))));
        assert!(matches!(read::<u32>(&mut &bytes[..]), Err(FrameError::Unknown(_))));
    }
}
