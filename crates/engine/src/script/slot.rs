//! Variables by number.

/// Index of a variable among the variables of its script or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// Returns the slot as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
