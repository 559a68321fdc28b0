//! Generators of treatments: each needs clients of its own.

use pgdyno_generators::{DealError, Generators};
use pgdyno_model::{GeneratorChoice, Plan, Treatment};

use crate::error::ExperimentError;

/// Returns the name of the generators of `treatment`; none if this process alone offers its load.
pub fn launch_of<'a>(choice: &'a GeneratorChoice, treatment: &'a Treatment) -> Option<&'a str> {
    let launch = treatment.generators.as_deref().or(choice.launch.as_deref());
    launch.filter(|launch| *launch != GeneratorChoice::NONE)
}

/// Returns the generators of `treatment`; none if this process alone offers its load.
///
/// # Errors
/// The treatment's `launch` cannot be read, which the parser of experiment files would have
/// refused.
pub fn generators(
    choice: &GeneratorChoice,
    treatment: &Treatment,
) -> Result<Option<Generators>, DealError> {
    let Some(launch) = launch_of(choice, treatment) else { return Ok(None) };
    let mut generators: Generators = launch.parse()?;
    generators.limits.max_start_skew = choice.max_start_skew.0;
    generators.limits.allow_saturated = choice.allow_saturated;
    Ok(Some(generators))
}

/// Checks that each treatment of `plan` has clients for every generator of its own.
pub(super) fn check(choice: &GeneratorChoice, plan: &Plan) -> Result<(), ExperimentError> {
    for treatment in &plan.treatments {
        let Some(generators) = generators(choice, treatment)? else { continue };
        generators.deal(treatment.clients, treatment.threads).map_err(|few| {
            ExperimentError::refused(
                format!("{few}{}", treatment.levels.in_parentheses()),
                "use more clients, or fewer generators; or leave the treatment out (`[[exclude]]`)",
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Advice;

    use super::*;
    use crate::file::Source;
    use crate::host::NoDevices;
    use crate::resolved_experiment::ResolvedExperiment;

    fn resolved(text: &str) -> Result<ResolvedExperiment, ExperimentError> {
        let (name, shown) = ("try".into(), "try.toml".into());
        let source = Source { name, shown, text: text.into(), base: "/".into() };
        ResolvedExperiment::new(source, Vec::new(), &NoDevices)
    }

    #[test]
    fn a_level_counts_before_the_experiments_generators() {
        let text = "[factors.by]\nas-launched = {}\nalone = { generators = \"none\" }\n\
                    three = { generators = \"local:3\" }\n\
                    [generators]\nlaunch = \"local:2\"\n[load]\nclients = 4\n";
        let of_each = |text: &str| -> Vec<Option<String>> {
            let ResolvedExperiment { plan, experiment, .. } = resolved(text).unwrap();
            let choice = &experiment.generators;
            plan.treatments.iter().map(|t| launch_of(choice, t).map(str::to_owned)).collect()
        };
        let some = |launch: &str| Some(launch.to_owned());
        assert_eq!(of_each(text), [some("local:2"), None, some("local:3")]);
        assert_eq!(
            of_each(&text.replace("\"local:2\"", "\"none\"")),
            [None, None, some("local:3")]
        );
        // Two levels are two treatments, also for those who look for equal ones.
        let plan = resolved(text).unwrap().plan;
        assert_ne!(plan.treatments[0].generators, plan.treatments[2].generators);
    }

    #[test]
    fn a_treatment_without_a_client_for_each_generator_is_named() {
        let text = |exclude: &str| {
            format!("[factors]\nclients = [1, 2]\ngenerators = [\"none\", \"local:2\"]\n{exclude}")
        };
        let refused = resolved(&text("")).unwrap_err();
        insta::assert_snapshot!(refused, @"too few clients for 2 generators of these weights: 1 \
                                           (clients=1 generators=local:2)");
        assert!(refused.help().is_some_and(|help| help.contains("[[exclude]]")));
        let exclude = "[[exclude]]\nclients = 1\ngenerators = \"local:2\"\n";
        assert_eq!(resolved(&text(exclude)).unwrap().plan.treatments.len(), 3);
    }
}
