//! Fields of X.509 certificates that libpq's rules look at.

use der::asn1::{Any, AnyRef, ContextSpecific, GeneralizedTime, ObjectIdentifier, UtcTime};
use der::{Decode as _, Reader, Result, SliceReader, Tag, TagNumber};
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const SUBJECT_ALTERNATIVE_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");

/// Hash functions (RFC 8017 A.2.4, NIST).
const SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const SHA_224: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.4");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

/// Signature algorithms whose name implies the hash function (RFC 8017, RFC 5758), and the one that
/// the channel binding takes: SHA-256 in place of MD5 and SHA-1.
const HASHES: [(ObjectIdentifier, ObjectIdentifier); 11] = [
    // With RSA: MD5, SHA-1, SHA-256, SHA-384, SHA-512, SHA-224.
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.4"), SHA_256),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"), SHA_256),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11"), SHA_256),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12"), SHA_384),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13"), SHA_512),
    (ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.14"), SHA_224),
    // With ECDSA: SHA-1, SHA-224, SHA-256, SHA-384, SHA-512.
    (ObjectIdentifier::new_unwrap("1.2.840.10045.4.1"), SHA_256),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.1"), SHA_224),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2"), SHA_256),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3"), SHA_384),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4"), SHA_512),
];

/// An X.509 certificate. Version 1 and serial numbers that RFC 5280 forbids are accepted, since
/// small installations have such certificates.
pub(super) struct Certificate {
    not_before: u64,
    not_after: u64,
    common_name: Option<String>,
    public_key: Vec<u8>,
    has_alternative_names: bool,
    signature: Algorithm,
}

/// An algorithm and its parameters (AlgorithmIdentifier).
struct Algorithm {
    oid: ObjectIdentifier,
    parameters: Option<Any>,
}

impl Certificate {
    /// Decodes `der`. Returns none if it is not a certificate.
    pub(super) fn from_der(der: &[u8]) -> Option<Self> {
        let mut reader = SliceReader::new(der).ok()?;
        let certificate = reader.sequence(|certificate| {
            let signed = certificate.sequence(Self::read_signed_part)?;
            let signature = read_algorithm(certificate)?;
            let _bits: AnyRef<'_> = certificate.decode()?;
            Ok::<_, der::Error>(Self { signature, ..signed })
        });
        reader.finish().ok()?;
        certificate.ok()
    }

    /// Reads the fields of TBSCertificate (RFC 5280, 4.1).
    fn read_signed_part<'a>(reader: &mut SliceReader<'a>) -> Result<Self> {
        let _version = ContextSpecific::<AnyRef<'a>>::decode_explicit(reader, TagNumber(0))?;
        let _serial_number: AnyRef<'a> = reader.decode()?;
        let signature = read_algorithm(reader)?;
        let _issuer: AnyRef<'a> = reader.decode()?;
        let (not_before, not_after) =
            reader.sequence(|time| Ok::<_, der::Error>((read_time(time)?, read_time(time)?)))?;
        let common_name = reader.sequence(read_common_name)?;
        let public_key = reader.tlv_bytes()?.to_vec();
        let mut has_alternative_names = false;
        while !reader.is_finished() {
            // Unique identifiers, [1] and [2], do not matter here.
            let field: AnyRef<'a> = reader.decode()?;
            if field.header().tag() == EXTENSIONS {
                let mut extensions = SliceReader::new(field.value())?;
                has_alternative_names = extensions.sequence(names_alternatives)?;
            }
        }
        Ok(Self {
            not_before,
            not_after,
            common_name,
            public_key,
            has_alternative_names,
            signature,
        })
    }

    /// Returns when the certificate becomes valid (seconds since 1970).
    pub(super) fn not_before(&self) -> u64 {
        self.not_before
    }

    /// Returns when the certificate expires (seconds since 1970).
    pub(super) fn not_after(&self) -> u64 {
        self.not_after
    }

    /// Whether the certificate has subject alternative names.
    pub(super) fn has_alternative_names(&self) -> bool {
        self.has_alternative_names
    }

    /// Returns the public key (DER of SubjectPublicKeyInfo).
    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Whether the common name matches `host`. A first label `*` matches any one label.
    pub(super) fn is_common_name(&self, host: &str) -> bool {
        let Some(name) = &self.common_name else { return false };
        if let Some(domain) = name.strip_prefix("*.") {
            return !domain.contains('*')
                && host.split_once('.').is_some_and(|(label, rest)| {
                    !label.is_empty() && rest.eq_ignore_ascii_case(domain)
                });
        }
        name.eq_ignore_ascii_case(host)
    }
}

const EXTENSIONS: Tag = Tag::ContextSpecific { constructed: true, number: TagNumber(3) };

fn read_algorithm(reader: &mut SliceReader<'_>) -> Result<Algorithm> {
    reader.sequence(|algorithm| {
        let oid = algorithm.decode()?;
        let parameters = (!algorithm.is_finished()).then(|| algorithm.decode()).transpose()?;
        Ok(Algorithm { oid, parameters })
    })
}

/// Reads a point in time (seconds since 1970).
fn read_time(reader: &mut SliceReader<'_>) -> Result<u64> {
    let time = match Tag::peek(reader)? {
        Tag::UtcTime => UtcTime::decode(reader)?.to_unix_duration(),
        _ => GeneralizedTime::decode(reader)?.to_unix_duration(),
    };
    Ok(time.as_secs())
}

