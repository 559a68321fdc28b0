//! Children of a table's rows: which row of another table a row belongs to.

use std::sync::Arc;

use super::row_random::RowRandom;

/// Most children of a parent (count).
pub const MOST_CHILDREN: u32 = 100;

/// Orders in which the counts of a block of parents are drawn (count).
const ORDERS: u64 = 64;

/// Families of a table: each of its rows, a parent, has `least` to `most` rows of another table.
///
/// Of as many parents in a row as there are such numbers, each number comes once, in one of 64
/// drawn orders. So the number of all children hardly depends on what is drawn, and a child's
/// parent is known without a look at any other row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Families {
    /// Table of the parents.
    pub parents: String,
    /// Least children of a parent (count).
    pub least: u32,
    /// Most children of a parent, at most [`MOST_CHILDREN`] (count).
    pub most: u32,
}

impl Families {
    /// Returns the children of the first `parents` rows (count), as `seed` draws them.
    pub fn children(&self, seed: u64, parents: u64) -> u64 {
        let drawn = DrawnFamilies::new(self, seed);
        let blocks = parents / drawn.parents;
        let rest = blocks * drawn.parents + 1..=parents;
        blocks * drawn.children + rest.map(|parent| drawn.count(parent)).sum::<u64>()
    }

    /// Parents that `children` rows have at most (count).
    pub(super) fn most_parents(&self, children: u64) -> u64 {
        let of_block = u64::from(self.most - self.least + 1);
        let children_of_block = of_block * u64::from(self.least + self.most) / 2;
        (children / children_of_block.max(1) + 1).saturating_mul(of_block)
    }
}

/// Families with their orders drawn.
#[derive(Clone, Debug)]
pub(super) struct DrawnFamilies {
    draw: RowRandom,
    /// Parents of a block (count).
    parents: u64,
    /// Children of a block (count).
    children: u64,
    orders: Arc<[Order]>,
}

/// Order of the counts in a block.
#[derive(Debug, Default)]
struct Order {
    /// Children of each parent (count).
    counts: Vec<u32>,
    /// Place of each child's parent in the block, from 0, and the child's own among its siblings,
    /// from 1.
    places: Vec<(u32, u32)>,
}

impl Order {
    fn new(mut counts: Vec<u32>, draw: RowRandom, number: u64) -> Self {
        // Fisher and Yates.
        for last in (1..counts.len()).rev() {
            let other = draw.below_or_at_of(number, last as u64, last as u64);
            counts.swap(last, usize::try_from(other).unwrap_or(last));
        }
        let of_parent = |(parent, count): (u32, &u32)| (1..=*count).map(move |n| (parent, n));
        let places = (0..).zip(&counts).flat_map(of_parent).collect();
        Self { counts, places }
    }
}

impl DrawnFamilies {
    pub(super) fn new(families: &Families, seed: u64) -> Self {
        let Families { parents, least, most } = families;
        let draw = RowRandom::new(seed, parents, "\0children");
        let counts: Vec<u32> = (*least..=*most).collect();
        let order = |number| Order::new(counts.clone(), draw, number);
        Self {
            draw,
            parents: counts.len() as u64,
            children: counts.iter().map(|count| u64::from(*count)).sum::<u64>().max(1),
            orders: (0..ORDERS).map(order).collect(),
        }
    }

    /// Returns the order of the `block`-th block, from 0.
    #[inline]
    fn order(&self, block: u64) -> &Order {
        &self.orders[(self.draw.bits(block, u64::MAX) % ORDERS) as usize]
    }

    /// Returns the children of row `parent` (count).
    #[inline]
    pub(super) fn count(&self, parent: u64) -> u64 {
        let (block, place) = ((parent - 1) / self.parents, (parent - 1) % self.parents);
        self.order(block).counts[place as usize].into()
    }

    /// Returns the parent of row `child`, and its number among the siblings, from 1.
    #[inline]
    pub(super) fn parent(&self, child: u64) -> (u64, u64) {
        let (block, place) = ((child - 1) / self.children, (child - 1) % self.children);
        let (parent, number) = self.order(block).places[place as usize];
        (block * self.parents + u64::from(parent) + 1, number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_child_has_its_parent_and_its_place_in_turn() {
        for (least, most) in [(5, 15), (0, 3), (1, 1), (7, 100)] {
            let families = Families { parents: "orders".into(), least, most };
            let drawn = DrawnFamilies::new(&families, 7);
            let mut child = 0;
            for parent in 1..=2000 {
                let count = drawn.count(parent);
                assert!((least.into()..=most.into()).contains(&count), "{count}");
                for number in 1..=count {
                    child += 1;
                    assert_eq!(drawn.parent(child), (parent, number));
                }
                if parent % 97 == 0 {
                    assert_eq!(families.children(7, parent), child);
                    assert!(families.most_parents(child) >= parent || least == 0);
                }
            }
        }
    }

    #[test]
    fn orders_differ_from_block_to_block_and_by_seed() {
        let families = Families { parents: "orders".into(), least: 5, most: 15 };
        let of = |seed| {
            let drawn = DrawnFamilies::new(&families, seed);
            (1..=1100).map(|parent| drawn.count(parent)).collect::<Vec<_>>()
        };
        let counts = of(1);
        assert_ne!(counts, of(2));
        let first = &counts[..11];
        let alike = counts.chunks(11).filter(|block| *block == first).count();
        assert!(alike < 10, "{alike} of 100 blocks are as the first");
    }
}
