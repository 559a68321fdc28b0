//! The token: what a worker needs to know its coordinator, and to be known.
//!
//! A token file is one line: `pgdyno1.CERTIFICATE.SECRET`, the SHA-256 of the certificate and the
//! secret, in base64. Only its owner may read it. It is locked while its coordinator lives, so that
//! the file of a killed one is known and replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::error::TokenError;

/// Begins a token, and names its version.
const PREFIX: &str = "pgdyno1";
/// The most that is read of a file (bytes). A token is shorter.
const LONGEST: u64 = 4096;

/// Hash of a certificate, and a secret. It has no `Debug`: the secret is not to be shown.
pub(super) struct Token {
    certificate: [u8; 32],
    secret: [u8; 32],
}

impl Token {
    /// Makes the token of a run whose coordinator has `certificate` (DER).
    pub(super) fn new(certificate: &[u8]) -> io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Self { certificate: Sha256::digest(certificate).into(), secret })
    }

    /// Reads the token in `path`, which is standard input if it is `-`.
    pub(super) fn read(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |error| TokenError::Read { path: path.to_owned(), error };
        let from: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(io::stdin()),
            _ => Box::new(File::open(path).map_err(unreadable)?),
        };
        let mut text = String::new();
        // No further than the line: standard input may stay open.
        match BufReader::new(from.take(LONGEST)).read_line(&mut text) {
            Err(error) if error.kind() != ErrorKind::InvalidData => Err(unreadable(error)),
            read => {
                let token = read.ok().and_then(|_| Self::parse(text.trim()));
                token.ok_or_else(|| TokenError::NoToken(path.to_owned()))
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        if parts.next() != Some(PREFIX) {
            return None;
        }
        let mut bytes = || URL_SAFE_NO_PAD.decode(parts.next()?).ok()?.try_into().ok();
        let token = Self { certificate: bytes()?, secret: bytes()? };
        parts.next().is_none().then_some(token)
    }

    /// Returns the line that a token file has.
    pub(super) fn line(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        format!("{PREFIX}.{}.{}\n", text(&self.certificate), text(&self.secret))
    }

    /// Returns whether this is the token's certificate (DER).
    pub(super) fn is_certificate(&self, der: &[u8]) -> bool {
        <[u8; 32]>::from(Sha256::digest(der)) == self.certificate
    }

    fn mac(&self, channel: &[u8]) -> Hmac<Sha256> {
        // Of any length.
        let mut mac = Hmac::new_from_slice(&self.secret).unwrap_or_else(|_| unreachable!());
        mac.update(channel);
        mac
    }

    /// Returns the proof that one has the secret, for the TLS connection of this keying material.
    pub(super) fn proof(&self, channel: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(channel).finalize().into_bytes())
    }

    /// Checks a proof, in a time that does not depend on it.
    pub(super) fn is_proof(&self, proof: &str, channel: &[u8]) -> bool {
        let proof = URL_SAFE_NO_PAD.decode(proof);
        proof.is_ok_and(|proof| self.mac(channel).verify_slice(&proof).is_ok())
    }
}

/// A token file; it is removed with this value.
pub(super) struct TokenFile {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl TokenFile {
    /// Writes `token` to `path`, where there is nothing yet but the token of a coordinator that was
    /// killed.
    pub(super) fn create(path: &Path, token: &Token) -> Result<Self, TokenError> {
        let failed = |error| TokenError::Write { path: path.to_owned(), error };
        if remove_leftover(path)? {
            return Self::create_new(path, token).map_err(failed);
        }
        match Self::create_new(path, token) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(TokenError::Exists(path.to_owned()))
            }
            created => created.map_err(failed),
        }
    }

    fn create_new(path: &Path, token: &Token) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // Neither a link nor another's file is written to.
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        let path = path.to_owned();
        let locked = file.try_lock();
        let this = Self { path, file: file.try_clone()? };
        locked.map_err(io::Error::from)?;
        file.write_all(token.line().as_bytes())?;
        Ok(this)
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        if is_same(&self.path, &self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns whether `path` names this very file.
fn is_same(path: &Path, file: &File) -> bool {
    let ids = |data: std::fs::Metadata| (data.dev(), data.ino());
    match (std::fs::symlink_metadata(path), file.metadata()) {
        (Ok(named), Ok(held)) => ids(named) == ids(held),
        _ => false,
    }
}

/// Removes the token of a coordinator that was killed; returns whether there was one.
fn remove_leftover(path: &Path) -> Result<bool, TokenError> {
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return Ok(false) };
    let is_ours = file.metadata().is_ok_and(|data| {
        data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o077 == 0
    });
    let mut text = String::new();
    let read = (&file).take(LONGEST).read_to_string(&mut text);
    // A killed coordinator may have left it empty.
    let is_token = text.is_empty() || Token::parse(text.trim()).is_some();
    if !is_ours || read.is_err() || !is_token || !is_same(path, &file) {
        return Ok(false);
    }
    match file.try_lock() {
        Ok(()) => {
            let failed = |error| TokenError::Write { path: path.to_owned(), error };
            std::fs::remove_file(path).map(|()| true).map_err(failed)
        }
        Err(TryLockError::WouldBlock) => Err(TokenError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(TokenError::Read { path: path.to_owned(), error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_from_its_file_and_the_file_goes_with_the_run() {
        let path = std::env::temp_dir().join(format!("pgdyno-test-token-{}", std::process::id()));
        let token = Token::new(b"certificate").unwrap();
        let file = TokenFile::create(&path, &token).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let read = Token::read(&path).unwrap();
        assert!(read.is_certificate(b"certificate") && !read.is_certificate(b"another"));
        assert!(token.is_proof(&read.proof(b"one"), b"one"));
        let second = TokenFile::create(&path, &token);
        assert!(matches!(second, Err(TokenError::InUse(_))));
        drop(file);
        assert!(matches!(Token::read(&path), Err(TokenError::Read { .. })));

        // The file of a coordinator that was killed is replaced, another's is not.
        let line = token.line();
        let mut options = OpenOptions::new();
        let mut left = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
        left.write_all(line.as_bytes()).unwrap();
        drop(left);
        drop(TokenFile::create(&path, &token).unwrap());
        std::fs::write(&path, "notes\n").unwrap();
        let others = TokenFile::create(&path, &token);
        assert!(matches!(others, Err(TokenError::Exists(_))));
        assert!(matches!(Token::read(&path), Err(TokenError::NoToken(_))));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_proof_holds_for_one_secret_and_one_connection() {
        let token = Token::new(b"certificate").unwrap();
        let proof = token.proof(b"one");
        assert!(!token.is_proof(&proof, b"two"));
        assert!(!Token::new(b"certificate").unwrap().is_proof(&proof, b"one"));
        assert!(!token.is_proof("", b"one") && !token.is_proof("?", b"one"));
    }
}
