//! What a certificate says of itself, as far as it is asked here: read in place, every length
//! checked.

use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_3: u8 = 0xa3;

/// PKCS #1's arc; the last number is the algorithm.
const PKCS_1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// ANSI X9.62's arc of ECDSA with SHA-2.
const ECDSA_SHA_2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
/// ECDSA with SHA-1.
const ECDSA_SHA_1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
/// NIST's arc of hash algorithms.
const NIST_HASHES: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// An X.509 certificate.
pub(crate) struct Certificate<'a> {
    /// Seconds since 1970.
    pub(crate) not_before: u64,
    /// Seconds since 1970.
    pub(crate) not_after: u64,
    /// Whom it is made out to, in the way before subject alternative names.
    pub(crate) common_name: Option<&'a str>,
    /// Whether it has subject alternative names.
    pub(crate) has_alternative_names: bool,
    /// Its public key, as DER.
    pub(crate) public_key: &'a [u8],
    signature_algorithm: Der<'a>,
}

/// Bytes of which values are taken one after the other.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next value: its tag, what it holds, and all of it.
    fn next(&mut self) -> Option<(u8, Der<'a>, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            let digits = usize::from(first & 0x7f);
            if digits == 0 || digits > 4 {
                return None;
            }
            let (length, after) = rest.split_at_checked(digits)?;
            rest = after;
            length.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit))
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some((tag, Der(content), whole))
    }

    /// What the next value holds, which must be a `tag`.
    fn take(&mut self, tag: u8) -> Option<Der<'a>> {
        self.next().filter(|(found, ..)| *found == tag).map(|(_, content, _)| content)
    }

    /// As [`Der::take`], if the next value is one.
    fn take_if(&mut self, tag: u8) -> Option<Der<'a>> {
        if self.0.first() == Some(&tag) { self.take(tag) } else { None }
    }
}

impl<'a> Certificate<'a> {
    /// Reads `der`; none if it is no certificate.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut outer = Der(der).take(SEQUENCE)?;
        let mut inner = outer.take(SEQUENCE)?;
        let signature_algorithm = outer.take(SEQUENCE)?;
        // The version; of the first there is none.
        inner.take_if(CONTEXT_0);
        // Serial number, signature algorithm, issuer.
        for _ in 0..3 {
            inner.next()?;
        }
        let mut validity = inner.take(SEQUENCE)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let common_name = common_name(inner.take(SEQUENCE)?);
        let (_, _, public_key) = inner.next().filter(|(tag, ..)| *tag == SEQUENCE)?;
        let mut has_alternative_names = false;
        while let Some((tag, mut content, _)) = inner.next() {
            if tag == CONTEXT_3 {
                let mut extensions = content.take(SEQUENCE)?;
                while let Some(mut extension) = extensions.take(SEQUENCE) {
                    has_alternative_names |= extension.take(OID)?.0 == SUBJECT_ALT_NAME;
                }
            }
        }
        Some(Self {
            not_before,
            not_after,
            common_name,
            has_alternative_names,
            public_key,
            signature_algorithm,
        })
    }

    /// Whether its common name stands for `host`; one `*` for a first label is understood.
    pub(crate) fn common_name_is(&self, host: &str) -> bool {
        let Some(name) = self.common_name else { return false };
        if let Some(domain) = name.strip_prefix("*.") {
            return !domain.contains('*')
                && host.split_once('.').is_some_and(|(label, rest)| {
                    !label.is_empty() && rest.eq_ignore_ascii_case(domain)
                });
        }
        name.eq_ignore_ascii_case(host)
    }
}

/// What `tls-server-end-point` (RFC 5929) makes of the server's certificate `der`: its hash by the
/// algorithm that it is signed with, but SHA-256 for MD5 and SHA-1. None where the RFC defines
/// none, as for Ed25519.
#[must_use]
pub fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    let mut algorithm = Certificate::read(der)?.signature_algorithm;
    let oid = algorithm.take(OID)?.0;
    let hash = match (oid.strip_prefix(PKCS_1), oid.strip_prefix(ECDSA_SHA_2)) {
        (Some([4 | 5 | 11]), _) | (_, Some([2])) => Hash::Sha256,
        (Some([12]), _) | (_, Some([3])) => Hash::Sha384,
        (Some([13]), _) | (_, Some([4])) => Hash::Sha512,
        (Some([14]), _) | (_, Some([1])) => Hash::Sha224,
        // RSASSA-PSS names its hash in its parameters; SHA-1 if it does not.
        (Some([10]), _) => match algorithm.take(SEQUENCE).and_then(|mut p| p.take_if(CONTEXT_0)) {
            None => Hash::Sha256,
            Some(mut named) => match named.take(SEQUENCE)?.take(OID)?.0.strip_prefix(NIST_HASHES) {
                Some([1]) | None => Hash::Sha256,
                Some([2]) => Hash::Sha384,
                Some([3]) => Hash::Sha512,
                Some([4]) => Hash::Sha224,
                Some(_) => return None,
            },
        },
        _ if oid == ECDSA_SHA_1 => Hash::Sha256,
        _ => return None,
    };
    Some(match hash {
        Hash::Sha224 => Sha224::digest(der).to_vec(),
        Hash::Sha256 => Sha256::digest(der).to_vec(),
        Hash::Sha384 => Sha384::digest(der).to_vec(),
        Hash::Sha512 => Sha512::digest(der).to_vec(),
    })
}

