//! Whether the server's certificate is trusted, by libpq's rules.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::certificate::Certificate;

/// Whom to trust.
#[derive(Debug)]
pub(crate) struct Roots {
    /// For signatures.
    pub(crate) store: RootCertStore,
    /// The same certificates: one of them may be the server's own.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
}

/// Checks the chain if there are roots, and the name if that is asked.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// None: whoever answers is taken.
    pub(crate) roots: Option<Roots>,
    /// Whether the certificate has to be made out to the host.
    pub(crate) name: bool,
    /// Signatures that are understood.
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn chain(
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
        // A self-signed certificate that is itself named as trusted, as small installations have
        // it.
        let read = Certificate::read(server).ok_or(CertificateError::BadEncoding)?;
        if now.as_secs() < read.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if now.as_secs() > read.not_after {
            return Err(CertificateError::Expired.into());
        }
        Ok(())
    }
}

/// Whether `server` is made out to `host`: by its alternative names, or its common name if it has
/// none.
fn is_made_out_to(server: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Error> {
    let by_names =
        ParsedCertificate::try_from(server).and_then(|parsed| verify_server_name(&parsed, host));
    let read = Certificate::read(server).filter(|read| !read.has_alternative_names);
    match read {
        Some(read) if by_names.is_err() && read.common_name_is(&host.to_str()) => Ok(()),
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
            self.chain(roots, end_entity, intermediates, now)?;
        }
        if self.name {
            is_made_out_to(end_entity, server_name)?;
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
        match (checked, ParsedCertificate::try_from(cert).is_err(), Certificate::read(cert)) {
            // Certificates of version 1 are refused by the library; their key is as good as
            // another.
            (Err(_), true, Some(read)) => {
                let key = SubjectPublicKeyInfoDer::from(read.public_key);
                verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
            }
            (checked, ..) => checked,
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
