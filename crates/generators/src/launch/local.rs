//! Workers on this machine, as processes beside this one.

use super::launched::{Launched, StartProgram, this_program};
use crate::error::Fault;

pub(super) fn launch(start: StartProgram) -> Result<Launched, Fault> {
    Launched::start(&[this_program()?.into(), "worker".into()], start)
}
