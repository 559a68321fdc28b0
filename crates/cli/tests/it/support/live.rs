//! Runs at work, by their live files.

use pgdyno_lab::live::{self, Follower, LiveSummary};
use pgdyno_model::progress::Event;

use super::World;

/// Waits until a run has a live file.
pub fn live_run(world: &World) -> LiveSummary {
    let mut found = None;
    world.until("a run to be live", || {
        found = live::runs(&world.store()).unwrap().into_iter().find(|run| run.is_alive);
        found.is_some()
    });
    found.unwrap()
}

/// Waits for a second of load.
pub fn until_load(world: &World, follower: &mut Follower) {
    until_load_of(world, follower, 0);
}

/// Waits for a second of load of the trial at place `ordinal`, or of a later one.
pub fn until_load_of(world: &World, follower: &mut Follower, ordinal: u32) {
    let mut trial = 0;
    world.until("load", || {
        let mut has_second = false;
        for event in follower.poll().unwrap() {
            match event {
                Event::Trial { planned, .. } => trial = planned.ordinal,
                Event::Load(_) => has_second |= trial >= ordinal,
                _ => {}
            }
        }
        has_second
    });
}
