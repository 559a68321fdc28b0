//! Seeds of each client and each thread.

use crate::random::Random;
use crate::script::Value;
use crate::spec::LoadSpec;

/// A client's number and the seeds of its two generators: one for values, one for the choice of
/// scripts.
pub(crate) struct ClientSeeds {
    pub(crate) id: u32,
    pub(crate) random: u64,
    pub(crate) script_random: u64,
}

/// Seeds that the clients of a thread share.
pub(crate) struct ThreadSeeds {
    /// Seed of the choice of scripts, where clients have none of their own.
    pub(crate) script_random: Option<u64>,
    pub(crate) throttle: u64,
    /// Seed of the choice of servers.
    pub(crate) balance: u64,
}

/// All seeds of a load, by thread. Each thread has consecutive clients.
pub(crate) struct Seeds {
    pub(crate) threads: Vec<(Vec<ClientSeeds>, ThreadSeeds)>,
    /// Value of `default_seed`, if it is drawn.
    pub(crate) default_seed: Option<Value>,
}

impl Seeds {
    /// Draws the seeds of the load that `spec` describes.
    ///
    /// pgbench draws its seeds from one generator: one for each client, one for hashes unless the
    /// user gave it, then three for each thread (choice of scripts, throttling, sampling). With
    /// `draws_as_pgbench` this order is kept. Otherwise each client chooses scripts with a
    /// generator of its own, so that its choices do not depend on how threads are scheduled.
    pub(crate) fn draw(spec: &LoadSpec) -> Self {
        let clients = spec.clients.get();
        let is_pgbench = spec.draws_as_pgbench;
        let mut seeds = Random::new(spec.seed);
        // Value seeds first, so that a client's values do not depend on the number of clients.
        let first: Vec<u64> = (0..clients).map(|_| seeds.next_u64()).collect();
        let given = spec.variables.iter().any(|(name, _)| name == "default_seed");
        let default_seed =
            (is_pgbench && !given).then(|| Value::Int(seeds.next_u64().cast_signed()));
        let mut all: Vec<ClientSeeds> = (0..clients)
            .zip(first)
            .map(|(id, random)| {
                let script_random = if is_pgbench { 0 } else { seeds.next_u64() };
                ClientSeeds { id, random, script_random }
            })
            .collect();
        let threads = spec.event_loops();
        let mut dealt = Vec::new();
        for left in (1..=threads).rev() {
            let share = all.len().div_ceil(left as usize);
            let rest = all.split_off(share);
            let script_random = is_pgbench.then(|| seeds.next_u64());
            let throttle = seeds.next_u64();
            if is_pgbench {
                // pgbench draws a seed here for sampling its log.
                seeds.next_u64();
            }
            // Not drawn: values stay the same whether or not there are several servers.
            let balance = !throttle;
            dealt.push((
                std::mem::replace(&mut all, rest),
                ThreadSeeds { script_random, throttle, balance },
            ));
        }
        Self { threads: dealt, default_seed }
    }
}
