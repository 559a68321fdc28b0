//! Parameters of kernel modules that this machine's kernel lacks.
use crate::common::Place;
use crate::common::stacks::plan;
use pgdyno_model::advice::with_causes;
use pgdyno_model::storage::{DeviceSettings, Storage};
use pgdyno_model::{Advice, FailureKind};
use pgdyno_storage::{StorageError, Wipe};

#[test]
fn a_module_or_a_parameter_that_the_kernel_lacks_makes_the_storage_unavailable() {
    let test = "a_module_or_a_parameter_that_the_kernel_lacks_makes_the_storage_unavailable";
    let place = Place::new();
    let planned = |module: &str, parameter: &str| {
        let parameters = [(parameter.to_owned(), "1".to_owned())].into();
        let device = DeviceSettings {
            module_parameters: [(module.to_owned(), parameters)].into(),
            ..DeviceSettings::default()
        };
        let storage = Storage { device, ..Storage::directory(Some(place.path().to_owned())) };
        plan(&storage, place.path(), &Wipe::default())
    };
    for (module, parameter, help) in [
        ("no_such_module", "depth", "modprobe no_such_module"),
        ("kernel", "no_such_parameter", "modinfo -p kernel"),
    ] {
        let error = planned(module, parameter).unwrap_err();
        if matches!(error, StorageError::NotRoot { .. }) {
            println!("skipped: {test}: {error}");
            return;
        }
        assert_eq!(error.kind(), FailureKind::Unavailable, "{error}");
        assert!(with_causes(&error).contains(&format!("/sys/module/{module}")), "{error}");
        assert!(error.help().unwrap().contains(help), "{error}");
    }
}