enum Hash {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// The last common name of a distinguished name, the most specific one.
fn common_name(mut name: Der<'_>) -> Option<&str> {
    let mut found = None;
    while let Some(mut set) = name.take(SET) {
        while let Some(mut pair) = set.take(SEQUENCE) {
            if pair.take(OID)?.0 == COMMON_NAME {
                let (_, text, _) = pair.next()?;
                found = std::str::from_utf8(text.0).ok().filter(|t| !t.contains('\0'));
            }
        }
    }
    found
}

/// The next value as a point in time (seconds since 1970; 0 for one before).
fn time(der: &mut Der<'_>) -> Option<u64> {
    let (tag, text, _) = der.next()?;
    let text = std::str::from_utf8(text.0).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        // Two digits of the year: 50 to 99 are of the last century.
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = year.parse::<u64>().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let number = |at: usize| rest.get(at..at + 2)?.parse::<u64>().ok();
    let (month, day) = (number(0)?, number(2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = number(4)? * 3600 + number(6)? * 60 + number(8)?;
    // Years are counted from March, so that a leap day is the last of its year.
    let (years, months) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days =
        years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    // From 1 March of the year 0 to 1 January 1970.
    Some(days.checked_sub(719_468)? * 86_400 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    fn made(
        names: &[&str],
        common_name: &str,
        algorithm: &'static rcgen::SignatureAlgorithm,
    ) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "nobody");
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.not_before = rcgen::date_time_ymd(2001, 2, 28);
        params.not_after = rcgen::date_time_ymd(2096, 2, 29);
        let key = KeyPair::generate_for(algorithm).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_says_when_and_for_whom_it_holds() {
        let der = made(&[], "db.example", &rcgen::PKCS_ECDSA_P256_SHA256);
        let read = Certificate::read(&der).unwrap();
        assert_eq!((read.not_before, read.not_after), (983_318_400, 3_981_312_000));
        assert_eq!((read.common_name, read.has_alternative_names), (Some("db.example"), false));
        assert!(read.common_name_is("DB.example") && !read.common_name_is("b.example"));
        assert_eq!(read.public_key[0], SEQUENCE);
        let der = made(&["x.example"], "*.example", &rcgen::PKCS_ECDSA_P256_SHA256);
        let read = Certificate::read(&der).unwrap();
        assert!(read.has_alternative_names);
        assert!(read.common_name_is("y.example"));
        for other in ["y.x.example", ".example", "example", "*.other"] {
            assert!(!read.common_name_is(other), "{other}");
        }
    }

    #[test]
    fn the_end_point_is_hashed_as_the_certificate_is_signed() {
        for (algorithm, length) in [
            (&rcgen::PKCS_ECDSA_P256_SHA256, Some(32)),
            (&rcgen::PKCS_ECDSA_P384_SHA384, Some(48)),
            (&rcgen::PKCS_ED25519, None),
        ] {
            let der = made(&["x"], "x", algorithm);
            assert_eq!(end_point(&der).map(|hash| hash.len()), length);
        }
        let der = made(&["x"], "x", &rcgen::PKCS_ECDSA_P256_SHA256);
        assert_eq!(end_point(&der).unwrap(), Sha256::digest(&der).to_vec());
    }

    #[test]
    fn no_bytes_are_read_that_are_not_there() {
        let der = made(&["x.example"], "x", &rcgen::PKCS_ECDSA_P256_SHA256);
        for length in 0..der.len() {
            assert!(Certificate::read(&der[..length]).is_none(), "{length}");
        }
        for at in 0..der.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut wrong = der.clone();
                wrong[at] = byte;
                let _ = (Certificate::read(&wrong), end_point(&wrong));
            }
        }
    }
}
