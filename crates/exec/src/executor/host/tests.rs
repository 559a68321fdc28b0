use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_model::target::Secret;

use super::*;
use crate::executor::Executor;
use crate::journal::{Journal, MARKER};
use crate::tool::excerpt;

fn context<'a>(journal: &'a Journal, stop: &'a AtomicBool) -> ExecContext<'a> {
    ExecContext::new(journal, stop)
}

#[test]
fn a_dry_run_shows_words_as_a_shell_would_take_them() {
    let step = Step::Run {
        program: "/opt/a b/initdb".into(),
        args: vec!["-D".into(), "/x/it's".into(), "--locale=C".into(), "".into()],
        as_account: Some(Account { name: "postgres".into(), uid: 1, gid: 1 }),
        output: "/x/log".into(),
    };
    insta::assert_snapshot!(
        step,
        @r"run as postgres: '/opt/a b/initdb' -D '/x/it'\''s' --locale=C ''"
    );
}

#[test]
fn a_password_is_shown_by_neither_display_nor_debug() {
    let step = Step::WriteFile {
        path: "/x/pw".into(),
        contents: Contents::Password(Secret::new("hunter2".into())),
        mode: 0o600,
        owner: None,
    };
    assert!(!format!("{step} {step:?}").contains("hunter2"));
}

#[test]
fn a_marked_directory_is_journalled_and_never_an_existing_one() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(&dir.path().join("state")).unwrap();
    let stop = AtomicBool::new(false);
    let mut cx = context(&journal, &stop);
    let path = dir.path().join("made");
    let step = Step::MakeMarked {
        made: OwnedResource::Directory { path: path.clone() },
        mode: 0o711,
        owner: None,
    };
    cx.execute(&step).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o711);
    let marker: Entry = serde_json::from_slice(&fs::read(path.join(MARKER)).unwrap()).unwrap();
    assert_eq!(journal.entries().unwrap(), [marker]);
    let again = cx.execute(&step).unwrap_err();
    assert!(matches!(
        again,
        StepError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists
    ));
}

#[test]
fn a_failing_program_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let stop = AtomicBool::new(false);
    let step = Step::Run {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "echo one; echo two >&2; exit 3".into()],
        as_account: None,
        output: dir.path().join("log"),
    };
    let error = context(&journal, &stop).execute(&step).unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.contains("  one\n  two"), "{error}");
    let long: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    let told = excerpt(long.as_bytes());
    assert!(told.starts_with("  line 1\n") && told.ends_with("  line 100"), "{told}");
    assert!(told.contains("  line 5\n  … (80 lines)\n  line 86\n"), "{told}");
}

#[test]
fn a_stopped_run_leaves_no_process_of_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let stop = AtomicBool::new(false);
    let pid_file = dir.path().join("pid");
    let step = Step::Run {
        program: "/bin/sh".into(),
        args: vec![
            "-c".into(),
            format!("sleep 600 & echo $! > {}; wait", pid_file.display()).into(),
        ],
        as_account: None,
        output: dir.path().join("log"),
    };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| context(&journal, &stop).execute(&step));
        while !fs::read_to_string(&pid_file).is_ok_and(|t| t.ends_with('\n')) {
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(run.join().unwrap(), Err(StepError::Interrupted)));
    });
    let pid: i32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    if let Some(sleeper) = crate::process::Identity::from_pid(pid) {
        assert!(sleeper.wait_gone(Duration::from_secs(10)), "the grandchild lives on");
    }
}
