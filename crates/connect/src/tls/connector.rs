//! Turns TLS settings into a client configuration and connections.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pgdyno_model::target::{RootCert, SslMode, Tls};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::error::TlsError;
use super::verify::{Roots, Verifier};

/// Starts TLS connections with the settings of one [`Tls`].
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
    mode: SslMode,
}

/// Connectors of this process by their settings, so that a thousand connections read the files
/// once.
static SHARED: Mutex<Vec<(Tls, Connector)>> = Mutex::new(Vec::new());

impl Connector {
    /// Returns the connector for `tls`, which is created at first use and kept by this process.
    ///
    /// # Errors
    /// [`TlsError`]: a file cannot be read, has the wrong content or permissions, or `tls` verifies
    /// certificates and names no root.
    pub fn shared(tls: &Tls) -> Result<Self, TlsError> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, connector)) = shared.iter().find(|(known, _)| known == tls) {
            return Ok(connector.clone());
        }
        let connector = Self::new(tls)?;
        shared.push((tls.clone(), connector.clone()));
        Ok(connector)
    }

    /// Creates a connector for `tls`, reading the files that it names.
    ///
    /// # Errors
    /// As [`Connector::shared`].
    pub fn new(tls: &Tls) -> Result<Self, TlsError> {
        let roots = match &tls.root {
            None if tls.mode >= SslMode::VerifyCa => return Err(TlsError::NoRoot(tls.mode)),
            None => None,
            Some(RootCert::System) => Some(system_roots()?),
            Some(RootCert::File(path)) => Some(roots_of(path)?),
        };
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Verifier { roots, checks_name: tls.mode == SslMode::VerifyFull, algorithms };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError::handshake(&e))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &tls.cert {
            None => builder.with_no_client_auth(),
            Some(cert) => {
                let key = tls.key.as_ref().ok_or_else(|| TlsError::NoKey(cert.clone()))?;
                let chain = certificates(cert, "client certificate")?;
                builder
                    .with_client_auth_cert(chain, private_key(key)?)
                    .map_err(|e| unusable("client certificate", cert, &e))?
            }
        };
        // Each connection has a new server process, which knows no earlier TLS session.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), mode: tls.mode })
    }

    /// Starts a connection to `host`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`TlsError::HostName`]: the certificate must name `host`, which is not a host name.
    pub fn connection(&self, host: &str) -> Result<ClientConnection, TlsError> {
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(_) if self.mode == SslMode::VerifyFull => {
                return Err(TlsError::HostName(host.to_owned()));
            }
            // Any address will do: it is neither sent nor checked.
            Err(_) => ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into()),
        };
        ClientConnection::new(Arc::clone(&self.config), name).map_err(|e| TlsError::handshake(&e))
    }
}

fn unusable(what: &'static str, path: &Path, found: &dyn ToString) -> TlsError {
    TlsError::Content { what, path: path.to_owned(), found: found.to_string() }
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text =
        fs::read(path).map_err(|cause| TlsError::Read { what, path: path.to_owned(), cause })?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|e| unusable(what, path, &e))?;
    match found.as_slice() {
        [] => Err(unusable(what, path, &"it holds no certificate in PEM")),
        _ => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const WHAT: &str = "private key";
    let failed = |cause| TlsError::Read { what: WHAT, path: path.to_owned(), cause };
    let text = fs::read(path).map_err(failed)?;
    let about = fs::metadata(path).map_err(failed)?;
    // Root's keys may be open to a group, as distributions have them.
    let open = if about.uid() == 0 { 0o037 } else { 0o077 };
    if about.is_file() && about.mode() & open != 0 {
        let mode = about.mode() & 0o7777;
        return Err(TlsError::KeyPermissions { path: path.to_owned(), mode });
    }
    PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_| unusable(WHAT, path, &"it holds no key in PEM that is not encrypted"))
}

fn roots_of(path: &Path) -> Result<Roots, TlsError> {
    const WHAT: &str = "root certificate";
    let certificates = certificates(path, WHAT)?;
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        store.add(certificate.clone()).map_err(|e| unusable(WHAT, path, &e))?;
    }
    Ok(Roots { store, certificates })
}

fn system_roots() -> Result<Roots, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(TlsError::NoSystemRoots(found.errors.first().map(ToString::to_string)));
    }
    Ok(Roots { store, certificates: Vec::new() })
}
