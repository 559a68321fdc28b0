//! Stacks that bear a pool of ZFS. Its daemon serves one test at a time.

use crate::common::Place;
use crate::common::disks::can;
use crate::common::stacks::striped;
use crate::storage::{assert_removed_after, assert_runs_on};
use crate::storage_safety::assert_bears_nothing;
use pgdyno_test_support::zfs::Daemon;
use pgdyno_test_support::{needs, test_name};

#[test]
fn postgresql_runs_on_zfs_and_nothing_is_left() {
    let _zfs = Daemon::new();
    assert_runs_on(test_name!(), &[("zfs", 2)]);
}

#[test]
fn a_process_killed_once_its_pool_is_made_leaves_nothing_that_the_next_does_not_remove() {
    let _zfs = Daemon::new();
    let place = Place::new();
    assert_removed_after(test_name!(), &place, &striped(place.path(), "zfs"), |left| left == 0);
}

#[test]
#[ignore = "long: a pool is made for each of its steps"]
fn a_process_killed_after_any_step_to_a_pool_leaves_nothing_that_the_next_does_not_remove() {
    let _zfs = Daemon::new();
    let place = Place::new();
    assert_removed_after(test_name!(), &place, &striped(place.path(), "zfs"), |_| true);
}

#[test]
fn a_named_device_that_was_a_pools_bears_nothing_afterwards() {
    needs!(can);
    let _zfs = Daemon::new();
    assert_bears_nothing(&["zfs"]);
}
