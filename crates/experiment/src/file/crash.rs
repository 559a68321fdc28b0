//! `[crash]`: every treatment is crashed after the trials.

use std::num::NonZeroU32;

use pgdyno_model::Fault;
use pgdyno_model::crash::{CrashOptions, CrashWorkload, States, Under};
use pgdyno_model::experiment::{Factor, PlantedFailure};
use pgdyno_model::units::Span;
use pgdyno_text::nearest::nearest;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};
use super::factors::combination;

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct CrashTable {
    /// Faults: the ways in which something is broken on purpose.
    #[cfg_attr(test, schemars(schema_with = "super::schema::faults"))]
    faults: Spanned<Vec<Spanned<String>>>,
    /// Rounds of each fault.
    #[cfg_attr(test, schemars(extend("default" = 3)))]
    rounds: Option<NonZeroU32>,
    /// Load of the crash tests: every transaction leaves a row that names it.
    #[cfg_attr(test, schemars(with = "Option<CrashWorkload>", extend("default" = "tpcb-like")))]
    workload: Option<Spanned<String>>,
    /// Clients of the crash tests' own load.
    #[cfg_attr(test, schemars(extend("default" = 4)))]
    clients: Option<NonZeroU32>,
    /// Scale of the crash tests' own data set.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    scale: Option<NonZeroU32>,
    /// Time within which the fault strikes, at least 100ms.
    #[cfg_attr(test, schemars(with = "Option<Span>", extend("default" = "2s")))]
    load: Option<Spanned<Span>>,
    /// Limit for the server's recovery, and for each step of verification.
    #[cfg_attr(test, schemars(extend("default" = "2m")))]
    recovery_limit: Option<Span>,
    /// Seed for every moment and amount.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    seed: Option<u64>,
    /// The storage that lies or fails.
    #[cfg_attr(test, schemars(extend("default" = "both")))]
    under: Option<Under>,
    /// Run positive controls. Without them a pass is *invalid*.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    controls: Option<bool>,
    /// With `emulated-lie`: the share of flushes that are acknowledged and not done.
    #[cfg_attr(test, schemars(with = "Option<f64>", extend("default" = 1.0)))]
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0, "maximum" = 1)))]
    lie: Option<Spanned<f64>>,
    /// States in which a power cut could have left an emulated disk during `load`, in place of
    /// rounds. `flushes`: at every flush; `all`: then a sample of the states between two flushes.
    /// The only fault is `power`.
    #[cfg_attr(test, schemars(with = "Option<States>", extend("default" = "drawn")))]
    states: Option<Spanned<States>>,
    /// With `states`: how long they are judged at most. Left out: until all are judged.
    #[cfg_attr(test, schemars(with = "Option<Span>"))]
    budget: Option<Spanned<Span>>,
    /// With `states`: how many are judged at a time, each on a disk of its own.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    jobs: Option<NonZeroU32>,
    /// Treatments that are meant to fail, and their faults. Their failure is then *as planted*.
    #[cfg_attr(test, schemars(with = "Vec<PlantedTable>"))]
    #[serde(default)]
    planted: Vec<Spanned<PlantedTable>>,
}

/// `[[crash.planted]]`: faults that treatments are meant to fail.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct PlantedTable {
    /// Faults that the treatments are meant to fail.
    #[cfg_attr(test, schemars(schema_with = "super::schema::faults"))]
    faults: Spanned<Vec<Spanned<String>>>,
    /// Levels of factors that name the treatments. Left out: every treatment.
    #[cfg_attr(test, schemars(with = "Option<super::schema::FreeTable>"))]
    levels: Option<Spanned<toml::Table>>,
}

impl PlantedTable {
    /// Returns the treatments that are meant to fail: all, where no level is named.
    fn into_planted(self, factors: &[Factor]) -> Result<PlantedFailure, Complaint> {
        const PLACE: &str = "[[crash.planted]]";
        let levels = match self.levels {
            None => Vec::new(),
            Some(levels) => {
                let pairs = combination(PLACE, levels.get_ref(), factors);
                let pairs = pairs.map_err(|complaint| complaint.at(levels.span()))?;
                if pairs.is_empty() {
                    return Err(Complaint::new(format!("`levels` of a `{PLACE}` is empty"))
                        .with_help(
                            "leave it out where every treatment is meant to fail, or name levels: \
                             `levels = { fsync = \"off\" }`",
                        )
                        .at(levels.span()));
                }
                pairs
            }
        };
        Ok(PlantedFailure { faults: faults(self.faults, "crash.planted.faults")?, levels })
    }
}

