//! Tables that scripts fill by `\copyfrom`: their workload describes how rows are made.

use std::collections::BTreeMap;

use pgdyno_dataset::workload::Workload;
use pgdyno_engine::WeightedScript;
use pgdyno_engine::script::Script;
use pgdyno_model::{Experiment, Plan};

use super::generators::launch_of;
use crate::error::ExperimentError;

/// Checks that `workload` describes each table that `script`, one of its scripts, fills.
pub(crate) fn check_script(workload: &Workload, script: &Script) -> Result<(), ExperimentError> {
    let tables: Vec<&str> = workload.data.tables.iter().map(|table| table.name.as_str()).collect();
    let Some((line, table)) = script.copied_tables().find(|(_, table)| !tables.contains(table))
    else {
        return Ok(());
    };
    let (name, data) = (&script.name, &workload.data.name);
    let help = match &tables[..] {
        [] => format!("`{data}` describes none: give it a `[[data.table]]` with columns"),
        known => format!("it describes {}", known.join(", ")),
    };
    Err(ExperimentError::refused(
        format!(
            "cannot run script `{name}`: \\copyfrom in line {line} fills `{table}`, which is no \
             `[[data.table]]` of workload `{data}`"
        ),
        help,
    ))
}

/// Checks that one process alone offers each load whose `scripts`, by workload, fill tables: rows
/// are numbered there.
pub(super) fn check(
    experiment: &Experiment,
    plan: &Plan,
    scripts: &BTreeMap<String, Vec<WeightedScript>>,
) -> Result<(), ExperimentError> {
    let fills = |workload: &str| {
        let mut all = scripts.get(workload).into_iter().flatten();
        all.any(|weighted| weighted.script.copied_tables().next().is_some())
    };
    for treatment in &plan.treatments {
        if launch_of(&experiment.generators, treatment).is_some() && fills(&treatment.workload) {
            let (workload, levels) = (&treatment.workload, treatment.levels.in_parentheses());
            return Err(ExperimentError::refused(
                format!(
                    "cannot run `{workload}` by several generators{levels}: its scripts fill \
                     tables by \\copyfrom, and rows are numbered in one process"
                ),
                "leave the generators out, or use a workload without \\copyfrom",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Advice;

    use crate::file::Source;
    use crate::host::NoDevices;
    use crate::resolved_experiment::ResolvedExperiment;

    fn refused(text: &str) -> String {
        let (name, shown) = ("try".into(), "try.toml".into());
        let source = Source { name, shown, text: text.into(), base: "/".into() };
        let error = ResolvedExperiment::new(source, Vec::new(), &NoDevices).err().unwrap();
        format!("{error}\n{}", error.help().unwrap_or_default())
    }

    #[test]
    fn what_copyfrom_cannot_fill_is_refused_before_the_host_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let toml =
            "description = \"d\"\ndata.of = \"tpcb-like\"\nscript = [{ file = \"s.sql\" }]\n";
        std::fs::write(folder.path().join("workload.toml"), toml).unwrap();
        std::fs::write(folder.path().join("s.sql"), "SELECT 1;\n\\copyfrom pgbench_acounts 5\n")
            .unwrap();
        let text = format!("[workload]\nname = \"{path}\"\n[load]\nclients = 4\n");
        assert_eq!(
            refused(&text),
            "cannot run script `s`: \\copyfrom in line 2 fills `pgbench_acounts`, which is no \
             `[[data.table]]` of workload `tpcb-like`\n\
             it describes pgbench_branches, pgbench_tellers, pgbench_accounts"
        );
        std::fs::write(folder.path().join("s.sql"), "\\copyfrom pgbench_accounts 5\n").unwrap();
        let text = format!("{text}[generators]\nlaunch = \"local:2\"\n");
        assert_eq!(
            refused(&text),
            format!(
                "cannot run `{path}` by several generators: its scripts fill tables by \\copyfrom, \
                 and rows are numbered in one process\n\
                 leave the generators out, or use a workload without \\copyfrom"
            )
        );
    }
}
