//! `pgdyno run --hosts` on the nodes of a scheduler.

// Helpers of tests fail as tests do; figures for the docs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use pgdyno_test_support::wait_for;

use crate::support::{Ended, World, ended, read_column, signal};

/// Nodes that are asked to run one experiment each, and variables that the engine needs.
pub struct Lab {
    world: World,
    engine: &'static str,
    nodes: [&'static str; 3],
    variables: Vec<(&'static str, OsString)>,
}

impl Lab {
    /// An experiment of fifteen trials on each of `nodes`, with clusters in a folder of each node.
    pub fn new(
        engine: &'static str,
        nodes: [&'static str; 3],
        variables: Vec<(&'static str, OsString)>,
    ) -> Self {
        let lab = Self { world: World::new(), engine, nodes, variables };
        let mut text = "[experiment]\nname = \"lab\"\nrepeats = 15\n[load]\nclients = 1\n\
                        duration = \"1s\"\nwarm_up = \"200ms\"\n[workload]\nscale = 1\n\
                        [telemetry]\nfsync = \"20ms\"\n[storage.disk]\ndirectory = \"/nowhere\"\n"
            .to_owned();
        for (node, folder) in nodes.iter().zip(lab.folders()) {
            fs::create_dir(&folder).unwrap();
            text += &format!("[hosts.{node}.storage.disk]\ndirectory = \"{}\"\n", folder.display());
        }
        lab.world.file("lab.toml", &text);
        lab
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.nodes.iter().map(|node| self.world.disk().join(node)).collect()
    }

    fn command(&self, nodes: &str) -> Command {
        let hosts = format!("{}:{nodes}", self.engine);
        let mut command = self.world.command(&["run", "lab.toml", "--hosts", &hosts]);
        // Where the nodes' stores lie, too: here they share it.
        command.env("HOME", self.world.path("home")).envs(self.variables.iter().cloned());
        command
    }

    fn run(&self, nodes: &str) -> Ended {
        ended(self.command(nodes).output().unwrap())
    }

    /// Folders in which a cluster lies.
    fn at_work(&self) -> usize {
        let is_used = |folder: &PathBuf| fs::read_dir(folder).unwrap().next().is_some();
        self.folders().iter().filter(|folder| is_used(folder)).count()
    }

    /// Asserts that a killed pgdyno has all nodes interrupted, that the same command resumes them,
    /// that their runs arrive, and that a node that is not there is named. `while_at_work` is
    /// called while all work.
    pub fn assert_all(&self, while_at_work: impl Fn()) {
        let all = self.nodes.join(",");
        let mut working = self.command(&all).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(working.stderr.take().unwrap()).lines();
        let mut waiting: BTreeSet<String> =
            self.nodes.iter().map(|node| format!("{node}: trial 1/15 ")).collect();
        while !waiting.is_empty() {
            let line = lines.next().expect("a trial on each node").unwrap();
            waiting.retain(|words| !line.starts_with(words));
        }
        while_at_work();
        let killed = Instant::now();
        signal(i32::try_from(working.id()).unwrap(), "KILL");
        working.wait().unwrap();
        wait_for("nothing left", || (self.at_work() == 0).then_some(()));
        eprintln!("kill -9: nothing was left after {:.2} s", killed.elapsed().as_secs_f64());

        let done = self.run(&all).exits(0);
        eprintln!("{}", done.out);
        let mut origins: Vec<String> =
            read_column(&self.world.store(), "SELECT source FROM arrival").unwrap();
        origins.sort();
        assert_eq!(origins, self.nodes.map(|node| format!("{}:{node}", self.engine)));
        let trials: Vec<String> =
            read_column(&self.world.store(), "SELECT run FROM trial").unwrap();
        assert_eq!(trials.len(), 45);
        let ends = "SELECT state FROM session_end WHERE state = 'interrupted'";
        assert_eq!(read_column::<String>(&self.world.store(), ends).unwrap().len(), 3);
        let listed = self.world.run(&["list"]).out;
        assert!(self.nodes.iter().all(|node| listed.contains(node)), "{listed}");
        assert_eq!(self.at_work(), 0);

        let absent = self.run("absent").exits(1);
        absent.says("host absent: FAILED: ");
        eprintln!("{}", absent.err);
    }
}
