//! Another device under the name that the user gave, or under the number of the one that was looked
//! at, at every moment between the first look and the last step: it keeps what it holds.
use std::fs::{self, File};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::disks::{Disk, can, run};
use crate::common::{self, Place, RUN};
use pgdyno_exec::device::refusal::{Refusal, SafetyError};
use pgdyno_exec::device::safety;
use pgdyno_exec::{ExecContext, Executor as _, Step, StepError};
use pgdyno_model::storage::Backing;
use pgdyno_storage::{Stack, Wipe};
use pgdyno_test_support::{needs, write_program};
use rustix::fs::OFlags;

const SIZE: u64 = 24 << 20;

/// A device that may be overwritten, one that must not, and the name that leads to the first until
/// it is swapped.
struct Scene {
    place: Place,
    link: PathBuf,
    given: Disk,
    precious: Disk,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        let given = Disk::of_its_own_number(SIZE, &place, "given");
        let precious = Disk::of_size(SIZE, &place, "precious", &[]);
        // No signature that a program would shy away from, but contents.
        fs::write(&precious.device, vec![0xa5; usize::try_from(SIZE).unwrap()]).unwrap();
        let link = place.path().join("by-id");
        symlink(&given.device, &link).unwrap();
        Self { place, link, given, precious }
    }

    /// ext4, which asks nobody, on what the name leads to now.
    fn plan(&self) -> Stack {
        let wipe = Wipe { devices: vec![self.link.clone()], overwrite_signature: true };
        let storage = common::stacks::on(Backing::Device(self.link.clone()), "ext4");
        common::stacks::plan(&storage, self.place.path(), &wipe).unwrap()
    }

    fn swap(&self) {
        let new = self.place.path().join("by-id.new");
        symlink(&self.precious.device, &new).unwrap();
        fs::rename(new, &self.link).unwrap();
    }

    fn perform(&self, step: &Step) -> Result<(), StepError> {
        let mut context =
            ExecContext { journal: &self.place.journal, stop: &RUN, made: Vec::new() };
        context.execute(step).map(drop)
    }

    /// Performs `steps` until one is refused.
    fn perform_all<'a>(&self, steps: impl IntoIterator<Item = &'a Step>) -> Result<(), StepError> {
        steps.into_iter().try_for_each(|step| self.perform(step))
    }

    /// Takes `stack` down as pgdyno does it.
    fn take_down(&self, stack: &Stack) {
        for step in own(stack.take_down_steps()) {
            let _ = self.perform(&step);
        }
    }

    /// That the precious device holds the same after `act`.
    fn assert_kept(&self, moment: &str, act: impl FnOnce()) {
        rustix::fs::sync();
        let before = fs::read(&self.precious.image).unwrap();
        act();
        rustix::fs::sync();
        assert!(
            fs::read(&self.precious.image).unwrap() == before,
            "the other device was written to {moment}"
        );
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(self.place.path().to_str().unwrap())
    }
}

/// Those of `steps` that a test can take by itself: stacks themselves remove and put back.
fn own(steps: Vec<Step>) -> Vec<Step> {
    steps
        .into_iter()
        .filter(|s| !matches!(s, Step::RemoveMarked { .. } | Step::PutBack(_)))
        .collect()
}

fn is_changed(error: &StepError) -> bool {
    matches!(error, StepError::Safety(SafetyError { found: Refusal::Changed { .. }, .. }))
}

#[test]
fn a_name_that_leads_to_another_device_before_any_step_costs_that_device_nothing() {
    needs!(can);
    let mut made = 0;
    let mut at = 0;
    loop {
        let scene = Scene::new();
        let stack = scene.plan();
        let steps = own(stack.steps());
        let all: Vec<Step> = steps.iter().cloned().chain(own(stack.take_down_steps())).collect();
        scene.assert_kept(&format!("before step {at} of {}", all.len()), || {
            scene.perform_all(&all[..at]).unwrap();
            scene.swap();
            made += usize::from(
                scene.perform_all(all.get(at..steps.len()).unwrap_or_default()).is_ok(),
            );
            scene.take_down(&stack);
        });
        assert!(!scene.is_mounted());
        at += 1;
        if at > all.len() {
            break;
        }
    }
    // After the last look the device that was looked at is made, whatever the name leads to.
    assert!(made > 2, "{made}");
}

/// Each program of `steps` in place of which a script first does `deed`.
fn with_programs_that(deed: &str, scene: &Scene, steps: Vec<Step>) -> Vec<Step> {
    let wrapped = |step: Step| match step {
        Step::Run { program, args, as_account, output } => {
            let script = scene.place.path().join(format!("{}.sh", program.display()));
            // A child of another test may have the device open until it is executed.
            let run = format!("{} \"$@\"", program.display());
            let text = format!("#!/bin/sh\n{deed}\n{run} || {{ sleep 1; exec {run}; }}\n");
            write_program(&script, &text);
            Step::Run { program: script, args, as_account, output }
        }
        other => other,
    };
    let held = |step: Step| match step {
        Step::Holding { devices, step } => {
            Step::Holding { devices, step: Box::new(wrapped(*step)) }
        }
        other => wrapped(other),
    };
    steps.into_iter().map(held).collect()
}

