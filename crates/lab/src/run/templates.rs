//! Fills servers with data: loads them, or copies a cluster that was loaded with the same data.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_dataset::{self as dataset, BulkLoad};
use pgdyno_exec::directory::{nearest, too_little_room};
use pgdyno_exec::paths;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::clusters::{Build, ClusterKey};
use pgdyno_model::Treatment;
use pgdyno_model::progress::{Activity, Notice};
use pgdyno_model::units::Bytes;
use pgdyno_postgres::{Cluster, Template, template_path};

use super::server::Server;
use pgdyno_provision::provisioner::tablespace;
use pgdyno_provision::{BenchError, Context};

/// Identity of a cluster's data within a run: programs, data set, scale.
type Content = (Build, String, u32);

/// Loaded clusters that are set aside for other servers of the run.
#[derive(Default)]
pub(super) struct Templates(BTreeMap<Content, Template>);

impl Templates {
    /// Fills `server` with the data of `treatment`. Copies a cluster that was loaded with the same
    /// data, if there is one. Otherwise loads the data, and sets the cluster aside if others will
    /// need it.
    pub(super) fn fill(
        &mut self,
        server: &mut Server,
        resolved: &ResolvedExperiment,
        treatment: &Treatment,
        context: Context<'_>,
    ) -> Result<(), BenchError> {
        let key = resolved.key(treatment);
        let (wanted, keep) = (resolved.holds_what_others_will(&key), keeps(resolved, &key));
        if !wanted && !keep {
            return load(server, resolved, treatment, context);
        }
        let content = (key.build.clone(), key.data.clone(), key.scale);
        if let Server::Managed(cluster) = server {
            if keep && !self.0.contains_key(&content) {
                let path = template_path(&content_of(resolved, treatment, cluster));
                let kept = Template::kept(&path, cluster.journal());
                self.0.extend(kept.map(|kept| (content.clone(), kept)));
            }
            if let Some(template) = self.0.get(&content) {
                return copy(template, cluster, &key, context);
            }
        }
        load(server, resolved, treatment, context)?;
        if let Server::Managed(cluster) = server
            && let Some(template) = set_aside(resolved, treatment, cluster, keep, context)?
        {
            self.0.insert(content, template);
        }
        Ok(())
    }
}

/// Describes the data of cluster `key` for messages.
fn data_of(key: &ClusterKey) -> String {
    format!("{} at scale {}", key.data, key.scale)
}

/// Returns whether to keep the data of cluster `key` for later runs: the experiment says so, and
/// they lie in no tablespace.
fn keeps(resolved: &ResolvedExperiment, key: &ClusterKey) -> bool {
    resolved.experiment.workload.keep_template
        && resolved.experiment.storage[&key.storage].tablespaces.is_empty()
}

/// Describes everything that determines the bytes of a loaded cluster.
fn content_of(resolved: &ResolvedExperiment, treatment: &Treatment, cluster: &Cluster) -> String {
    let (data, plan) = (resolved.data(treatment), &resolved.plan);
    let identity =
        BulkLoad::new(data, treatment.scale, plan.seed_of_data(), &plan.loading).identity();
    let spec = cluster.spec();
    let (version, initdb) = (&spec.install.version, spec.initdb.join(" "));
    let (arch, pgdyno) = (std::env::consts::ARCH, env!("CARGO_PKG_VERSION"));
    // The definition too, since a workload's folder may have changed.
    format!(
        "{identity}\nPostgreSQL {version} on {arch}, initdb {initdb}\npgdyno {pgdyno}\n{data:?}"
    )
}

fn copy(
    template: &Template,
    cluster: &mut Cluster,
    key: &ClusterKey,
    context: Context<'_>,
) -> Result<(), BenchError> {
    let (data, storage) = (data_of(key), key.storage.clone());
    context.begin(Activity::CopyingData { data: data.clone(), storage: storage.clone() });
    let copied = template.copy_into(cluster, context.stop)?;
    context.note(Notice::DataCopied {
        data,
        storage,
        bytes: Bytes(copied.bytes),
        files: copied.files,
        reflinks: copied.reflinks,
    });
    Ok(())
}

/// Sets a copy of `cluster` aside if there is room for it; beyond the run if `keep`.
fn set_aside(
    resolved: &ResolvedExperiment,
    treatment: &Treatment,
    cluster: &mut Cluster,
    keep: bool,
    context: Context<'_>,
) -> Result<Option<Template>, BenchError> {
    let key = resolved.key(treatment);
    let data = data_of(&key);
    let named = resolved.experiment.storage[&key.storage].named_directory().filter(|_| !keep);
    let place = named.map_or_else(paths::default_storage_dir, Path::to_owned);
    let needed = dataset::room_needed(resolved.data(treatment), key.scale);
    // pgdyno's own directory is made only when something is to lie in it.
    if !too_little_room(nearest(&place), needed).is_ok_and(|lack| lack.is_none()) {
        context.note(Notice::NoTemplate { data, needed, directory: place });
        return Ok(None);
    }
    context.begin(Activity::MakingTemplate { data: data.clone() });
    let (mut template, _) = Template::copy(cluster, &place, context.stop)?;
    if keep {
        let content = content_of(resolved, treatment, cluster);
        template.keep(&template_path(&content), &content)?;
        context.note(Notice::TemplateKept { data });
    }
    Ok(Some(template))
}

fn load(
    server: &mut Server,
    resolved: &ResolvedExperiment,
    treatment: &Treatment,
    context: Context<'_>,
) -> Result<(), BenchError> {
    let mut placed = Vec::new();
    if let Server::Managed(_) = server {
        for (storage, tables) in &resolved.experiment.storage[&treatment.storage].tablespaces {
            placed.extend(tables.iter().map(|table| (table.clone(), tablespace(storage))));
        }
    }
    let loading = &resolved.plan.loading;
    if let Server::Managed(cluster) = server
        && !loading.settings.is_empty()
    {
        // The trial's own settings take their place before it begins.
        cluster.apply(&loading.settings, context.stop)?;
    }
    let seed = resolved.plan.seed_of_data();
    let (schema, mark) = (server.schema().to_owned(), server.mark());
    let usual = BulkLoad::new(resolved.data(treatment), treatment.scale, seed, loading);
    let mark = mark.as_deref().unwrap_or(usual.mark);
    let filling = BulkLoad { placed: &placed, schema: &schema, mark, ..usual };
    let loaded =
        dataset::bulk_load(&filling, &server.control_target(), context.progress, context.stop);
    // What became of the server tells more than that the connection broke.
    loaded.map(drop).map_err(|error| server.death().unwrap_or_else(|| error.into()))
}