/// The faults that a list at `key` names, at least one and none twice.
fn faults(named: Spanned<Vec<Spanned<String>>>, key: &str) -> Result<Vec<Fault>, Complaint> {
    let at = named.span();
    let mut faults = Vec::new();
    for name in named.into_inner() {
        let (span, name) = (name.span(), name.into_inner());
        let fault = Fault::parse(&name).ok_or_else(|| {
            Complaint::new(format!("unknown fault `{name}`"))
                .with_help(format!(
                    "nearest is `{}`; there are {}",
                    nearest(&name, Fault::NAMES)[0],
                    Fault::NAMES.join(", ")
                ))
                .at(span.clone())
        })?;
        if faults.contains(&fault) {
            return Err(Complaint::new(format!("the fault `{name}` is named twice")).at(span));
        }
        faults.push(fault);
    }
    if faults.is_empty() {
        return Err(Complaint::new(format!("`{key}` is empty: it names no fault"))
            .with_help(format!("name one or several of {}", Fault::NAMES.join(", ")))
            .at(at));
    }
    Ok(faults)
}

/// The load that `named` means.
fn workload(named: &Spanned<String>) -> Result<CrashWorkload, Complaint> {
    CrashWorkload::parse(named.get_ref()).ok_or_else(|| {
        Complaint::new(format!("crash tests have no load `{}`", named.get_ref()))
            .with_help(format!(
                "their loads are {}: each keeps a row for every transaction, which the oracles \
                 compare with the ledger",
                CrashWorkload::NAMES.join(", ")
            ))
            .at(named.span())
    })
}

impl CrashTable {
    /// Takes out which treatments are meant to fail.
    pub(super) fn take_planted(
        &mut self,
        factors: &[Factor],
    ) -> Result<Vec<PlantedFailure>, Complaint> {
        let planted = std::mem::take(&mut self.planted).into_iter();
        let one = |table| read_at(table, |table: PlantedTable| table.into_planted(factors));
        planted.map(one).collect()
    }

