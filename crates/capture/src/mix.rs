//! Transactions of a captured workload: which statements run together, and how often.
//!
//! The statistics count statements, and tell no transaction. [`mix`] guesses: statements that were
//! called equally often, and no more often than blocks were committed, ran in one block.

/// Statement, as the guess sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Calls (count).
    pub(crate) calls: u64,
    /// Place within a transaction: smaller ones first.
    pub(crate) order: u64,
}

/// One of a transaction's steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// Index of the statement.
    pub(crate) statement: usize,
    /// Times that it runs in each transaction (count).
    pub(crate) times: u32,
    /// Probability that it runs once more (0 to 1).
    pub(crate) chance: f64,
}

/// Transaction of the workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MixedTransaction {
    /// How often it ran (count).
    pub(crate) calls: u64,
    /// Whether a block holds the statements together.
    pub(crate) is_block: bool,
    pub(crate) steps: Vec<Step>,
}

/// Most times that a statement runs in one transaction.
const MOST_TIMES: u64 = 50;
/// Statements count as called equally often if their calls differ by this share.
const ALIKE: f64 = 0.001;

/// Share of the blocks that may be left unexplained.
const UNEXPLAINED: f64 = 0.02;

/// Returns the transactions of `parts`, of which `blocks` were committed among `commits`
/// transactions. `slack` calls (count) may be missing where a look fell into a transaction.
pub(crate) fn mix(parts: &[Part], blocks: u64, commits: u64, slack: u64) -> Vec<MixedTransaction> {
    let mut left: Vec<usize> = (0..parts.len()).collect();
    let mut mixed = Vec::new();
    let mut remaining = blocks;
    for cluster in clusters(parts, slack) {
        let calls = cluster.iter().map(|at| parts[*at].calls).max().unwrap_or(0);
        if cluster.len() > 1 && calls <= remaining + slack && calls > 50 * slack {
            remaining = remaining.saturating_sub(calls);
            left.retain(|at| !cluster.contains(at));
            mixed.push(block(parts, cluster, calls));
        }
    }
    let alone = commits.saturating_sub(blocks);
    let calls_left: u64 = left.iter().map(|at| parts[*at].calls).sum();
    // Most of what is left ran in blocks, too: in those that nothing explains, or else in the most
    // frequent ones.
    if blocks > 0 && alone < calls_left / 2 {
        let most = (0..mixed.len()).max_by_key(|at| mixed[*at].calls);
        if remaining as f64 > blocks as f64 * UNEXPLAINED {
            let mut rest = MixedTransaction { calls: remaining, is_block: true, steps: Vec::new() };
            left = add(parts, left, &mut rest);
            mixed.push(rest);
        }
        if let Some(most) = most {
            left = add(parts, left, &mut mixed[most]);
        }
    }
    mixed.retain(|transaction| !transaction.steps.is_empty());
    for at in left {
        let steps = vec![Step { statement: at, times: 1, chance: 0.0 }];
        mixed.push(MixedTransaction { calls: parts[at].calls, is_block: false, steps });
    }
    mixed.sort_by_key(|transaction| std::cmp::Reverse(transaction.calls));
    mixed
}

/// Returns the statements with equal calls together, most calls first.
fn clusters(parts: &[Part], slack: u64) -> Vec<Vec<usize>> {
    let mut sorted: Vec<usize> = (0..parts.len()).collect();
    sorted.sort_by_key(|at| std::cmp::Reverse(parts[*at].calls));
    let are_alike = |a: &usize, b: &usize| {
        let (more, less) = (parts[*a].calls, parts[*b].calls);
        more - less <= slack.max((more as f64 * ALIKE) as u64)
    };
    sorted.chunk_by(are_alike).map(<[usize]>::to_vec).collect()
}

fn block(parts: &[Part], mut cluster: Vec<usize>, calls: u64) -> MixedTransaction {
    cluster.sort_by_key(|at| parts[*at].order);
    let once = |statement| Step { statement, times: 1, chance: 0.0 };
    let steps = cluster.into_iter().map(once).collect();
    MixedTransaction { calls, is_block: true, steps }
}

/// Adds the statements `left` to `transaction`, and returns those that run too often for it.
fn add(parts: &[Part], left: Vec<usize>, transaction: &mut MixedTransaction) -> Vec<usize> {
    let calls = transaction.calls.max(1);
    let fits = |at: &usize| parts[*at].calls / calls < MOST_TIMES;
    let (added, too_often): (Vec<usize>, Vec<usize>) = left.into_iter().partition(fits);
    transaction.steps.extend(added.into_iter().map(|statement| {
        let times = parts[statement].calls / calls;
        let chance = parts[statement].calls as f64 / calls as f64 - times as f64;
        Step { statement, times: u32::try_from(times).unwrap_or(0), chance }
    }));
    transaction.steps.sort_by_key(|step| parts[step.statement].order);
    too_often
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(calls: &[u64]) -> Vec<Part> {
        let part = |(order, calls): (usize, &u64)| Part { calls: *calls, order: order as u64 };
        calls.iter().enumerate().map(part).collect()
    }

    /// Renders as `calls: statement×times+chance …`; a block in brackets.
    fn text(mixed: &[MixedTransaction]) -> Vec<String> {
        let step = |step: &Step| match (step.times, step.chance) {
            (1, chance) if chance < 0.005 => step.statement.to_string(),
            (times, chance) => format!("{}×{:.2}", step.statement, f64::from(times) + chance),
        };
        let one = |one: &MixedTransaction| {
            let steps: Vec<String> = one.steps.iter().map(step).collect();
            match one.is_block {
                true => format!("{}: [{}]", one.calls, steps.join(" ")),
                false => format!("{}: {}", one.calls, steps.join(" ")),
            }
        };
        mixed.iter().map(one).collect()
    }

    #[test]
    fn statements_called_equally_often_are_one_transaction() {
        let tpcb = parts(&[10_000, 9_999, 10_001, 10_000, 10_000]);
        assert_eq!(text(&mix(&tpcb, 10_000, 10_000, 2)), ["10001: [0 1 2 3 4]"]);
    }

    #[test]
    fn without_blocks_each_statement_is_a_transaction() {
        assert_eq!(text(&mix(&parts(&[10, 20]), 0, 30, 0)), ["20: 1", "10: 0"]);
    }

    #[test]
    fn statements_beyond_the_blocks_ran_alone_if_so_many_transactions_were_committed() {
        let all = parts(&[1_000, 1_000, 5_000]);
        assert_eq!(text(&mix(&all, 1_000, 6_000, 0)), ["5000: 2", "1000: [0 1]"]);
    }

    #[test]
    fn statements_that_ran_in_blocks_join_the_most_frequent_one() {
        // Orders with ten lines each, and payments.
        let all = parts(&[4_500, 4_500, 4_300, 4_300, 45_000, 45_000]);
        let mixed = mix(&all, 8_800, 8_800, 0);
        assert_eq!(text(&mixed), ["4500: [0 1 4×10.00 5×10.00]", "4300: [2 3]"]);
    }

    #[test]
    fn blocks_that_no_statements_explain_hold_what_is_left() {
        let all = parts(&[1_000, 1_000, 300, 2_500]);
        let mixed = mix(&all, 2_000, 2_000, 0);
        assert_eq!(text(&mixed), ["1000: [0 1]", "1000: [2×0.30 3×2.50]"]);
    }
}
