//! Downloads an archive, within limits.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_exec::random::hex;
use pgdyno_model::units::Bytes;
use sha2::{Digest, Sha256};
use ureq::tls::{Certificate, TlsConfig};

use super::error::{FetchError, io_error};

/// The progress of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchProgress {
    /// The archive is being downloaded.
    Downloading {
        /// Bytes received.
        done: u64,
        /// Bytes of the archive, if the repository says.
        total: Option<u64>,
    },
    /// The archive is verified and being unpacked.
    Unpacking,
}

/// The most bytes of an archive.
const LARGEST_ARCHIVE: Bytes = Bytes(128 << 20);
/// The time limit of a download.
const LONGEST_DOWNLOAD: Duration = Duration::from_secs(30 * 60);

/// Returns settings of TLS: rustls with ring and the system's root certificates, as for servers.
fn tls(url: &str) -> Result<TlsConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> =
        found.certs.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    // A mirror may use http://.
    if roots.is_empty() && url.starts_with("https://") {
        let why = found.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
        return Err(format!(
            "the system has no root certificates{why}; install ca-certificates, or name a file \
             of them in SSL_CERT_FILE"
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .root_certs(roots.into())
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

/// Downloads `url` to the new file `part` and returns its SHA-256.
pub(super) fn download(
    url: &str,
    part: &Path,
    stop: &AtomicBool,
    progress: &dyn Fn(FetchProgress),
) -> Result<String, FetchError> {
    let failed = |why: String| FetchError::Download { url: url.to_owned(), why };
    let agent = ureq::Agent::config_builder()
        .tls_config(tls(url).map_err(failed)?)
        .user_agent(concat!("pgdyno/", env!("CARGO_PKG_VERSION")))
        // The content is checked against a pinned SHA-256, so that a mirror may use http://.
        .https_only(!url.starts_with("http://"))
        .max_redirects(5)
        .timeout_global(Some(LONGEST_DOWNLOAD))
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .build()
        .new_agent();
    let response = agent.get(url).call().map_err(|error| match error {
        ureq::Error::Io(error) => failed(error.to_string()),
        error => failed(error.to_string()),
    })?;
    let total = response.body().content_length();
    let too_large =
        || failed(format!("it has more than {LARGEST_ARCHIVE}, the most that is taken"));
    if total.is_some_and(|total| total > LARGEST_ARCHIVE.0) {
        return Err(too_large());
    }
    let mut body = response.into_body().into_reader();
    let written = |e| io_error("write", part, e);
    let mut file = File::options().write(true).create_new(true).open(part).map_err(written)?;
    let mut hash = Sha256::new();
    let (mut done, mut buffer) = (0_u64, vec![0_u8; 64 << 10]);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(FetchError::Interrupted);
        }
        progress(FetchProgress::Downloading { done, total });
        let n = body
            .read(&mut buffer)
            .map_err(|e| failed(format!("it broke off after {done} bytes: {e}")))?;
        if n == 0 {
            break;
        }
        done += n as u64;
        if done > LARGEST_ARCHIVE.0 {
            return Err(too_large());
        }
        hash.update(&buffer[..n]);
        file.write_all(&buffer[..n]).map_err(written)?;
    }
    file.sync_all().map_err(written)?;
    Ok(hex(&hash.finalize()))
}
