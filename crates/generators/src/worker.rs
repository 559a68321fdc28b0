//! Orders that a worker may take, and when: a state machine without I/O.

use std::net::SocketAddr;

use crate::clock::Nanos;
use crate::protocol::{LoadDescription, Order};

/// One thing for a worker to do, after an order.
#[derive(Debug)]
pub enum WorkerAction {
    /// Answer an exchange of time stamps that began at this time of the coordinator's.
    ReplyTime(Nanos),
    /// Say from which address connections to this one come.
    ReplyRoute(SocketAddr),
    /// Connect the clients of a share.
    Prepare(Box<LoadDescription>),
    /// Begin the load at this time of the worker's.
    Start(Nanos),
    /// End the load.
    Stop,
}

/// An order that comes at a wrong time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an order to {order} came while the worker {state}")]
pub struct WrongOrder {
    order: &'static str,
    state: WorkerState,
}

/// State of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerState {
    /// Said hello.
    #[default]
    Idle,
    /// Connects its clients, or has connected all.
    Prepared,
    /// Runs the load, or will begin it at a known time.
    Going,
    /// Stopped.
    Stopped,
}

impl std::fmt::Display for WorkerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Idle => "waited for its share",
            Self::Prepared => "waited for the start",
            Self::Going => "ran the load",
            Self::Stopped => "was stopped",
        })
    }
}

impl WorkerState {
    /// Takes an order; returns the action that it asks for.
    pub fn take(&mut self, order: Order) -> Result<WorkerAction, WrongOrder> {
        let wrong = |order, state| WrongOrder { order, state };
        match (order, *self) {
            (Order::Time(sent), _) => Ok(WorkerAction::ReplyTime(sent)),
            (Order::Route(to), _) => Ok(WorkerAction::ReplyRoute(to)),
            (Order::Stop, _) => {
                *self = Self::Stopped;
                Ok(WorkerAction::Stop)
            }
            (Order::Prepare(load), Self::Idle) => {
                *self = Self::Prepared;
                Ok(WorkerAction::Prepare(load))
            }
            (Order::Go { at }, Self::Prepared) => {
                *self = Self::Going;
                Ok(WorkerAction::Start(at))
            }
            (Order::Prepare(_), state) => Err(wrong("connect", state)),
            (Order::Go { .. }, state) => Err(wrong("begin", state)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_begins_once_after_its_preparation() {
        let mut state = WorkerState::default();
        assert!(matches!(state.take(Order::Time(7)), Ok(WorkerAction::ReplyTime(7))));
        assert!(state.take(Order::Go { at: 1 }).is_err());
        state = WorkerState::Prepared;
        assert!(matches!(state.take(Order::Go { at: 1 }), Ok(WorkerAction::Start(1))));
        assert!(state.take(Order::Go { at: 2 }).is_err());
        assert!(matches!(state.take(Order::Stop), Ok(WorkerAction::Stop)));
        assert!(state.take(Order::Go { at: 3 }).is_err());
    }
}
