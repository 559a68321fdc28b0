//! Seeds of each client and each thread.

use crate::group::Dealt;
use crate::random::Random;
use crate::script::Value;
use crate::spec::LoadSpec;

/// A client's number and group, and the seeds of its two generators: one for values, one for the
/// choice of scripts.
pub(crate) struct ClientSeeds {
    pub(crate) id: u32,
    /// Index of the client's group.
    pub(crate) group: usize,
    pub(crate) random: u64,
    pub(crate) script_random: u64,
}

/// Seeds of one thread and its clients.
pub(crate) struct SeedsOfThread {
    /// Clients by group.
    pub(crate) dealt: Vec<Dealt>,
    pub(crate) clients: Vec<ClientSeeds>,
    pub(crate) thread: ThreadSeeds,
}

/// Seeds that the clients of a thread share.
pub(crate) struct ThreadSeeds {
    /// Seed of the choice of scripts, where clients have none of their own.
    pub(crate) script_random: Option<u64>,
    pub(crate) throttle: u64,
    /// Seed of the choice of servers.
    pub(crate) balance: u64,
}

/// All seeds of a load, by thread.
pub(crate) struct Seeds {
    pub(crate) threads: Vec<SeedsOfThread>,
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
        let script_random = |_| if is_pgbench { 0 } else { seeds.next_u64() };
        let second: Vec<u64> = (0..clients).map(script_random).collect();
        let client = |group: usize, id: u32| ClientSeeds {
            id,
            group,
            random: first[id as usize],
            script_random: second[id as usize],
        };
        let mut threads = Vec::new();
        for dealt in spec.deal() {
            let script_random = is_pgbench.then(|| seeds.next_u64());
            let throttle = seeds.next_u64();
            if is_pgbench {
                // pgbench draws a seed here for sampling its log.
                seeds.next_u64();
            }
            // Not drawn: values stay the same whether or not there are several servers.
            let balance = !throttle;
            let here = dealt.iter().cloned().enumerate();
            threads.push(SeedsOfThread {
                clients: here
                    .flat_map(|(g, ids)| ids.map(move |id| (g, id)))
                    .map(|(g, id)| client(g, id))
                    .collect(),
                thread: ThreadSeeds { script_random, throttle, balance },
                dealt,
            });
        }
        Self { threads, default_seed }
    }
}
