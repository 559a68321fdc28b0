//! The workloads that are built in. A new folder of `workloads/` needs its line here.

/// The files of a folder: name and text.
pub(crate) type Files = &'static [(&'static str, &'static str)];

macro_rules! folder {
    ($folder:literal, [$($file:literal),+]) => {
        (
            $folder,
            &[$(($file, include_str!(concat!("../../../workloads/", $folder, "/", $file)))),+],
        )
    };
}

/// The folders of `workloads/`, in alphabetical order.
pub(crate) static WORKLOADS: &[(&str, Files)] = &[
    folder!("group-commit", ["group-commit.sql", "schema.sql", "workload.toml"]),
    folder!("group-commit-block", ["group-commit-block.sql", "workload.toml"]),
    folder!("group-commit-function", ["group-commit-function.sql", "workload.toml"]),
    folder!("htap", ["balances.sql", "transfers.sql", "workload.toml"]),
    folder!(
        "ingest",
        ["batch.sql", "keep.sql", "keys.sql", "partitions.sql", "schema.sql", "workload.toml"]
    ),
    folder!("numbers", ["keys.sql", "numbers.sql", "schema.sql", "workload.toml"]),
    folder!("numbers-delete", ["numbers-delete.sql", "workload.toml"]),
    folder!("numbers-insert", ["numbers-insert.sql", "workload.toml"]),
    folder!("numbers-reindexed", ["numbers-reindexed.sql", "workload.toml"]),
    folder!("numbers-update", ["numbers-update.sql", "workload.toml"]),
    folder!("numbers-updated", ["numbers-updated.sql", "workload.toml"]),
    folder!("numbers-updated-100", ["numbers-updated-100.sql", "workload.toml"]),
    folder!("numbers-updated-50", ["numbers-updated-50.sql", "workload.toml"]),
    folder!("numbers-updated-6", ["numbers-updated-6.sql", "workload.toml"]),
    folder!("numbers-vacuumed", ["numbers-vacuumed.sql", "workload.toml"]),
    folder!("select-only", ["select-only.sql", "workload.toml"]),
    folder!("simple-update", ["simple-update.sql", "workload.toml"]),
    folder!(
        "sysbench-oltp-read-only",
        ["keys.sql", "oltp_read_only.sql", "schema.sql", "workload.toml"]
    ),
    folder!("sysbench-oltp-read-write", ["oltp_read_write.sql", "workload.toml"]),
    folder!("sysbench-oltp-write-only", ["oltp_write_only.sql", "workload.toml"]),
    folder!("tpcb-like", ["schema.sql", "tpcb-like.sql", "workload.toml"]),
    folder!(
        "tprocc",
        [
            "delivery.sql",
            "keys.sql",
            "new_order.sql",
            "order_status.sql",
            "payment.sql",
            "schema.sql",
            "stock_level.sql",
            "workload.toml"
        ]
    ),
    folder!(
        "tprocc-statements",
        [
            "delivery.sql",
            "new_order.sql",
            "order_status.sql",
            "payment.sql",
            "stock_level.sql",
            "workload.toml"
        ]
    ),
    folder!("user-login", ["login.sql", "schema.sql", "workload.toml"]),
    folder!("user-login-setrandom", ["login.sql", "workload.toml"]),
    folder!("user-logout", ["logout.sql", "workload.toml"]),
    folder!("ycsb-a", ["keys.sql", "read.sql", "schema.sql", "update.sql", "workload.toml"]),
    folder!("ycsb-b", ["workload.toml"]),
    folder!("ycsb-c", ["workload.toml"]),
    folder!("ycsb-d", ["insert.sql", "read_latest.sql", "workload.toml"]),
    folder!("ycsb-e", ["scan.sql", "workload.toml"]),
    folder!("ycsb-f", ["read_modify_write.sql", "workload.toml"]),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        let below = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap();
            let mut names: Vec<String> =
                entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let folders: Vec<_> = WORKLOADS.iter().map(|(folder, _)| *folder).collect();
        assert_eq!(below(&root), folders);
        for (folder, files) in WORKLOADS {
            let built_in: Vec<_> = files.iter().map(|(name, _)| *name).collect();
            assert_eq!(below(&root.join(folder)), built_in);
        }
    }
}
