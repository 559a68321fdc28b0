//! Outcome of offering a line to a run under way.

/// Outcome of offering a line.
pub(super) enum Taken {
    /// The line was read as a part of the run.
    Read,
    /// The run has this line already: the line belongs to another run.
    Repeated,
    /// The line is none of the program's.
    Strange,
}

/// Puts a value where none was.
pub(super) fn once<T>(slot: &mut Option<T>, value: Option<T>) -> Taken {
    match (slot.is_some(), value) {
        (true, _) => Taken::Repeated,
        (false, None) => Taken::Strange,
        (false, value) => {
            *slot = value;
            Taken::Read
        }
    }
}
