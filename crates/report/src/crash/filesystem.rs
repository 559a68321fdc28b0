//! Filesystems after power cuts, over the rounds: how long mount and fsck took, and complaints.

use pgdyno_model::crash::{Fsck, Round, median_fsck_ms, median_mount_ms};
use pgdyno_text::format;
use serde::Serialize;

/// Mounts after power cuts and what fsck found then, over rounds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemsView {
    /// Rounds in which a filesystem was mounted after a power cut (count).
    pub rounds: usize,
    /// Median over these rounds of the time that the mount took, in which the journal is replayed
    /// (milliseconds).
    pub mount_ms: Option<f64>,
    /// Median over these rounds of the time that a read-only fsck took (milliseconds); none if it
    /// was not run.
    pub fsck_ms: Option<f64>,
    /// Rounds in which fsck ended with another status than 0 (count).
    pub complaints: usize,
    /// Figures in sentences.
    pub words: Vec<String>,
}

impl FilesystemsView {
    /// Sums up `rounds`; none if no filesystem of theirs was mounted after a power cut.
    pub fn new<'a>(rounds: impl Iterator<Item = &'a Round>) -> Option<Self> {
        let rounds: Vec<&Round> = rounds.filter(|round| !round.filesystems.is_empty()).collect();
        let has_complaint = |round: &&&Round| {
            round.filesystems.iter().any(|f| matches!(f.fsck, Fsck::Complained { .. }))
        };
        let mut view = Self {
            rounds: rounds.len(),
            mount_ms: median_mount_ms(&rounds),
            fsck_ms: median_fsck_ms(&rounds),
            complaints: rounds.iter().filter(has_complaint).count(),
            words: Vec::new(),
        };
        view.words = view.words(&rounds);
        (!rounds.is_empty()).then_some(view)
    }

    /// Returns the cells of a table, mount and fsck in milliseconds; none for what was not
    /// measured.
    pub(crate) fn cells(&self) -> [Option<String>; 2] {
        let fsck = self.fsck_ms.map(|ms| match self.complaints {
            0 => milliseconds(ms),
            _ => format!("{} (complains)", milliseconds(ms)),
        });
        [self.mount_ms.map(milliseconds), fsck]
    }

    fn words(&self, rounds: &[&Round]) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(ms) = self.mount_ms {
            let over = format::counted(rounds.len() as u64, "round");
            words.push(format!(
                "mount after the power cut: {} ms (median of {over})",
                milliseconds(ms)
            ));
        }
        let all = || rounds.iter().flat_map(|round| &round.filesystems);
        let command = all().find_map(|filesystem| match &filesystem.fsck {
            Fsck::Clean { command, .. } | Fsck::Complained { command, .. } => Some(command),
            Fsck::NotRun { .. } => None,
        });
        if let (Some(ms), Some(command)) = (self.fsck_ms, command) {
            let found = match self.complaints {
                0 => "found nothing wrong".to_owned(),
                n => format!("complained in {n} of {}", rounds.len()),
            };
            words.push(format!("`{command}` took {} ms (median) and {found}", milliseconds(ms)));
        }
        let complaint = all().find_map(|filesystem| match &filesystem.fsck {
            Fsck::Complained { status, said, .. } => Some((status, said)),
            _ => None,
        });
        if let Some((status, said)) = complaint {
            let said = said.lines().map(str::trim).collect::<Vec<_>>().join("; ");
            words.push(format!("fsck's status {status}: {said}"));
        }
        let mut not_run: Vec<&str> = all()
            .filter_map(|filesystem| match &filesystem.fsck {
                Fsck::NotRun { why } => Some(why.as_str()),
                _ => None,
            })
            .collect();
        not_run.dedup();
        words.extend(not_run.into_iter().map(|why| format!("fsck was not run: {why}")));
        words
    }
}

/// Formats milliseconds, without a unit.
fn milliseconds(ms: f64) -> String {
    format::milliseconds(ms * 1e3)
}

#[cfg(test)]
mod tests {
    use pgdyno_model::crash::{Aim, FilesystemRecovery, RoundPower, Verdict};

    use super::*;

    fn round(filesystems: Vec<(f64, Fsck)>) -> Round {
        let on = |(mount_ms, fsck)| FilesystemRecovery {
            storage: "disk".into(),
            filesystem: "ext4".into(),
            mount_ms,
            fsck,
        };
        Round {
            number: 1,
            seed: 1,
            aim: Aim::Load,
            struck_after_ms: 1.0,
            acknowledged: 1,
            in_doubt: 0,
            lost: 0,
            tokens: Vec::new(),
            oldest_lost_ms: None,
            recovery_ms: Some(1.0),
            filesystems: filesystems.into_iter().map(on).collect(),
            power: RoundPower::default(),
            verdict: Verdict::Pass,
            reason: String::new(),
            checks: Vec::new(),
            notes: Vec::new(),
            ledger: None,
            log: String::new(),
            kept: None,
        }
    }

    fn complained() -> Fsck {
        let said = "Block bitmap differences".to_owned();
        Fsck::Complained { command: "e2fsck -f -n".into(), ms: 400.0, status: 4, said }
    }

    #[test]
    fn what_fsck_found_is_in_figures_cells_and_words() {
        let clean = Fsck::Clean { command: "e2fsck -f -n".into(), ms: 200.0 };
        let rounds = [round(vec![(10.04, clean)]), round(vec![(20.0, complained())])];
        let view = FilesystemsView::new(rounds.iter()).unwrap();
        assert_eq!((view.rounds, view.complaints), (2, 1));
        assert_eq!(view.cells(), [Some("15.0".into()), Some("300 (complains)".into())]);
        assert!(view.words.iter().any(|w| w.contains("complained in 1 of 2")), "{:?}", view.words);
        assert!(view.words.iter().any(|w| w.contains("4: Block bitmap")), "{:?}", view.words);
    }

    #[test]
    fn an_fsck_that_was_not_run_says_why() {
        let not_run = Fsck::NotRun { why: "e2fsck is not installed".into() };
        let view = FilesystemsView::new([round(vec![(1.0, not_run)])].iter()).unwrap();
        assert_eq!(view.cells(), [Some("1.00".into()), None]);
        assert_eq!(view.words[1], "fsck was not run: e2fsck is not installed");
    }

    #[test]
    fn rounds_without_a_power_cut_have_none() {
        assert!(FilesystemsView::new([round(Vec::new())].iter()).is_none());
    }
}
