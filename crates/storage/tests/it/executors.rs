//! Plans of stacks on executors that change nothing: dry runs print the steps that are executed. No
//! root.
use std::path::Path;

use crate::common::stacks::{image, on};
use pgdyno_exec::executor::{DryRun, Recording};
use pgdyno_exec::{Step, StepError, execute_all, take_down};
use pgdyno_model::storage::{Backing, DeviceSettings, EmulatedDisk, Hook, Limit, Raid0, Storage};
use pgdyno_model::units::Bytes;
use pgdyno_storage::{Stack, Wipe};

const GIB: Bytes = Bytes(1 << 30);

fn loop_file() -> Backing {
    Backing::Loop(image(GIB))
}

fn stack(
    backing: Backing,
    filesystem: &str,
    device: DeviceSettings,
    limit: Option<Limit>,
) -> Stack {
    let storage = Storage { device, limit, ..on(backing, filesystem) };
    let place = Path::new("/var/lib/pgdyno");
    Stack::design("disk", &storage, place, "pgdyno-1a2b3c4d", &Wipe::default()).unwrap()
}

/// One stack of each kind: image, striped, pool, memory, emulated, named device with settings.
fn stacks() -> Vec<Stack> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let hook = Hook {
        set: words("hook set"),
        read_back: words("hook read"),
        expect: None,
        restore: words("hook restore"),
    };
    let settings = DeviceSettings {
        scheduler: Some("none".into()),
        write_cache: Some(false),
        trim: true,
        hook: Some(hook),
        ..DeviceSettings::default()
    };
    let limit = Limit { write_iops: Some(120), ..Limit::default() };
    let none = DeviceSettings::default;
    let raid = Raid0 { members: vec![loop_file(), loop_file()], by: None, chunk: None };
    let disk = EmulatedDisk { size: GIB, ..EmulatedDisk::default() };
    let parameters = [("zfs_arc_max".to_owned(), "1073741824".to_owned())].into();
    let tuned =
        DeviceSettings { module_parameters: [("zfs".to_owned(), parameters)].into(), ..none() };
    vec![
        stack(loop_file(), "zfs", tuned, None),
        stack(loop_file(), "ext4", none(), None),
        stack(Backing::Raid0(raid.clone()), "xfs", none(), None),
        stack(Backing::Raid0(raid), "zfs", none(), None),
        stack(Backing::Ram(GIB), "btrfs", none(), None),
        stack(Backing::Emulated(disk), "ext4", none(), None),
        stack(Backing::Device("/dev/nvme1n1".into()), "f2fs", settings, Some(limit)),
    ]
}

#[test]
fn a_dry_run_prints_the_very_steps_that_an_executor_is_given() {
    for stack in stacks() {
        let (mut printed, mut recorded) = (DryRun::default(), Recording::default());
        execute_all(&mut printed, &stack.steps()).unwrap();
        execute_all(&mut recorded, &stack.steps()).unwrap();
        assert!(take_down(&mut printed, &stack.take_down_steps()).is_empty());
        assert!(take_down(&mut recorded, &stack.take_down_steps()).is_empty());
        let steps: String = recorded.steps().iter().map(|step| format!("{step}\n")).collect();
        assert_eq!(printed.text(), steps);
    }
}

#[test]
fn a_step_that_fails_is_the_last_one_and_all_of_the_taking_down_follows() {
    for stack in stacks() {
        for at in 0..stack.steps().len() {
            let mut recorded = Recording::failing_at(at);
            let error = execute_all(&mut recorded, &stack.steps()).unwrap_err();
            assert!(matches!(error, StepError::Interrupted));
            assert_eq!(recorded.steps(), &stack.steps()[..=at]);
            let _ = take_down(&mut recorded, &stack.take_down_steps());
            assert_eq!(recorded.steps()[at + 1..], stack.take_down_steps());
        }
    }
}

#[test]
fn a_failed_unmount_ends_the_taking_down_and_a_failed_setting_does_not() {
    for stack in stacks() {
        let steps = stack.take_down_steps();
        for (at, step) in steps.iter().enumerate() {
            let mut recorded = Recording::failing_at(at);
            let left = take_down(&mut recorded, &stack.take_down_steps());
            let goes_on = match step {
                Step::Undo(undo) => undo.may_fail(),
                _ => true,
            };
            assert_eq!(recorded.steps().len() == steps.len(), goes_on || at + 1 == steps.len());
            let is_noted = !matches!(step, Step::Undo(undo) if undo.may_fail());
            assert_eq!(left.len(), usize::from(is_noted), "{step}: {left:?}");
        }
    }
}

#[test]
fn whatever_is_made_beyond_directories_is_journalled_with_the_steps_that_undo_it() {
    for stack in stacks() {
        let journalled = stack.undo();
        let undone = |step: &Step| match step {
            Step::Undo(undo) => journalled.contains(undo),
            _ => true,
        };
        assert!(stack.take_down_steps().iter().all(undone));
        let first = stack.steps().into_iter().next().unwrap();
        assert!(matches!(first, Step::MakeMarked { .. }), "nothing is made before the journal");
        let text = serde_json::to_string(&journalled).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<pgdyno_exec::undo::Undo>>(&text).unwrap(),
            journalled
        );
    }
}