#[test]
fn a_name_that_is_swapped_while_a_program_begins_costs_the_other_device_nothing() {
    needs!(can);
    let scene = Scene::new();
    let stack = scene.plan();
    let deed = format!("ln -sfn {} {}", scene.precious.path(), scene.link.display());
    let steps = with_programs_that(&deed, &scene, own(stack.steps()));
    scene.assert_kept("within a step", || {
        scene.perform_all(&steps).unwrap();
        assert_eq!(fs::read_link(&scene.link).unwrap(), scene.precious.device);
        assert!(scene.is_mounted());
        scene.take_down(&stack);
    });
    assert_eq!(run("wipefs", &["--noheadings", scene.given.path()]), "");
}

#[test]
fn a_number_is_given_to_no_other_disk_while_a_program_writes() {
    needs!(can);
    let scene = Scene::new();
    let stack = scene.plan();
    // As when a drive is pulled and another one plugged in.
    let (device, other) = (scene.given.path(), scene.precious.image.display());
    let told = scene.place.path().join("told");
    let deed = format!("losetup -d {device}; losetup {device} {other} 2>>{}", told.display());
    let steps = with_programs_that(&deed, &scene, own(stack.steps()));
    scene.assert_kept("within a step", || {
        let _ = scene.perform_all(&steps);
        scene.take_down(&stack);
    });
    assert!(fs::read_to_string(&told).unwrap().contains("busy"));
}

#[test]
fn a_number_that_passed_to_another_disk_between_two_steps_is_refused() {
    needs!(can);
    let place = Scene::new();
    let count = own(place.plan().steps()).len();
    drop(place);
    let mut refused = 0;
    for at in 0..count {
        let scene = Scene::new();
        let stack = scene.plan();
        let steps = own(stack.steps());
        scene.perform_all(&steps[..at]).unwrap();
        scene.given.change_for(&scene.precious);
        scene.assert_kept(&format!("before step {at}"), || {
            let error = scene.perform_all(&steps[at..]).unwrap_err();
            assert!(is_changed(&error), "before step {at}: {error}");
            refused += 1;
            scene.take_down(&stack);
        });
    }
    assert_eq!(refused, count);
}

#[test]
fn a_twin_with_the_same_label_is_left_alone_at_the_end() {
    needs!(can);
    let scene = Scene::new();
    let stack = scene.plan();
    run("mkfs.ext4", &["-q", "-L", &stack.label(), scene.precious.path()]);
    scene.perform_all(&own(stack.steps())).unwrap();
    scene.swap();
    scene.assert_kept("at the end", || scene.take_down(&stack));
    assert_eq!(run("wipefs", &["--noheadings", scene.given.path()]), "");
}

#[test]
fn a_device_that_somebody_looks_at_as_it_is_given_back_is_wiped_all_the_same() {
    needs!(can);
    let scene = Scene::new();
    let stack = scene.plan();
    scene.perform_all(&own(stack.steps())).unwrap();
    let excl = OFlags::EXCL.bits().cast_signed();
    let open = || File::options().read(true).custom_flags(excl).open(&scene.given.device).ok();
    let mut looked = None;
    for step in own(stack.take_down_steps()) {
        scene.perform(&step).unwrap();
        // As soon as it is not mounted, for longer than a look in passing takes.
        looked = looked.or_else(|| {
            let file = open()?;
            Some(std::thread::spawn(|| {
                std::thread::sleep(Duration::from_secs(1));
                drop(file);
            }))
        });
    }
    looked.unwrap().join().unwrap();
    assert_eq!(run("wipefs", &["--noheadings", scene.given.path()]), "");
}

#[test]
fn a_name_that_another_account_can_lead_elsewhere_is_refused() {
    needs!(can);
    const NOBODY: u32 = 65_534;
    let scene = Scene::new();
    let theirs = scene.place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let link = theirs.join("disk");
    symlink(&scene.given.device, &link).unwrap();
    let check = |path: &Path| {
        safety::check(path, &Wipe { devices: vec![path.to_owned()], overwrite_signature: true })
    };
    check(&link).unwrap();
    std::os::unix::fs::chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    // It is theirs to say where it leads, and they do so.
    let swapped = format!("ln -sfn {} {}", scene.precious.path(), link.display());
    let status = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", &swapped])
        .status();
    assert!(status.unwrap().success());
    scene.assert_kept("through a name of another account", || {
        let error = check(&link).unwrap_err();
        assert!(matches!(error.found, Refusal::Untrusted(_)), "{error}");
        let behind = scene.place.path().join("behind");
        symlink(&link, &behind).unwrap();
        assert!(matches!(check(&behind).unwrap_err().found, Refusal::Untrusted(_)));
    });
}