/// Reads the last common name of a subject, which is the most specific one.
fn read_common_name(subject: &mut SliceReader<'_>) -> Result<Option<String>> {
    let mut last = None;
    while !subject.is_finished() {
        let set: AnyRef<'_> = subject.decode()?;
        set.header().tag().assert_eq(Tag::Set)?;
        let mut attributes = SliceReader::new(set.value())?;
        while !attributes.is_finished() {
            let (kind, value): (ObjectIdentifier, AnyRef<'_>) =
                attributes.sequence(|one| Ok::<_, der::Error>((one.decode()?, one.decode()?)))?;
            if kind == COMMON_NAME {
                last = Some(value.value());
            }
        }
    }
    let name = last.and_then(|name| std::str::from_utf8(name).ok());
    Ok(name.filter(|name| !name.contains('\0')).map(str::to_owned))
}

/// Whether `extensions` hold alternative names of the subject.
fn names_alternatives(extensions: &mut SliceReader<'_>) -> Result<bool> {
    let mut found = false;
    while !extensions.is_finished() {
        let kind: ObjectIdentifier = extensions.sequence(|extension| {
            let kind = extension.decode()?;
            // Whether it is critical, and its value.
            extension.drain(extension.remaining_len())?;
            Ok::<_, der::Error>(kind)
        })?;
        found |= kind == SUBJECT_ALTERNATIVE_NAMES;
    }
    Ok(found)
}

/// Hashes the server's certificate `der` for the channel binding `tls-server-end-point` (RFC 5929).
///
/// The hash function is the one of the certificate's signature, but SHA-256 in place of MD5 and
/// SHA-1. Returns none where the RFC defines no hash, as for Ed25519.
pub fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    let algorithm = Certificate::from_der(der)?.signature;
    let hash = if algorithm.oid == RSASSA_PSS {
        pss_hash(&algorithm)?
    } else {
        HASHES.iter().find(|(signature, _)| *signature == algorithm.oid)?.1
    };
    Some(match hash {
        SHA_1 | SHA_256 => Sha256::digest(der).to_vec(),
        SHA_384 => Sha384::digest(der).to_vec(),
        SHA_512 => Sha512::digest(der).to_vec(),
        SHA_224 => Sha224::digest(der).to_vec(),
        _ => return None,
    })
}

/// Reads the hash function from the parameters of RSASSA-PSS (RFC 4055). It is SHA-1 if they name
/// none.
fn pss_hash(algorithm: &Algorithm) -> Option<ObjectIdentifier> {
    let Some(parameters) = &algorithm.parameters else { return Some(SHA_1) };
    let hash = parameters.sequence(|reader| {
        let named = ContextSpecific::<AnyRef<'_>>::decode_explicit(reader, TagNumber(0))?;
        // Mask generation, salt length and trailer do not matter here.
        reader.drain(reader.remaining_len())?;
        let algorithm = named.map(|named| {
            named.value.sequence(|hash| {
                let oid = hash.decode()?;
                hash.drain(hash.remaining_len())?;
                Ok::<ObjectIdentifier, der::Error>(oid)
            })
        });
        algorithm.transpose()
    });
    Some(hash.ok()?.unwrap_or(SHA_1))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn self_signed(
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
    fn validity_and_names_are_read() {
        let der = self_signed(&[], "db.example", &rcgen::PKCS_ECDSA_P256_SHA256);
        let read = Certificate::from_der(&der).unwrap();
        assert_eq!((read.not_before(), read.not_after()), (983_318_400, 3_981_312_000));
        assert_eq!(
            (read.common_name.as_deref(), read.has_alternative_names()),
            (Some("db.example"), false)
        );
        assert!(read.is_common_name("DB.example") && !read.is_common_name("b.example"));
        // The tag of a SEQUENCE.
        assert_eq!(read.public_key()[0], 0x30);
        let der = self_signed(&["x.example"], "*.example", &rcgen::PKCS_ECDSA_P256_SHA256);
        let read = Certificate::from_der(&der).unwrap();
        assert!(read.has_alternative_names());
        assert!(read.is_common_name("y.example"));
        for other in ["y.x.example", ".example", "example", "*.other"] {
            assert!(!read.is_common_name(other), "{other}");
        }
    }

    #[test]
    fn the_end_point_is_hashed_as_the_certificate_is_signed() {
        for (algorithm, length) in [
            (&rcgen::PKCS_ECDSA_P256_SHA256, Some(32)),
            (&rcgen::PKCS_ECDSA_P384_SHA384, Some(48)),
            (&rcgen::PKCS_ED25519, None),
        ] {
            let der = self_signed(&["x"], "x", algorithm);
            assert_eq!(end_point(&der).map(|hash| hash.len()), length);
        }
        let der = self_signed(&["x"], "x", &rcgen::PKCS_ECDSA_P256_SHA256);
        assert_eq!(end_point(&der).unwrap(), Sha256::digest(&der).to_vec());
    }

    #[test]
    fn a_truncated_certificate_is_refused() {
        let der = self_signed(&["x.example"], "x", &rcgen::PKCS_ECDSA_P256_SHA256);
        for length in 0..der.len() {
            assert!(Certificate::from_der(&der[..length]).is_none(), "{length}");
        }
        for at in 0..der.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut wrong = der.clone();
                wrong[at] = byte;
                let _ = (Certificate::from_der(&wrong), end_point(&wrong));
            }
        }
    }
}
