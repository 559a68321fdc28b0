//! Groups of a load's clients, and how clients are dealt to event loops.

use std::ops::Range;

use pgdyno_model::ClientGroup;
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::target::Servers;

use crate::spec::LoadSpec;

/// A group of a load's clients, and the servers that they connect to.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadGroup {
    /// The group.
    pub group: ClientGroup,
    /// Servers of its clients; none: those of the load.
    pub servers: Option<Servers>,
}

/// Clients of one group in one event loop: their numbers among the load's clients.
pub(crate) type Dealt = Range<u32>;

impl LoadSpec {
    /// Clients of each group (count); of all, where the load has no groups.
    fn group_sizes(&self) -> Vec<u32> {
        match &self.groups[..] {
            [] => vec![self.clients.get()],
            groups => groups.iter().map(|g| g.group.clients.get()).collect(),
        }
    }

    /// Returns the clients of each group for each event loop.
    ///
    /// Clients are numbered group by group. Every loop has as many clients of a group as any other,
    /// or one fewer, and as many in all.
    pub(crate) fn deal(&self) -> Vec<Vec<Dealt>> {
        let loops = self.event_loops();
        let mut dealt = vec![Vec::new(); loops as usize];
        let (mut first, mut turn) = (0, 0);
        for size in self.group_sizes() {
            let (each, more) = (size / loops, size % loops);
            for (number, clients) in (0..loops).zip(&mut dealt) {
                // Who has one client more goes round, from group to group.
                let has_more = (number + loops - turn) % loops < more;
                let next = first + each + u32::from(has_more);
                clients.push(first..next);
                first = next;
            }
            turn = (turn + more) % loops;
        }
        dealt
    }

    /// Returns the rate of each group, and how many times as much as in the event loop of `dealt`
    /// is due in all loops. None where nothing is due by a rate.
    pub(crate) fn rates(&self, dealt: &[Dealt]) -> Vec<Option<(&LoadRate, f64)>> {
        if self.groups.is_empty() {
            // As in pgbench, every thread has the same share, whatever its clients.
            let rate = self.options.rate.as_ref();
            return vec![rate.map(|rate| (rate, f64::from(self.event_loops())))];
        }
        let groups = self.groups.iter().zip(dealt).map(|(LoadGroup { group, .. }, here)| {
            let all = f64::from(group.clients.get());
            let rate = group.rate.as_ref().filter(|_| !here.is_empty())?;
            Some((rate, all / here.len() as f64))
        });
        groups.collect()
    }

    /// Whether transactions of any client are due by a rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.options.rate.is_some() || self.groups.iter().any(|g| g.group.rate.is_some())
    }

    /// Returns the name of each script's group.
    pub(crate) fn groups_of_scripts(&self) -> impl Iterator<Item = Option<&str>> {
        let groups = self.groups.iter().map(|g| &g.group);
        let named = groups.flat_map(|g| std::iter::repeat_n(Some(g.name.as_str()), g.scripts));
        named.chain(std::iter::repeat(None))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use pgdyno_model::target::{Address, Target};

    use super::*;

    fn load(sizes: &[u32], threads: u32) -> LoadSpec {
        let address = Address::Tcp { host: "nowhere".into(), port: 0 };
        let spec = LoadSpec::new(Target::new(address, "", ""), Vec::new());
        let count = |n| NonZeroU32::new(n).unwrap();
        let group = |size: &u32| LoadGroup {
            group: ClientGroup { clients: count(*size), ..ClientGroup::new("g", 1) },
            servers: None,
        };
        LoadSpec { threads: count(threads), ..spec }.with_groups(sizes.iter().map(group).collect())
    }

    #[test]
    fn every_client_is_dealt_once_and_no_loop_has_more_than_one_beyond_another() {
        for sizes in [vec![7], vec![1, 1], vec![3, 5, 2], vec![8, 1, 1, 1], vec![100, 1, 33]] {
            for threads in 1..=9 {
                let spec = load(&sizes, threads);
                let dealt = spec.deal();
                assert_eq!(dealt.len(), spec.event_loops() as usize);
                let mut all: Vec<u32> = dealt.iter().flatten().cloned().flatten().collect();
                all.sort_unstable();
                assert!(all.iter().copied().eq(0..sizes.iter().sum()), "{sizes:?} {threads}");
                let of = |count: &dyn Fn(&Vec<Dealt>) -> usize| {
                    let counts: Vec<usize> = dealt.iter().map(count).collect();
                    counts.iter().max().unwrap() - counts.iter().min().unwrap()
                };
                assert!(of(&|groups| groups.iter().map(ExactSizeIterator::len).sum()) <= 1);
                for group in 0..sizes.len() {
                    assert!(of(&|groups| groups[group].len()) <= 1, "{sizes:?} {threads}");
                }
            }
        }
        let dealt = load(&[3, 5], 2).deal();
        assert_eq!(dealt, [[0..2, 3..5], [2..3, 5..8]]);
    }

    #[test]
    fn a_loop_has_the_share_of_a_groups_rate_that_it_has_of_its_clients() {
        let mut spec = load(&[3, 1], 2);
        for group in &mut spec.groups {
            group.group.rate = Some(LoadRate::Constant(300.0));
        }
        let shares: Vec<Vec<_>> = spec
            .deal()
            .iter()
            .map(|dealt| spec.rates(dealt).iter().map(|rate| rate.map(|r| r.1)).collect())
            .collect();
        assert_eq!(shares, [[Some(1.5), None], [Some(3.0), Some(1.0)]]);
    }
}
