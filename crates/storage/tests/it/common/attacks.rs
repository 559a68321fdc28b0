//! Attacks on a victim: another account swaps a name for a link at each of the victim's steps.
//!
//! [`attack_each_step`] counts the steps of an undisturbed run. It then runs the victim anew for
//! each step chosen: all of them where `PGDYNO_ATTACKS` is `all` (`just attacks`), else some,
//! spread over the run.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::tracer::{Ended, Moment, trace};

/// A shell that runs as another account: what it does is what that account may do.
pub(crate) struct Attacker {
    shell: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Attacker {
    /// Starts it, with no groups but the account's own. Needs root.
    pub(crate) fn new(uid: u32, gid: u32) -> Self {
        let mut command = Command::new("setpriv");
        command.args([
            &format!("--reuid={uid}"),
            &format!("--regid={gid}"),
            "--clear-groups",
            "sh",
        ]);
        let mut shell =
            command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (commands, answers) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        Self { shell, commands, answers: BufReader::new(answers) }
    }

    /// Runs `script` and waits for its end; whether its last command succeeded.
    pub(crate) fn run(&mut self, script: &str) -> bool {
        writeln!(self.commands, "{{ {script}\n}} >/dev/null 2>&1; echo $?").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim() == "0"
    }

    /// Puts a symbolic link to `target` in place of `name`, which is kept beside it; whether it
    /// could.
    pub(crate) fn swap(&mut self, name: &Path, target: &Path) -> bool {
        let (name, target) = (name.display(), target.display());
        self.run(&format!("mv -T '{name}' '{name}.aside' && ln -s -T '{target}' '{name}'"))
    }

    /// Puts what [`Attacker::swap`] took away back.
    pub(crate) fn swap_back(&mut self, name: &Path) -> bool {
        let name = name.display();
        self.run(&format!("rm '{name}' && mv -T '{name}.aside' '{name}'"))
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// The steps of `total` at which an attack is made: all of them, or `some` spread over the run.
pub(crate) fn chosen_steps(total: usize, some: usize) -> Vec<usize> {
    if total <= some || std::env::var_os("PGDYNO_ATTACKS").is_some_and(|v| v == "all") {
        return (0..total).collect();
    }
    (0..some).map(|i| i * total / some + total / (2 * some)).collect()
}

/// A victim, and an attacker's part in its run.
pub(crate) struct Attack<'a> {
    /// Makes everything anew, and returns the command that works on it.
    pub(crate) prepare: &'a mut dyn FnMut() -> Command,
    /// Directory that holds everything that is swapped.
    pub(crate) place: &'a Path,
    /// Swaps (true) and puts back (false).
    pub(crate) swap: &'a mut dyn FnMut(bool),
    /// Checks the outcome, with words that say where the swap was made.
    pub(crate) check: &'a mut dyn FnMut(&Ended, &str),
}

/// Runs the victim undisturbed, then for each chosen step twice: swapped during that call alone,
/// and from it on.
pub(crate) fn attack_each_step(attack: &mut Attack<'_>, some: usize) -> io::Result<()> {
    let command = (attack.prepare)();
    let honest = trace(&command, attack.place, &mut |_, _| {})?;
    (attack.check)(&honest, "undisturbed");
    assert_eq!(honest.code, Some(0), "an undisturbed run works: {}", honest.output);
    assert!(honest.steps > 0, "it touches nothing in {}", attack.place.display());
    for step in chosen_steps(honest.steps, some) {
        for stays in [false, true] {
            let command = (attack.prepare)();
            let (swap, mut seen) = (&mut *attack.swap, String::new());
            let ended = trace(&command, attack.place, &mut |call, moment| {
                if call.step != step {
                    return;
                }
                match moment {
                    Moment::Before => {
                        seen = format!("{} of {:?}", call.name, call.places);
                        swap(true);
                    }
                    Moment::After if !stays => swap(false),
                    Moment::After => {}
                }
            })?;
            let until = if stays { "from then on" } else { "during it" };
            (attack.check)(&ended, &format!("swapped at step {step} ({seen}), {until}"));
        }
    }
    Ok(())
}
