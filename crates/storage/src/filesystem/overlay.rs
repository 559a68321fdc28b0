//! An overlay over a directory: where PostgreSQL's files lie in a container without a volume.
//!
//! Lower directory (empty), upper directory and work directory lie beside the mount point, in the
//! stack's own marked directory: every file that PostgreSQL makes is written through overlayfs into
//! the upper one.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_exec::Step;
use pgdyno_exec::mount::Mount;
use pgdyno_model::storage::FilesystemFacts;

use super::options::{self, MountRule, Shown};
use super::{Filesystem, FilesystemError, Tool, Volume, block};

/// overlayfs.
pub(super) struct Overlay;

const NAME: &str = "overlay";

const DIRECTORIES: [&str; 3] = ["lowerdir", "upperdir", "workdir"];

const RULES: &[MountRule] = &[
    MountRule { asked: "index=off", shown: Shown::Unless(&["index=on"]) },
    MountRule { asked: "metacopy=off", shown: Shown::Unless(&["metacopy=on"]) },
    MountRule { asked: "nfs_export=off", shown: Shown::Unless(&["nfs_export=on"]) },
    MountRule {
        asked: "redirect_dir=off",
        shown: Shown::Unless(&["redirect_dir=on", "redirect_dir=follow"]),
    },
    MountRule { asked: "xino=off", shown: Shown::Unless(&["xino=on", "xino=auto"]) },
    MountRule { asked: "xino=auto", shown: Shown::Unless(&["xino=on", "xino=off"]) },
];

fn home<'a>(volume: &Volume<'a>) -> &'a Path {
    volume.mount_point.parent().unwrap_or(volume.mount_point)
}

fn mount_options(volume: &Volume<'_>) -> Vec<String> {
    options::merged(&["noatime"], &volume.choice.mount)
}

fn mount_of(volume: &Volume<'_>) -> Mount {
    let directory = |key: &str| format!("{key}={}", home(volume).join(key).display());
    Mount {
        filesystem: NAME.to_owned(),
        source: volume.label.into(),
        target: volume.mount_point.to_owned(),
        options: DIRECTORIES.map(directory).into_iter().chain(mount_options(volume)).collect(),
    }
}

impl Filesystem for Overlay {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tools(&self) -> &'static [Tool] {
        &[]
    }

    fn check(&self, volume: &Volume<'_>) -> Result<(), FilesystemError> {
        let choice = volume.choice;
        let unused = [
            ("mkfs", choice.mkfs.first()),
            ("pool", choice.pool.keys().next()),
            ("dataset", choice.dataset.keys().next()),
        ];
        for (field, word) in unused {
            if let Some(word) = word {
                return Err(self.refuse(field, word, "no program makes an overlay", "use `mount`"));
            }
        }
        for option in options::merged(&[], &choice.mount) {
            if let Some((why, help)) = block::no_option(&option) {
                return Err(self.refuse("mount", &option, why, help));
            }
            if DIRECTORIES.iter().any(|key| option.starts_with(key)) {
                let why = "pgdyno makes the overlay's directories itself, and takes them down";
                return Err(self.refuse(
                    "mount",
                    &option,
                    why,
                    "name the directory they lie in as `backing`",
                ));
            }
        }
        let path = home(volume).display().to_string();
        if path.contains([':', ',', '\\']) {
            let why = "overlayfs separates its directories by `:`, and options end at `,`";
            return Err(self.refuse(
                "backing",
                &path,
                why,
                "name a directory without them in its path",
            ));
        }
        Ok(())
    }

    fn check_machine(&self) -> Result<(), FilesystemError> {
        block::kernel_has(
            NAME,
            "a kernel with CONFIG_OVERLAY_FS, as most distributions' have it",
            &[],
        )
    }

    fn make(&self, volume: &Volume<'_>) -> Vec<Step> {
        let directory = |key: &str| {
            let mode = if key == "workdir" { 0o700 } else { 0o755 };
            Step::MakeDirectory { path: home(volume).join(key), mode, owner: None }
        };
        DIRECTORIES.map(directory).into_iter().chain([Step::Mount(mount_of(volume))]).collect()
    }

    fn take_down(&self, volume: &Volume<'_>) -> Vec<Step> {
        vec![super::unmount(&mount_of(volume))]
    }

    fn read_back(&self, volume: &Volume<'_>) -> Result<FilesystemFacts, FilesystemError> {
        let mount = mount_of(volume);
        let mounted = block::mounted(NAME, &mount.source, volume.mount_point)?;
        let shown = mounted.options();
        if let Some(option) = options::first_missing(&mount.options, &shown, RULES) {
            let instead = options::instead(option, &shown, &shown);
            return Err(self.not_obtained(volume, option.to_owned(), instead));
        }
        Ok(FilesystemFacts {
            kind: mounted.filesystem.clone(),
            driver: mounted.filesystem.clone(),
            // The mount is all there is to it.
            tools: String::new(),
            mount_point: mounted.point.display().to_string(),
            source: mounted.source.clone(),
            options: shown,
            properties: BTreeMap::new(),
        })
    }
}
