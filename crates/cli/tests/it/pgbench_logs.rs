//! `-l`: names and shapes of the log files.

use std::path::PathBuf;

use crate::pgbench_support::{Server, columns, numbers_as_n};
use pgdyno_test_support::test_name;

/// The lines of all files.
fn lines_of(files: &[PathBuf]) -> Vec<String> {
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Lines with their numbers as `n`; client and number are compared to the letter.
fn shape(files: &[PathBuf]) -> Vec<String> {
    let shape = |line: &String| {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap();
        let (client, n, rest) = (next(), next(), next());
        format!("{client} {n} {}", numbers_as_n(rest))
    };
    lines_of(files).iter().map(shape).collect()
}

#[test]
fn logs_have_pgbenchs_names_and_columns() {
    Server::each_at_once(test_name!(), |server| {
        server.fill();
        let serialization =
            "DO $$ BEGIN RAISE EXCEPTION 'meant' USING ERRCODE = '40001'; END $$;\n";
        server.script("serialization.sql", serialization);
        server.script("slow.sql", "\\sleep 10 ms\nSELECT 1;\n");
        // Options, number of files, lines of all files together (none: as it happens), columns.
        for (number, (args, files, lines, width)) in [
            ("-n -S -t 5 -l", 1, Some(5), 6),
            ("-n -S -t 5 -l -c 2 -j 2", 2, Some(10), 6),
            ("-n -S -t 5 -l -R 500", 1, Some(5), 7),
            ("-n -S -t 5 -l --max-tries=2", 1, Some(5), 7),
            ("-n -S -t 5 -l -R 500 --max-tries=2", 1, Some(5), 8),
            ("-n -t 5 -l -f serialization.sql", 1, Some(5), 6),
            ("-n -t 5 -l -f serialization.sql --failures-detailed", 1, Some(5), 6),
            ("-n -S -t 5 -l --sampling-rate=1", 1, Some(5), 6),
            ("-n -T 2 -f slow.sql -l --aggregate-interval=1", 1, None, 15),
            (
                "-n -T 2 -l --aggregate-interval=1 -R 100 --max-tries=2 -f serialization.sql -S",
                1,
                None,
                15,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let args = format!("{args} --log-prefix=log{number}");
            server.same(&args, &[]);
            let (theirs, ours) = (
                server.files("ref", &format!("log{number}.")),
                server.files("our", &format!("log{number}.")),
            );
            assert_eq!((theirs.len(), ours.len()), (files, files), "`{args}`: {theirs:?} {ours:?}");
            for (mine, file) in [(false, &theirs), (true, &ours)]
                .iter()
                .flat_map(|(m, fs)| fs.iter().map(move |f| (m, f)))
            {
                assert_eq!(columns(file), width, "`{args}`, ours: {mine}");
            }
            if let Some(lines) = lines {
                assert_eq!(
                    (lines_of(&theirs).len(), lines_of(&ours).len()),
                    (lines, lines),
                    "`{args}`"
                );
                assert_eq!(shape(&theirs), shape(&ours), "`{args}`");
            }
            for file in &ours {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let rest = name.strip_prefix(&format!("log{number}.")).unwrap();
                assert!(rest.split('.').all(|part| part.parse::<u32>().is_ok()), "{name}");
            }
        }
    });
}

#[test]
fn a_skipped_transaction_is_logged_as_skipped() {
    for server in Server::each(test_name!()) {
        server.fill();
        server.script("late.sql", "SELECT pg_sleep(0.005);\n");

        let args = "-n -t 60 -R 1000 -L 2 -l -f late.sql --log-prefix=skip";
        server.same(args, &[]);
        for who in ["ref", "our"] {
            let text = std::fs::read_to_string(&server.files(who, "skip.")[0]).unwrap();
            let skipped = text.lines().find(|l| l.split(' ').nth(2) == Some("skipped")).unwrap();
            assert_eq!(skipped.split(' ').count(), 7, "{who}: {skipped}");
        }
    }
}