    /// Returns the options of the crash tests. `given`: the server is external, which is refused.
    pub(super) fn into_options(self, given: bool) -> Result<CrashOptions, Complaint> {
        let defaults = CrashOptions::default();
        let at = self.faults.span();
        if given {
            return Err(Complaint::new(
                "`crash` crashes servers that pgdyno makes, and `postgres.dsn` names a running one",
            )
            .with_help("leave `postgres.dsn` out, or `[crash]`")
            .at(at));
        }
        let faults = faults(self.faults, "crash.faults")?;
        let states = match self.states {
            Some(states) if *states.get_ref() != States::Drawn && faults != [Fault::Power] => {
                return Err(Complaint::new("`crash.states` names states that power cuts leave")
                    .with_help("name `faults = [\"power\"]`, or leave `states` out")
                    .at(states.span()));
            }
            states => states.map_or(defaults.states, Spanned::into_inner),
        };
        let budget = match self.budget {
            Some(budget) if states == States::Drawn => {
                return Err(Complaint::new("`crash.budget` needs `states = \"all\"`")
                    .with_help("add `states = \"all\"`, or leave `budget` out")
                    .at(budget.span()));
            }
            budget => budget.map(Spanned::into_inner),
        };
        // A stretch begins once every client has committed.
        let least = if states == States::Drawn { 100 } else { 10 };
        let load = match self.load {
            Some(load) if load.get_ref().0.as_millis() < least => {
                return Err(Complaint::new(format!("`crash.load` is {}", load.get_ref()))
                    .with_help(format!("clients need at least {least}ms to have something to lose"))
                    .at(load.span()));
            }
            load => load.map_or(defaults.load, Spanned::into_inner),
        };
        let lie = match self.lie {
            Some(lie) if !(*lie.get_ref() > 0.0 && *lie.get_ref() <= 1.0) => {
                return Err(Complaint::new(format!("`crash.lie` is {}", lie.get_ref()))
                    .with_help(
                        "it is the share of flushes that are not done: above 0, and 1 at most",
                    )
                    .at(lie.span()));
            }
            lie => lie.map_or(defaults.lie, Spanned::into_inner),
        };
        Ok(CrashOptions {
            faults,
            rounds: self.rounds.map_or(defaults.rounds, NonZeroU32::get),
            workload: self.workload.as_ref().map_or(Ok(defaults.workload), workload)?,
            clients: self.clients.map_or(defaults.clients, NonZeroU32::get),
            scale: self.scale.map_or(defaults.scale, NonZeroU32::get),
            load,
            recovery_limit: self.recovery_limit.unwrap_or(defaults.recovery_limit),
            seed: self.seed.unwrap_or(defaults.seed),
            under: self.under.unwrap_or_default(),
            controls: self.controls.unwrap_or(defaults.controls),
            lie,
            planted: defaults.planted,
            states,
            budget,
            jobs: self.jobs.map_or(defaults.jobs, NonZeroU32::get),
        })
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Fault;

    use crate::file::parse;
    use crate::file::tests::{error, source, with};

    const CRASHED: &str = "[factors]\nfsync = ['on', 'off']\nstorage = ['disk']\n[crash]\n\
        faults = ['process', 'power']\n";

    #[test]
    fn failures_that_are_meant_to_be_name_faults_and_levels() {
        let planted =
            |rest: &str| parse(&source(&format!("{CRASHED}{rest}")), &[]).unwrap().planted;
        assert_eq!(planted(""), []);
        let some = planted(
            "[[crash.planted]]\nfaults = [\"power\"]\n\
             levels = { fsync = false, storage = \"disk\" }\n",
        );
        assert_eq!(some[0].faults, [Fault::Power]);
        // Spelled as the factor has it.
        let pairs: Vec<String> =
            some[0].levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
        assert_eq!(pairs, ["fsync=off", "storage=disk"]);
        let every = planted("[[crash.planted]]\nfaults = [\"lying-disk\"]\n");
        assert_eq!(
            (every[0].faults.as_slice(), every[0].levels.len()),
            (&[Fault::EmulatedLie][..], 0)
        );
        let set = with(CRASHED, &["crash.planted=[{faults=[\"power\"], levels={fsync=\"off\"}}]"])
            .unwrap()
            .planted;
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn failures_that_nothing_could_have_are_refused_with_the_nearest_names() {
        let refused = |rest: &str| error(&format!("{CRASHED}[[crash.planted]]\n{rest}\n"));
        insta::assert_snapshot!(refused("faults = [\"power\"]\nlevels = { fsinc = \"off\" }"), @r#"
        try.toml:8:10: `[[crash.planted]]` names `fsinc`, which is no factor
        8 | levels = { fsinc = "off" }
          |          ^^^^^^^^^^^^^^^^^
        help: nearest is `fsync`; the factors are fsync, storage
        "#);
        insta::assert_snapshot!(refused("faults = [\"power\"]\nlevels = { fsync = \"of\" }"), @r#"
        try.toml:8:10: `[[crash.planted]]` names fsync = of, which is no level of it
        8 | levels = { fsync = "of" }
          |          ^^^^^^^^^^^^^^^^
        help: nearest is `off`; its levels are on, off
        "#);
        insta::assert_snapshot!(refused("faults = [\"powr\"]"), @"
        try.toml:7:11: unknown fault `powr`
        7 | faults = [\"powr\"]
          |           ^^^^^^
        help: nearest is `power`; there are process, immediate, backend, power, emulated-lie, \
        torn-write, io-error, disk-full, plug
        ");
        insta::assert_snapshot!(refused("faults = []"), @"
        try.toml:7:10: `crash.planted.faults` is empty: it names no fault
        7 | faults = []
          |          ^^
        help: name one or several of process, immediate, backend, power, emulated-lie, \
        torn-write, io-error, disk-full, plug
        ");
        insta::assert_snapshot!(refused("faults = [\"power\"]\nlevels = {}"), @"
        try.toml:8:10: `levels` of a `[[crash.planted]]` is empty
        8 | levels = {}
          |          ^^
        help: leave it out where every treatment is meant to fail, or name levels: \
        `levels = { fsync = \"off\" }`
        ");
        insta::assert_snapshot!(refused("levels = { fsync = \"off\" }"), @r#"
        try.toml:6:1: missing field `faults`
        6 | [[crash.planted]]
          | ^^^^^^^^^^^^^^^^^
        "#);
    }
}
