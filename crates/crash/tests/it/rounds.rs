//! Catches a server that acknowledges before it writes: a proxy plays that server.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgdyno_crash::{Interference, Through, crash};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_model::Verdict;
use pgdyno_model::crash::Failing;
use pgdyno_model::progress::Silent;
use pgdyno_model::target::{Address, Target};
use pgdyno_test_support::install;

use super::{home, remove_kept, resolved};

/// Time that the proxy holds a COMMIT which it has acknowledged: longer than any fault of this
/// test.
const LATE: Duration = Duration::from_secs(20);
/// Number of COMMITs that the proxy sends on at once, so that the load gets going.
const PROMPT: u32 = 16;

/// A Unix socket behind which COMMITs are acknowledged at once and sent on later.
struct HastyServer {
    directory: tempfile::TempDir,
    /// The real server's socket.
    upstream: Arc<Mutex<PathBuf>>,
}

impl HastyServer {
    fn listen() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let upstream: Arc<Mutex<PathBuf>> = Arc::default();
        let real = Arc::clone(&upstream);
        let commits: Arc<AtomicU32> = Arc::default();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let server = UnixStream::connect(&*real.lock().unwrap());
                if let (Ok(client), Ok(server)) = (client, server) {
                    serve(client, server, Arc::clone(&commits));
                }
            }
        });
        Self { directory, upstream }
    }

    fn through(&self) -> Through {
        let (upstream, directory) = (Arc::clone(&self.upstream), self.directory.path().to_owned());
        Arc::new(move |target: &Target| {
            let Address::Unix { directory: real, port } = &target.address else {
                panic!("{target:?}")
            };
            *upstream.lock().unwrap() = real.join(format!(".s.PGSQL.{port}"));
            Target {
                address: Address::Unix { directory: directory.clone(), port: 5432 },
                ..target.clone()
            }
        })
    }
}

/// Carries the messages of one connection.
fn serve(client: UnixStream, server: UnixStream, commits: Arc<AtomicU32>) {
    let swallow = Arc::new(AtomicU32::new(0));
    let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
    let (mut from_server, mut to_server) = (server.try_clone().unwrap(), server);
    let (mut fake, swallowed) = (to_client.try_clone().unwrap(), Arc::clone(&swallow));
    std::thread::spawn(move || {
        let mut head = [0; 4];
        let mut startup = true;
        loop {
            // The start-up message has no tag.
            let mut message = Vec::new();
            if !startup {
                message.resize(1, 0);
                if from_client.read_exact(&mut message).is_err() {
                    break;
                }
            }
            if from_client.read_exact(&mut head).is_err() {
                break;
            }
            message.extend(head);
            let mut body = vec![0; u32::from_be_bytes(head) as usize - 4];
            if from_client.read_exact(&mut body).is_err() {
                break;
            }
            message.extend(&body);
            if !startup && message[0] == b'Q' && body.starts_with(b"END") {
                swallow.fetch_add(1, Ordering::SeqCst);
                if fake.write_all(b"C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I").is_err() {
                    break;
                }
                if commits.fetch_add(1, Ordering::SeqCst) >= PROMPT {
                    std::thread::sleep(LATE);
                }
            }
            startup = false;
            if to_server.write_all(&message).is_err() {
                break;
            }
        }
        let _ = to_server.shutdown(std::net::Shutdown::Both);
    });
    std::thread::spawn(move || {
        let mut head = [0; 5];
        while from_server.read_exact(&mut head).is_ok() {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
            let mut message = head.to_vec();
            message.resize(5 + length, 0);
            if from_server.read_exact(&mut message[5..]).is_err() {
                break;
            }
            // The answer that the client has had: all of it, up to its ReadyForQuery.
            let is_end = head[0] == b'C' && message[5..].starts_with(b"COMMIT");
            if is_end {
                let mut ready = [0; 6];
                if from_server.read_exact(&mut ready).is_err() {
                    break;
                }
                assert!(swallowed.fetch_sub(1, Ordering::SeqCst) > 0);
                continue;
            }
            if to_client.write_all(&message).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
}

fn hasty_session(disk: &Path) -> ResolvedExperiment {
    let text = format!(
        "[experiment]\nrepeats = 1\n[postgres]\nbindir = {:?}\n[crash]\nfaults = [\"process\"]\n\
         rounds = 1\nclients = 8\nload = \"500ms\"\ncontrols = false\n",
        install(None).bindir
    );
    resolved(disk, &text)
}

#[test]
#[ignore = "long: two sessions of crash rounds"]
fn a_server_that_acknowledges_before_it_writes_fails() {
    let (home, disk) = home();
    let hasty = HastyServer::listen();
    let store = home.path().join("store.sqlite3");
    let stop = AtomicBool::new(false);
    let through = Interference { through: Some(hasty.through()), after_recovery: None };
    let record = crash(&hasty_session(&disk), through, &store, &Silent, &stop).unwrap();
    assert_eq!(record.outcome.verdict, Verdict::Fail(Failing::Lost), "{}", record.outcome.reason);
    let round = &record.outcome.faults[0].rounds[0];
    assert!(round.lost > 0 && round.lost <= 8, "one a client at most: {}", round.lost);
    remove_kept(&record);
    // The same load straight to the server loses nothing.
    let record =
        crash(&hasty_session(&disk), Interference::default(), &store, &Silent, &stop).unwrap();
    assert_eq!(record.outcome.faults[0].verdict, Verdict::Pass, "{}", record.outcome.reason);
    // A control would take the commits that the proxy lets through at once.
    assert_eq!(record.outcome.verdict, Verdict::Invalid, "{}", record.outcome.reason);
}
