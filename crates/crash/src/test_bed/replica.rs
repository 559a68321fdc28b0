//! Test beds whose disks show what another disk recorded.

use std::path::{Path, PathBuf};

use pgdyno_durability::Unseen;
use pgdyno_model::progress::Activity;
use pgdyno_postgres::Cluster;

use super::{TestBed, provisioner};
use crate::subject::Subject;
use pgdyno_provision::{BenchError, Context};

/// There if the kernel's btrfs mounts a clone beside another one (Linux 6.7 and later), once btrfs
/// is loaded.
const BTRFS_CLONES: &str = "/sys/fs/btrfs/features/temp_fsid";

impl TestBed {
    /// Whether the kernel mounts clones of its filesystem at a time. Without that it has no
    /// replicas.
    pub(crate) fn can_have_replicas(&self) -> bool {
        let filesystem = self.facts.asked.as_ref().and_then(|asked| asked.filesystem.as_ref());
        filesystem
            .is_none_or(|filesystem| filesystem.name != "btrfs" || Path::new(BTRFS_CLONES).exists())
    }

    /// Makes a test bed beside this one whose disk shows what this one's recorded. Its own disk has
    /// no power yet.
    ///
    /// # Errors
    /// A storage or a directory cannot be made.
    pub(crate) fn replica(
        &self,
        subject: &Subject,
        context: Context<'_>,
    ) -> Result<Self, BenchError> {
        let Some(original) = &self.cluster else {
            unreachable!("a test bed that was taken down is given away with that")
        };
        let on_clone = |storage: &Path| Ok(original.on_clone(storage, context.stop)?);
        Self::on_clone(subject, context, self.recorded.clone(), on_clone)
    }

    /// Makes a test bed whose disk shows what a disk that is gone recorded. Its image and its log
    /// lie in `recorded`, and the cluster on it is called `cluster`.
    ///
    /// # Errors
    /// As [`Self::replica`].
    pub(crate) fn of_stretch(
        recorded: &Path,
        cluster: &str,
        subject: &Subject,
        context: Context<'_>,
    ) -> Result<Self, BenchError> {
        context.begin(Activity::MakingTestBed { subject: subject.name.clone() });
        let on_clone = |storage: &Path| {
            let (install, settings) = (subject.install.clone(), subject.server_settings());
            provisioner(subject, context).clone_of_cluster(storage, cluster, install, settings)
        };
        Self::on_clone(subject, context, Some(recorded.to_owned()), on_clone)
    }

    fn on_clone(
        subject: &Subject,
        context: Context<'_>,
        recorded: Option<PathBuf>,
        cluster: impl FnOnce(&Path) -> Result<Cluster, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut asked = subject.storages[&subject.storage].clone();
        asked.device = asked.device.overlaid(&subject.device);
        // Clones share their UUID, which xfs refuses otherwise.
        let xfs = asked.filesystem.as_mut().filter(|filesystem| filesystem.name == "xfs");
        xfs.into_iter().for_each(|xfs| xfs.mount.push("nouuid".into()));
        let data = provisioner(subject, context).storage(&subject.storage, &asked, None)?;
        let mut replica = Self {
            cluster: Some(cluster(&data.stack.path())?),
            facts: data.facts.clone(),
            load: subject.load(),
            objects: Err(Unseen::NotApplicable("the recording has them".into())),
            storages: vec![data],
            powered_off: false,
            mounts: Vec::new(),
            recorded,
        };
        replica.cut_power(0.0)?;
        Ok(replica)
    }
}
