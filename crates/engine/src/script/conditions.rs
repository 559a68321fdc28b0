//! `\if`, `\elif`, `\else`, `\endif`: whether they match, and where each leads.

use super::error::{ScriptError, SourceText};
use super::{Command, Op, Script};

/// Refuses a script whose conditions do not match.
pub(super) fn check(script: &Script, place: SourceText<'_>) -> Result<(), ScriptError> {
    let error = |number: usize, what: &str| {
        let line = script.commands.get(number - 1).or(script.commands.last()).map_or(1, |c| c.line);
        let phrase =
            format!("condition error in script \"{}\" command {number}: {what}", script.name);
        place.error(place.line_begin(line), "", "").phrased(phrase).of_whole_script()
    };
    // For each open `\if`: whether `\else` was seen.
    let mut open = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        let number = index + 1;
        match command.op {
            Op::If(_) => open.push(false),
            Op::Elif(_) => match open.last() {
                None => return Err(error(number, "\\elif without matching \\if")),
                Some(true) => return Err(error(number, "\\elif after \\else")),
                Some(false) => {}
            },
            Op::Else => match open.last_mut() {
                None => return Err(error(number, "\\else without matching \\if")),
                Some(true) => return Err(error(number, "\\else after \\else")),
                Some(seen) => *seen = true,
            },
            Op::Endif if open.pop().is_none() => {
                return Err(error(number, "\\endif without matching \\if"));
            }
            _ => {}
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(error(script.commands.len() + 1, "\\if without matching \\endif"))
    }
}

/// Targets of a condition, by index of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BranchTargets {
    /// Next `\elif`, `\else` or `\endif` of the condition.
    pub(crate) next: usize,
    /// `\endif` of the condition.
    pub(crate) end: usize,
}

/// Returns the targets of each command of a checked script; commands without a condition have
/// none.
pub(crate) fn branch_targets(commands: &[Command]) -> Vec<BranchTargets> {
    let mut branch_targets = vec![BranchTargets::default(); commands.len()];
    // For each open `\if`: its parts so far.
    let mut open: Vec<Vec<usize>> = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        match command.op {
            Op::If(_) => open.push(vec![index]),
            Op::Elif(_) | Op::Else => {
                if let Some(parts) = open.last_mut() {
                    parts.push(index);
                }
            }
            Op::Endif => {
                let parts = open.pop().unwrap_or_default();
                for (n, part) in parts.iter().enumerate() {
                    branch_targets[*part] = BranchTargets {
                        next: parts.get(n + 1).copied().unwrap_or(index),
                        end: index,
                    };
                }
            }
            _ => {}
        }
    }
    branch_targets
}
