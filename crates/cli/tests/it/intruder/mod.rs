//! Somebody who speaks TLS to a coordinator and is none of its workers.

// Helpers of tests fail as tests do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};
use sha2::Sha256;

/// A TLS connection to a coordinator, whatever its certificate.
pub struct Intruder(StreamOwned<ClientConnection, TcpStream>);

impl Intruder {
    pub fn new(address: &str) -> Self {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody))
            .with_no_client_auth();
        let name = ServerName::try_from("anybody").unwrap();
        let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).unwrap();
        }
        Self(StreamOwned::new(tls, socket))
    }

    /// The proof of the secret in `token` for this connection.
    pub fn proof(&self, token: &str) -> String {
        let secret = URL_SAFE_NO_PAD.decode(token.trim().split('.').nth(2).unwrap()).unwrap();
        let label = b"EXPORTER-pgdyno-join";
        let channel = self.0.conn.export_keying_material([0; 32], label, None).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
        mac.update(&channel);
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }

    /// Shows a proof; returns the answer.
    pub fn shows(&mut self, proof: &str) -> String {
        let greeting = format!(r#"{{"proof":"{proof}","host":"intruder"}}"#);
        let mut bytes = u32::try_from(greeting.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(greeting.as_bytes());
        self.says(&bytes)
    }

    /// Sends bytes, or without any the end of them; returns the first answer.
    pub fn says(&mut self, bytes: &[u8]) -> String {
        self.0.write_all(bytes).unwrap();
        if bytes.is_empty() {
            self.0.conn.send_close_notify();
        }
        self.0.flush().unwrap();
        let mut header = [0; 4];
        self.0.read_exact(&mut header).unwrap();
        let mut answer = vec![0; u32::from_be_bytes(header) as usize];
        self.0.read_exact(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }
}

#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
