//! TLS 1.3 with a certificate made for the run, which workers know by its hash.

use std::io;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error,
    ServerConfig, ServerConnection, SignatureScheme, version,
};

use super::token::Token;

/// Label of the keying material that a proof is made of.
const LABEL: &[u8] = b"EXPORTER-pgdyno-join";

/// The coordinator's side.
pub(super) struct Server {
    config: Arc<ServerConfig>,
    /// The certificate (DER).
    pub(super) certificate: CertificateDer<'static>,
}

impl Server {
    /// Makes a key and its certificate.
    pub(super) fn new() -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let made = CertificateParams::default().self_signed(&key).map_err(io::Error::other)?;
        let certificate = made.der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(io::Error::other)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .map_err(io::Error::other)?;
        // Each connection proves itself.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self { config: Arc::new(config), certificate })
    }

    pub(super) fn connection(&self) -> Result<Connection, Error> {
        ServerConnection::new(Arc::clone(&self.config)).map(Connection::Server)
    }
}

/// Returns the worker's side of a connection to the coordinator of `token`.
pub(super) fn client(token: Arc<Token>) -> Result<Connection, Error> {
    let provider = provider();
    let pinned = Pinned { token, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    // The certificate is known by its hash, whatever the coordinator is called.
    let name = ServerName::try_from("pgdyno").map_err(|error| Error::General(error.to_string()))?;
    ClientConnection::new(Arc::new(config), name).map(Connection::Client)
}

/// Returns keying material that both ends of a connection have, and nobody else.
pub(super) fn channel(tls: &Connection) -> Result<[u8; 32], Error> {
    match tls {
        Connection::Client(client) => client.export_keying_material([0; 32], LABEL, None),
        Connection::Server(server) => server.export_keying_material([0; 32], LABEL, None),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Accepts one certificate.
struct Pinned {
    token: Arc<Token>,
    provider: Arc<CryptoProvider>,
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pinned")
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.token.is_certificate(certificate) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 is expected".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
