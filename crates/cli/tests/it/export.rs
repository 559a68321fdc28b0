//! `pgdyno export`: a stored run in every format, and what it refuses.

use std::fs;

use crate::support::{World, write_old_store};

/// A world whose store is one of pgdyno 0.1.0 with a run of `quickstart`.
fn world() -> World {
    let world = World::new();
    write_old_store(&world.store());
    world
}

#[test]
fn documents_go_to_standard_output_or_to_a_file_that_is_replaced() {
    let world = world();
    let starts = [
        ("json", "{\"schema\":\"pgdyno.export/1\",\"redacted\":false,"),
        ("hdr", "#pgdyno quickstart-"),
        ("markdown", "### pgdyno: quickstart-"),
    ];
    for (format, start) in starts {
        let printed = world.run(&["export", "--format", format]);
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{format}");
        assert!(printed.out.starts_with(start), "{format}: {}", printed.out);
        let file = world.file("document", "an earlier file");
        let path = file.to_str().unwrap();
        let written = world.run(&["export", "latest", "--format", format, "-o", path]);
        assert_eq!((written.code, written.err.as_str()), (Some(0), ""), "{format}");
        assert!(written.out.starts_with("export of quickstart-"), "{}", written.out);
        assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), printed.out.trim_end());
    }
    let redacted = world.run(&["export", "--format", "json", "--redact"]).json();
    assert_eq!(redacted["redacted"], true);
}

#[test]
fn tables_go_into_a_new_or_empty_folder() {
    let world = world();
    for format in ["csv", "parquet"] {
        if format == "parquet" && !cfg!(feature = "parquet") {
            continue;
        }
        let folder = world.path(format);
        let arguments = ["export", "--format", format, "-o", folder.to_str().unwrap()];
        let written = world.run(&arguments);
        assert_eq!((written.code, written.err.as_str()), (Some(0), ""), "{format}");
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let tables = ["generators", "seconds", "statements", "telemetry", "trials"];
        assert_eq!(names, tables.map(|table| format!("{table}.{format}")));
        world.run(&arguments).exits(1).says("not empty").says("help: ");
    }
}

#[test]
fn what_cannot_be_exported_is_refused_with_advice() {
    let world = world();
    let file = world.file("a-file", "text");
    let below = file.join("folder");
    for (arguments, words) in [
        (&["export", "--format", "csv"][..], &["standard output", "-o FOLDER"][..]),
        (&["export", "--format", "parquet", "-o", "-"], &["standard output"]),
        (&["export", "quickstat", "--format", "json"], &["quickstat", "did you mean"]),
        (&["export", "--format", "csv", "-o", file.to_str().unwrap()], &["a-file", "help: "]),
        (&["export", "--format", "json", "-o", below.to_str().unwrap()], &["a-file", "help: "]),
        (&["export", "--format", "svg"], &["no charts", "pgdyno report RUN -o FILE.html"]),
    ] {
        let ended = world.run(arguments);
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{arguments:?}");
        for word in words {
            assert!(ended.err.contains(word), "{arguments:?}: {}", ended.err);
        }
    }
    world.run(&["export", "--format", "xlsx"]).exits(1).says("parquet");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
}
