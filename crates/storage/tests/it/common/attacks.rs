//! Another account that attacks, and programs of pgdyno's that it attacks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

type Deed = Box<dyn FnOnce() -> bool + Send>;

/// A thread that runs as another account: what it does is what that account may do.
pub(crate) struct Attacker {
    deeds: Sender<Deed>,
    answers: Receiver<bool>,
}

impl Attacker {
    /// Starts it, with no groups but the account's own. Needs root.
    pub(crate) fn new(uid: u32, gid: u32) -> Self {
        let ((deeds, given), (answer, answers)) = (channel::<Deed>(), channel());
        std::thread::spawn(move || {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            // Of this thread alone, unlike the C library's functions of these names.
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            for deed in given {
                answer.send(deed()).unwrap();
            }
        });
        Self { deeds, answers }
    }

    /// Does `deed` and waits for its end; whether it succeeded.
    pub(crate) fn run(&self, deed: impl FnOnce() -> bool + Send + 'static) -> bool {
        self.deeds.send(Box::new(deed)).unwrap();
        self.answers.recv().unwrap()
    }

    /// Puts a symbolic link to `target` in place of `name`, which is kept beside it; whether it
    /// could.
    pub(crate) fn swap(&self, name: &Path, target: &Path) -> bool {
        let (name, target) = (name.to_owned(), target.to_owned());
        self.run(move || {
            fs::rename(&name, aside(&name)).and_then(|()| symlink(target, name)).is_ok()
        })
    }

    /// Puts what [`Attacker::swap`] took away back.
    pub(crate) fn swap_back(&self, name: &Path) -> bool {
        let name = name.to_owned();
        self.run(move || {
            fs::remove_file(&name).and_then(|()| fs::rename(aside(&name), name)).is_ok()
        })
    }
}

fn aside(name: &Path) -> PathBuf {
    let mut aside = name.as_os_str().to_owned();
    aside.push(".aside");
    aside.into()
}

/// This test binary started anew for the one test `name`, which is `#[ignore]`d and reads the
/// variables `given`.
pub(crate) fn victim(name: &str, given: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("RUST_BACKTRACE", "0");
    for (name, value) in given {
        command.env(name, value);
    }
    command
}
