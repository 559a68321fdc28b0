//! Decides whether the server's certificate is trusted, by libpq's rules.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::certificate::Certificate;

/// Root certificates that are trusted.
#[derive(Debug)]
pub(super) struct Roots {
    /// The roots, for checking signatures.
    pub(super) store: RootCertStore,
    /// The roots as certificates, since one of them may be the server's own.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// Checks the server's chain of certificates against the roots, and its name against the host.
#[derive(Debug)]
pub(super) struct Verifier {
    /// Trusted roots; without them any certificate is accepted.
    pub(super) roots: Option<Roots>,
    /// Whether the certificate must name the host.
    pub(super) checks_name: bool,
    /// Signature algorithms that are accepted.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn verify_chain(
        &self,
        roots: &Roots,
        server: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let signed = ParsedCertificate::try_from(server).and_then(|parsed| {
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &roots.store,
                between,
                now,
                self.algorithms.all,
            )
        });
        if signed.is_ok() || !roots.certificates.iter().any(|root| root == server) {
            return signed;
        }
        // Small installations name the server's own self-signed certificate as the root.
        let read = Certificate::from_der(server).ok_or(CertificateError::BadEncoding)?;
        if now.as_secs() < read.not_before() {
            return Err(CertificateError::NotValidYet.into());
        }
        if now.as_secs() > read.not_after() {
            return Err(CertificateError::Expired.into());
        }
        Ok(())
    }
}

/// Checks that `server` names `host`: in its alternative names, or in its common name if it has
/// no alternative names.
fn verify_name(server: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Error> {
    let by_names =
        ParsedCertificate::try_from(server).and_then(|parsed| verify_server_name(&parsed, host));
    let read = Certificate::from_der(server).filter(|read| !read.has_alternative_names());
    match read {
        Some(read) if by_names.is_err() && read.is_common_name(&host.to_str()) => Ok(()),
        _ => by_names,
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            self.verify_chain(roots, end_entity, intermediates, now)?;
        }
        if self.checks_name {
            verify_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let checked = verify_tls13_signature(message, cert, dss, &self.algorithms);
        if checked.is_ok() || ParsedCertificate::try_from(cert).is_ok() {
            return checked;
        }
        // rustls refuses certificates of version 1. Their key verifies a signature all the same.
        let Some(key) = Certificate::from_der(cert).and_then(|read| read.public_key()) else {
            return checked;
        };
        let key = SubjectPublicKeyInfoDer::from(key);
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
