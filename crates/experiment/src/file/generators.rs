//! `[generators]`: processes or hosts that offer the load.

use pgdyno_generators::{DealError, Generators, Limits, Place};
use pgdyno_model::GeneratorChoice;
use pgdyno_model::experiment::Factor;
use pgdyno_model::level::Key;
use pgdyno_model::units::Span;
use serde::Deserialize;
use toml::Spanned;

use super::error::{Complaint, read_at};

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct GeneratorsTable {
    /// Who offers the load: `local:NUM` processes, hosts by `ssh:HOST,HOST*WEIGHT`, tasks of
    /// `slurm:NUM`, or nodes of `ray:workers=NUM`. By default this process alone, as with `none`.
    /// Treatments with a level of the factor `generators` have that instead.
    #[cfg_attr(test, schemars(
        with = "String",
        extend("examples" = ["local:2", "ssh:gen1,gen2*3", "slurm:4"])
    ))]
    launch: Option<Spanned<String>>,
    /// How far from the agreed instant a generator may begin.
    #[cfg_attr(test, schemars(extend("default" = "10ms")))]
    max_start_skew: Option<Span>,
    /// Whether a trial counts in which a thread of a generator was busy 90% of the time. By default
    /// it is failed.
    allow_saturated: bool,
    /// How often a trial is tried again in which a generator failed. Each attempt is stored.
    retry: u32,
}

impl GeneratorsTable {
    /// Returns the choice of generators, after checking those of `factors`, too. `is_reached`: the
    /// server listens for other hosts.
    pub(super) fn into_choice(
        self,
        is_reached: bool,
        factors: &[Factor],
    ) -> Result<GeneratorChoice, Complaint> {
        let check = |what: &str, launch: &str| match read_launch(launch) {
            Ok(Some(generators))
                if !is_reached && generators.list.iter().any(|g| g.place != Place::Local) =>
            {
                Err(Complaint::new(format!(
                    "{what} names other hosts, and the server listens on this one alone"
                ))
                .with_help("name the address on which they reach it, `postgres.listen`"))
            }
            Ok(_) => Ok(()),
            Err(complaint) => Err(complaint.about(what)),
        };
        for (factor, level) in factors.iter().flat_map(|f| f.levels.iter().map(move |l| (f, l))) {
            for (_, launch) in level.sets.iter().filter(|(key, _)| *key == Key::Generators) {
                let what = format!("factor `{}`, level `{}`", factor.name, level.label);
                check(&what, &launch.to_string())?;
            }
        }
        let launch = self.launch.map(|launch| {
            read_at(launch, |launch| check("`generators.launch`", &launch).map(|()| launch))
        });
        Ok(GeneratorChoice {
            launch: launch.transpose()?,
            max_start_skew: self.max_start_skew.unwrap_or(Span(Limits::default().max_start_skew)),
            allow_saturated: self.allow_saturated,
            retry: self.retry,
        })
    }
}

/// Reads the generators of an experiment's trials; none for this process alone.
pub(super) fn read_launch(launch: &str) -> Result<Option<Generators>, Complaint> {
    if launch == GeneratorChoice::NONE {
        return Ok(None);
    }
    match launch.parse::<Generators>() {
        Ok(generators) if generators.list.iter().any(|g| g.place == Place::Join) => {
            Err(Complaint::new("workers that join serve one load, and each trial is one")
                .with_help("use `ssh:…`, or `pgdyno pgbench --generators join:…` for one run"))
        }
        Ok(generators) => Ok(Some(generators)),
        Err(wrong @ DealError::Launcher(_)) => Err(Complaint::new(wrong.to_string())
            .with_help(format!("`{}` is this process alone", GeneratorChoice::NONE))),
        Err(wrong) => Err(Complaint::new(wrong.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FileError, Source, parse};
    use pgdyno_model::Advice;

    fn source(text: &str) -> Source {
        Source {
            name: "try".into(),
            shown: "try.toml".into(),
            text: text.into(),
            base: "/base".into(),
        }
    }

    fn refusal(text: &str) -> String {
        let error: FileError = parse(&source(text), &[]).expect_err("it must be refused");
        error.help().map_or(error.to_string(), |help| format!("{error}\nhelp: {help}"))
    }

    fn levels(list: &str) -> String {
        format!("[factors]\ngenerators = {list}\n[generators]\nretry = 2\n")
    }

    #[test]
    fn levels_are_this_process_or_what_launch_may_be() {
        let read = parse(&source(&levels("[\"none\", \"local:2\"]")), &[]).unwrap();
        let labels: Vec<String> =
            read.factors[0].levels.iter().map(|level| level.label.to_string()).collect();
        assert_eq!(labels, ["none", "local:2"]);
        assert_eq!((read.generators.launch, read.generators.retry), (None, 2));
        let external = "[postgres]\ndsn = \"host=db1\"\n";
        let elsewhere = levels("[\"ssh:a,b\", \"slurm:2\", \"ray:workers=2\"]") + external;
        assert_eq!(parse(&source(&elsewhere), &[]).unwrap().factors[0].levels.len(), 3);
    }

    #[test]
    fn each_level_is_checked_as_launch_is() {
        let refused: Vec<String> = [
            "[factors.by]\none = {}\ntwo = { generators = \"ssh:a,b\" }\n",
            "[factors.by]\none = {}\ntwo = { generators = \"ssh:a,a\" }\n",
            "[factors]\ngenerator = [\"local:2\"]\n",
            "[generators]\nlaunch = \"ssh:a,b\"\n",
            "[generators]\nlaunch = \"join:2,listen=a:1,token=t\"\n",
            &levels("[\"none\", \"pigeon:2\"]"),
            &levels("[\"local:0\"]"),
            &levels("[2]"),
            &levels("[\"join:2,listen=a:1,token=t\"]"),
            &levels("[\"local:1\", \"ssh:a,b\"]"),
        ]
        .into_iter()
        .map(refusal)
        .collect();
        insta::assert_snapshot!(refused.join("\n\n"));
    }
}
