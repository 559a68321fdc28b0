//! Workers as the tasks of one `srun`, and the hosts of a lab as one `srun` each.
//!
//! Within an allocation (`salloc`, `sbatch`) they are a step of it, otherwise `srun` allocates.
//! Variables that `srun` reads choose partition, account and the like.

use std::ffi::OsString;
use std::path::PathBuf;

use super::starter::{Request, Starter};

pub(super) const STARTER: Starter = Starter {
    name: "slurm",
    words,
    missing: "install Slurm's client, or run pgdyno where jobs are submitted",
    ended: "see what is free with `sinfo`, ask for fewer workers or event loops, or wait for nodes \
            with `salloc`",
};

/// Options of every `srun`.
const ALL: [&str; 3] = [
    "--quiet",
    // Nobody waits in a queue unseen.
    "--immediate=5",
    // Not our whole environment, in which a password may be.
    "--export=HOME,PATH",
];
const WORKERS: [&str; 3] = [
    // One task on each node while there are nodes.
    "--spread-job",
    "--kill-on-bad-exit=1",
    // All tasks read the token.
    "--input=all",
];
/// One task, which has the node for itself.
const HOST: [&str; 5] = ["--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--unbuffered"];

/// Runs a task on a node, with all of the node's processors: a task has no more than it asks for.
const WHOLE: &str = "cpus=$(sinfo --noheader --nodes=\"$0\" --format=%c | head -n 1); \
    exec srun --cpus-per-task=\"${cpus:-1}\" --nodelist=\"$0\" \"$@\"";

/// Joins the coordinator from a task; the arguments are [`Request::words`]. An empty host stands
/// for the machine where `srun` runs.
const TASK: &str = "host=${0:-$SLURM_LAUNCH_NODE_IPADDR}; \
    case $host in *:*) host=[$host];; esac; \
    exec \"$2\" worker --join \"$host:$1\" --token-file - --name \"$SLURMD_NODENAME\"";

fn words(request: &Request, program: PathBuf) -> Vec<OsString> {
    let options = ALL.into_iter().chain(WORKERS);
    let mut words: Vec<OsString> =
        ["srun"].into_iter().chain(options).map(OsString::from).collect();
    words.push(format!("--ntasks={}", request.workers).into());
    words.push(format!("--cpus-per-task={}", request.cpus).into());
    words.extend(["/bin/sh", "-c", TASK].map(OsString::from));
    words.extend(request.words(program));
    words
}

/// Returns the words that run the command `command` of `program` on the node `host`.
pub(super) fn words_on(host: &str, command: &str, program: PathBuf) -> Vec<OsString> {
    let shell = ["/bin/sh", "-c", WHOLE, host];
    let mut words: Vec<OsString> =
        shell.into_iter().chain(ALL).chain(HOST).map(OsString::from).collect();
    words.extend([program.into(), command.into()]);
    words
}
