//! Fields of X.509 certificates that libpq's rules look at.

use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::{ContextSpecific, ObjectIdentifier};
use x509_cert::der::oid::db::{rfc4519, rfc5912};
use x509_cert::der::{Decode as _, Encode as _, Reader as _, TagNumber};
use x509_cert::spki::{AlgorithmIdentifierOwned, AlgorithmIdentifierRef};

/// ANSI X9.62's ecdsa-with-SHA1, which the database of identifiers lacks.
const ECDSA_WITH_SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.1");

/// An X.509 certificate. Version 1 and serial numbers that RFC 5280 forbids are accepted, since
/// small installations have such certificates.
pub(super) struct Certificate(CertificateInner<Raw>);

impl Certificate {
    /// Decodes `der`. Returns none if it is not a certificate.
    pub(super) fn from_der(der: &[u8]) -> Option<Self> {
        CertificateInner::from_der(der).ok().map(Self)
    }

    /// Returns when the certificate becomes valid (seconds since 1970).
    pub(super) fn not_before(&self) -> u64 {
        self.0.tbs_certificate().validity().not_before.to_unix_duration().as_secs()
    }

    /// Returns when the certificate expires (seconds since 1970).
    pub(super) fn not_after(&self) -> u64 {
        self.0.tbs_certificate().validity().not_after.to_unix_duration().as_secs()
    }

    /// Whether the certificate has subject alternative names.
    pub(super) fn has_alternative_names(&self) -> bool {
        let extensions = self.0.tbs_certificate().extensions().into_iter().flatten();
        extensions.into_iter().any(|e| e.extn_id == rfc5912::ID_CE_SUBJECT_ALT_NAME)
    }

    /// Returns the public key (DER of SubjectPublicKeyInfo).
    pub(super) fn public_key(&self) -> Option<Vec<u8>> {
        self.0.tbs_certificate().subject_public_key_info().to_der().ok()
    }

    /// Returns the last common name of the subject, which is the most specific one.
    fn common_name(&self) -> Option<&str> {
        let names = self.0.tbs_certificate().subject().iter();
        let last = names.filter(|name| name.oid == rfc4519::COMMON_NAME).last()?;
        std::str::from_utf8(last.value.value()).ok().filter(|name| !name.contains('\0'))
    }

    /// Whether the common name matches `host`. A first label `*` matches any one label.
    pub(super) fn is_common_name(&self, host: &str) -> bool {
        let Some(name) = self.common_name() else { return false };
        if let Some(domain) = name.strip_prefix("*.") {
            return !domain.contains('*')
                && host.split_once('.').is_some_and(|(label, rest)| {
                    !label.is_empty() && rest.eq_ignore_ascii_case(domain)
                });
        }
        name.eq_ignore_ascii_case(host)
    }
}

/// Hashes the server's certificate `der` for the channel binding `tls-server-end-point` (RFC 5929).
///
/// The hash function is the one of the certificate's signature, but SHA-256 in place of MD5 and
/// SHA-1. Returns none where the RFC defines no hash, as for Ed25519.
pub fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    let certificate = Certificate::from_der(der)?;
    let algorithm = certificate.0.signature_algorithm();
    let hash = match algorithm.oid {
        rfc5912::ID_RSASSA_PSS => pss_hash(algorithm)?,
        rfc5912::MD_5_WITH_RSA_ENCRYPTION
        | rfc5912::SHA_1_WITH_RSA_ENCRYPTION
        | ECDSA_WITH_SHA_1
        | rfc5912::SHA_256_WITH_RSA_ENCRYPTION
        | rfc5912::ECDSA_WITH_SHA_256 => rfc5912::ID_SHA_256,
        rfc5912::SHA_384_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_384 => rfc5912::ID_SHA_384,
        rfc5912::SHA_512_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_512 => rfc5912::ID_SHA_512,
        rfc5912::SHA_224_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_224 => rfc5912::ID_SHA_224,
        _ => return None,
    };
    Some(match hash {
        rfc5912::ID_SHA_1 | rfc5912::ID_SHA_256 => Sha256::digest(der).to_vec(),
        rfc5912::ID_SHA_384 => Sha384::digest(der).to_vec(),
        rfc5912::ID_SHA_512 => Sha512::digest(der).to_vec(),
        rfc5912::ID_SHA_224 => Sha224::digest(der).to_vec(),
        _ => return None,
    })
}

/// Reads the hash function from the parameters of RSASSA-PSS (RFC 4055). It is SHA-1 if they name
/// none.
fn pss_hash(algorithm: &AlgorithmIdentifierOwned) -> Option<ObjectIdentifier> {
    let Some(parameters) = &algorithm.parameters else { return Some(rfc5912::ID_SHA_1) };
    let hash = parameters.sequence(|reader| {
        let named =
            ContextSpecific::<AlgorithmIdentifierRef<'_>>::decode_explicit(reader, TagNumber(0))?;
        // Mask generation, salt length and trailer do not matter here.
        reader.drain(reader.remaining_len())?;
        Ok::<_, x509_cert::der::Error>(named.map(|named| named.value.oid))
    });
    Some(hash.ok()?.unwrap_or(rfc5912::ID_SHA_1))
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
        assert_eq!((read.common_name(), read.has_alternative_names()), (Some("db.example"), false));
        assert!(read.is_common_name("DB.example") && !read.is_common_name("b.example"));
        // The tag of a SEQUENCE.
        assert_eq!(read.public_key().unwrap()[0], 0x30);
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
