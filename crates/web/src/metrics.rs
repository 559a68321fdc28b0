//! The figures of one run for Prometheus: `pgdyno run --metrics`.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::base_path::BasePath;
use crate::server::accept;

/// Serves what `figures` returns at `/metrics` of `address` until the process ends, as text of type
/// `kind`. Returns the address that it listens on.
///
/// # Errors
/// The address cannot be listened on, or no thread can be made.
pub fn serve_metrics(
    address: SocketAddr,
    kind: &'static str,
    figures: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let answer = move || async move {
        ([(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff")], figures())
    };
    let router = Router::new().route("/metrics", get(answer));
    let serve = async move {
        // Nothing ends it before its process.
        let (_ends, ending) = watch::channel(false);
        let listener = TcpListener::from_std(listener)?;
        accept(&listener, router, &BasePath::default(), || ending.clone(), &AtomicBool::new(false))
            .await;
        Ok::<(), io::Error>(())
    };
    std::thread::Builder::new().name("metrics".into()).spawn(move || runtime.block_on(serve))?;
    Ok(bound)
}
