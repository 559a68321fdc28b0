//! Listens, serves connections within bounds, and ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::digest::DigestCache;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pgdyno_store::SideFileError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::access::{Access, AccessOptions};
use crate::app::App;
use crate::base_path::BasePath;
use crate::live::ended;
use crate::stores::Stores;
use crate::{ServeError, digest, routes};

/// Most connections at once; others wait to be accepted (count). A browser has six.
const CONNECTIONS_MOST: usize = 256;

/// Time that a client has to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Time after which a client that takes nothing of an answer is given up (milliseconds).
const TAKEN_WITHIN_MS: u32 = 30_000;

/// Most bytes of a request's head.
const HEAD_MOST: usize = 32 << 10;

/// Threads that read the store (count).
const READERS: usize = 8;

/// Between two looks at the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time that requests in progress have once the server ends.
const END_WITHIN: Duration = Duration::from_millis(500);

/// Options of the server: store, address, access.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store.
    pub store: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Who may ask.
    pub access: AccessOptions,
    /// Whether visitors may ask a run to stop.
    pub allow_control: bool,
    /// Path under which a proxy offers this server; empty without one.
    pub base_path: BasePath,
}

/// A server that listens.
#[derive(Debug)]
pub struct Ready {
    /// The address for a browser; with the token, where one is needed.
    pub url: String,
    /// Why digests of runs are kept in memory only, if they are.
    pub cache: Option<SideFileError>,
}

/// Serves a store until `stop` is set. Calls `on_ready` once it listens.
///
/// # Errors
/// [`ServeError`]: the store cannot be opened, the address cannot be listened on, or the token
/// cannot be used. Nothing was served then.
pub fn serve(
    options: &Options,
    stop: &AtomicBool,
    on_ready: impl FnOnce(Ready),
) -> Result<(), ServeError> {
    // What cannot be opened is told before anything listens.
    pgdyno_provision::stores::open_store_for_reading(&options.store)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(READERS)
        .thread_name("web")
        .enable_io()
        .enable_time()
        .build()
        .map_err(ServeError::Threads)?;
    let result = runtime.block_on(listen(options, stop, on_ready));
    // A request that still reads the store is not waited for: it writes nothing.
    runtime.shutdown_background();
    result
}

async fn listen(
    options: &Options,
    stop: &AtomicBool,
    on_ready: impl FnOnce(Ready),
) -> Result<(), ServeError> {
    let failed = |source| ServeError::Listen { address: options.listen, source };
    let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let base = &options.base_path;
    let access = Access::new(&options.access, address, base)?;
    let (cache, reason) = DigestCache::open(&options.store);
    let stores = Stores::new(options.store.clone());
    let app = Arc::new(App::new(stores, cache, options.allow_control, base));
    let filler = Arc::clone(&app);
    let filling = std::thread::Builder::new()
        .name("digests".to_owned())
        .spawn(move || digest::fill::fill(&filler))
        .map_err(ServeError::Threads)?;
    on_ready(Ready { url: url(address, base, access.token()), cache: reason });
    let router = routes::router(Arc::clone(&app), Arc::new(access));
    let places = accept(&listener, router, base, || app.ending(), stop).await;
    app.end();
    let all = u32::try_from(CONNECTIONS_MOST).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(END_WITHIN, places.acquire_many(all)).await;
    // It ends by itself, after the run that it analyses: nothing waits for it.
    drop(filling);
    Ok(())
}

/// Accepts connections until `stop` is set. Returns the places of connections; each that is taken
/// serves one, until that ends or the channel that `ending` returns says so.
pub(crate) async fn accept(
    listener: &TcpListener,
    router: Router,
    base: &BasePath,
    ending: impl Fn() -> watch::Receiver<bool>,
    stop: &AtomicBool,
) -> Arc<Semaphore> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MOST));
    let mut looks = tokio::time::interval(LOOK_EVERY);
    while !stop.load(Ordering::Relaxed) {
        tokio::select! {
            _ = looks.tick() => {}
            (place, stream) = next(listener, &places) => {
                let (Some(place), Some(stream)) = (place, stream) else { continue };
                let (router, base, ending) = (router.clone(), base.clone(), ending());
                tokio::spawn(async move {
                    connection(stream, router, base, ending).await;
                    drop(place);
                });
            }
        }
    }
    places
}

/// Waits for a free place, then for a connection.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (Option<tokio::sync::OwnedSemaphorePermit>, Option<TcpStream>) {
    let place = Arc::clone(places).acquire_owned().await.ok();
    match listener.accept().await {
        Ok((stream, _)) => (place, Some(stream)),
        Err(_) => {
            // Mostly that no file descriptor is free: a loop without a pause would keep it so.
            tokio::time::sleep(LOOK_EVERY).await;
            (place, None)
        }
    }
}

/// Serves one connection. A slow or broken one ends here and costs nobody else anything.
async fn connection(
    stream: TcpStream,
    router: Router,
    base: BasePath,
    mut ending: watch::Receiver<bool>,
) {
    // Small responses are sent at once; where that cannot be set they are merely later.
    let _ = stream.set_nodelay(true);
    // Else whoever stops reading keeps a place for good.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TAKEN_WITHIN_MS);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_MOST);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        base.take_off(request.uri_mut());
        router.call(request)
    });
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        // An error is the client's: it went away, or it does not speak HTTP.
        _ = serving.as_mut() => {}
        () = ended(&mut ending) => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}

/// Returns the address for a browser.
fn url(address: SocketAddr, base: &BasePath, token: Option<&str>) -> String {
    let host = match address.ip() {
        // Nobody can visit "any address": the visitor puts the machine's name there.
        ip if ip.is_unspecified() => "localhost".to_owned(),
        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    let query = token.map_or_else(String::new, |token| format!("?token={token}"));
    format!("http://{host}:{}{base}/{query}", address.port())
}
