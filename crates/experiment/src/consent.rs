//! Devices and files that the caller allows by name.

use std::path::Path;

use pgdyno_dataset::trust::{Purpose, Trust, has_commands};
use pgdyno_storage::Wipe;

use crate::error::ExperimentError;
use crate::host::Host;
use crate::resolved_experiment::ResolvedExperiment;

impl ResolvedExperiment {
    /// Refuses PostgreSQL's programs that the file `experiment` names, as
    /// [`ResolvedExperiment::with_trust`] does: also a dry run asks them for their settings.
    ///
    /// # Errors
    /// [`ExperimentError::NotTrusted`].
    pub fn check_programs(
        &self,
        trust: &Trust,
        experiment: Option<&Path>,
    ) -> Result<(), ExperimentError> {
        if let Some(file) = experiment.filter(|_| self.names_programs()) {
            trust.check_text(file, &self.source.text, Purpose::PostgresPrograms)?;
        }
        Ok(())
    }

    /// Runs commands of files that only root and the caller may change, and of those that `trust`
    /// names; `experiment` is the file that the experiment was read from. Other accounts than root
    /// are asked nothing.
    ///
    /// # Errors
    /// [`ExperimentError::NotTrusted`].
    pub fn with_trust(
        mut self,
        trust: Trust,
        experiment: Option<&Path>,
    ) -> Result<Self, ExperimentError> {
        self.check_programs(&trust, experiment)?;
        if let (Some(file), Some(purpose)) = (experiment, self.commands()) {
            trust.check_text(file, &self.source.text, purpose)?;
        }
        for (name, workload) in &self.workloads {
            for (text, parsed) in workload.scripts.iter().zip(&self.scripts[name]) {
                if let Some(file) = text.file.as_ref().filter(|_| has_commands(&parsed.script)) {
                    trust.check_text(file, &text.text, Purpose::ShellCommands)?;
                }
            }
        }
        self.trust = trust;
        Ok(self)
    }

    /// Returns the kind of commands that the experiment runs; none if it runs nothing.
    fn commands(&self) -> Option<Purpose> {
        let of_storages = self.experiment.storage.values().map(|storage| &storage.device);
        let of_treatments = self.plan.treatments.iter().map(|treatment| &treatment.device);
        let devices: Vec<_> = of_storages.chain(of_treatments).collect();
        if !self.experiment.between.command.is_empty() {
            Some(Purpose::BetweenCommand)
        } else if devices.iter().any(|device| device.hook.is_some()) {
            Some(Purpose::DeviceHook)
        } else {
            let sets = devices.iter().any(|device| !device.module_parameters.is_empty());
            sets.then_some(Purpose::ModuleParameters)
        }
    }

    /// Returns whether the experiment says where PostgreSQL's programs are.
    fn names_programs(&self) -> bool {
        self.builds().iter().any(|build| build.bindir.is_some())
    }

    /// Allows the devices that `wipe` names to be erased. `host` tells which paths lead to the same
    /// device.
    ///
    /// # Errors
    /// No storage of the plan is made on one of them.
    pub fn with_wipe(mut self, wipe: Wipe, host: &dyn Host) -> Result<Self, ExperimentError> {
        let used = self.devices();
        let is_used = |device: &Path| used.iter().any(|used| host.is_same_device(device, used));
        if let Some(device) = wipe.devices.iter().find(|device| !is_used(device)) {
            let used: Vec<String> = used.iter().map(|d| d.display().to_string()).collect();
            let help = match used.as_slice() {
                [] => "leave `--wipe` out: no storage of it names a device".to_owned(),
                used => format!("its storages are made on {}", used.join(", ")),
            };
            let device = device.display();
            let what =
                format!("cannot wipe {device}: no storage of this experiment's plan is made on it");
            return Err(ExperimentError::refused(what, help));
        }
        self.wipe = wipe;
        Ok(self)
    }
}
