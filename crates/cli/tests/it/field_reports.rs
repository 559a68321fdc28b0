//! The table of docs/field-reports/README.md: every item has the report's line, and every command
//! in it is one that pgdyno takes.
//!
//! Runs are planned (`--dry-run`), probes are made short, and `audit` has to find what the item's
//! state names. Each distinct command is executed once.

use pgdyno_test_support::needs;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{self, World, elements, ended};

/// Items in the table (count).
const ITEMS: usize = 66;

/// How many lines the text of each report has.
const REPORTS: [(&str, u32); 5] =
    [("000", 397), ("001", 215), ("002", 139), ("003", 70), ("004", 371)];

/// A row of the table.
struct Item {
    number: usize,
    report: String,
    lines: String,
    command: String,
    state: String,
}

impl Item {
    /// The commands, in backticks in the column *command*.
    fn commands(&self) -> Vec<&str> {
        let is_command = |part: &&str| part.starts_with("pgdyno ") || part.starts_with("examples/");
        self.command.split('`').filter(is_command).collect()
    }

    fn is_answered(&self) -> bool {
        self.state.starts_with('●') || self.state.starts_with('◐')
    }
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The page with the table.
fn page() -> String {
    std::fs::read_to_string(support::docs::path("field-reports/README.md")).unwrap()
}

fn items() -> Vec<Item> {
    let page = page();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> =
            line.strip_prefix('|')?.trim_end().strip_suffix('|')?.split('|').collect();
        let number = cells[0].trim().parse().ok()?;
        let [_, report, lines, _, command, state] = cells.as_slice() else {
            panic!("six columns: {line}")
        };
        let cell = |text: &str| text.trim().to_owned();
        let (report, lines) = (cell(report), cell(lines));
        Some(Item { number, report, lines, command: cell(command), state: cell(state) })
    });
    rows.collect()
}

#[test]
fn every_item_names_its_lines_and_answered_ones_a_command() {
    let items = items();
    let numbers: Vec<usize> = items.iter().map(|item| item.number).collect();
    assert_eq!(numbers, (1..=ITEMS).collect::<Vec<_>>());
    for item in &items {
        let number = item.number;
        let (_, length) = REPORTS
            .iter()
            .find(|(report, _)| *report == item.report)
            .unwrap_or_else(|| panic!("item {number}: no report {}", item.report));
        let lines: Vec<Option<u32>> =
            item.lines.split([',', '–']).map(|line| line.trim().parse().ok()).collect();
        assert!(
            lines.iter().all(|line| line.is_some_and(|line| (1..=*length).contains(&line))),
            "item {number}: `{}` are no lines of report {}",
            item.lines,
            item.report
        );
        assert!(lines.is_sorted(), "item {number}: {}", item.lines);
        assert!(
            item.is_answered() || item.state.starts_with('–'),
            "item {number}: its state is `{}`",
            item.state
        );
        assert!(!item.is_answered() || !item.commands().is_empty(), "item {number}: no command");
        // In part: the page says what is missing.
        assert_ne!(item.state, "◐", "item {number}: what is missing?");
    }
}

/// The words of a command line: blanks part them, single quotes keep them together.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in command.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    assert!(!is_quoted, "{command}");
    words
}

/// Checks that a script of `examples/` can be started and that its interpreter reads it.
fn check_script(command: &str) {
    let script = root().join(words(command).remove(0));
    let mode = script.metadata().unwrap_or_else(|e| panic!("{command}: {e}")).permissions().mode();
    assert_ne!(mode & 0o111, 0, "{command} is not executable");
    let (program, first): (_, &[&str]) = match script.extension().and_then(|name| name.to_str()) {
        Some("sh") => ("sh", &["-n"]),
        Some("py") => ("python3", &["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"]),
        _ => panic!("{command}: this test does not know its language"),
    };
    ended(Command::new(program).args(first).arg(&script).output().unwrap())
        .with_case(command)
        .exits(0);
}

#[test]
fn every_command_of_the_table_is_taken() {
    let world = World::new();
    let disk = world.disk().display().to_string();
    let items = items();
    let commands: BTreeSet<&str> = items.iter().flat_map(Item::commands).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let Some(args) = command.strip_prefix("pgdyno ") else {
            check_script(command);
            continue;
        };
        let mut args = words(args);
        let more: &[&str] = match args[0].as_str() {
            "run" | "crash" => &["--dry-run"],
            "fsync" => &[&disk, "--duration", "1ms"],
            "disk" => &[&disk, "--dry-run"],
            "doctor" => &[&disk],
            "audit" => continue, // below, with what it finds
            other => panic!("{command}: this test does not know `{other}`"),
        };
        args.extend(more.iter().map(|word| (*word).to_owned()));
        let ended = world.run(&args).with_case(command).exits(0);
        if args[0] == "run" {
            assert!(ended.out.contains("nothing is done: this is the plan"), "{command}");
        }
        world.assert_nothing_left();
    }
}

#[test]
fn audit_finds_in_the_reports_what_the_table_says() {
    let world = World::new();
    let mut rules = 0;
    for item in items() {
        for command in item.commands().iter().filter(|c| c.starts_with("pgdyno audit")) {
            let args = words(command.strip_prefix("pgdyno ").unwrap());
            let mut audit = world.command(&args);
            let audited = ended(audit.arg("--json").current_dir(root()).output().unwrap());
            // 3: it found something serious.
            assert!(matches!(audited.code, Some(0 | 3)), "{command}: {}", audited.err);
            let view = audited.json();
            let found: Vec<&str> = elements(&view["findings"])
                .map(|finding| finding["rule"].as_str().unwrap())
                .collect();
            for rule in item.state.split('`').skip(1).step_by(2) {
                assert!(
                    found.contains(&rule),
                    "item {}: `{rule}` is not in {found:?}",
                    item.number
                );
                rules += 1;
            }
        }
    }
    assert!(rules > 3, "{rules} findings are named");
}

/// Items for which a machine may lack kernel, program or drives: the item, the command that plans
/// it, and the storage whose steps the plan shows.
const MISSING_HERE: [(usize, &str, &str); 10] = [
    (10, RAID_CACHE, "disk"),
    (18, "filesystems", "jfs"),
    (18, "filesystems", "reiserfs"),
    (23, "filesystem-options", "ext4-8k"),
    (23, "filesystem-options", "btrfs-8k"),
    (24, "filesystem-options", "reiserfs-notail"),
    (41, "big-table --size raid0", "two"),
    (56, ZFS_PARAMETERS, "zfs"),
    (60, "zfs-xfs --size report", "zfs"),
    (65, "zfs-xfs", "zfs"),
];

const RAID_CACHE: &str = "ssd-acceptance --set 'storage.disk.device.raid_volume={ tool = \
    \"megacli\", controller = 0, volume = 0 }' --set 'factors.device.raid_cache=[\"write-back\", \
    \"write-through\"]'";

const ZFS_PARAMETERS: &str = "zfs-xfs --set 'storage.zfs.device.module_parameters={ zfs = { \
    zfs_prefetch_disable = 1, zfs_arc_shrink_shift = 14 } }'";

/// Items whose program has recorded answers in tests, and no plan.
const RECORDED: [usize; 1] = [2];

#[test]
fn only_what_a_machine_lacks_is_answered_in_part() {
    let planned = |number| MISSING_HERE.iter().any(|(item, ..)| *item == number);
    let items = items();
    for item in items.iter().filter(|item| item.state.starts_with('◐')) {
        let number = item.number;
        assert!(planned(number) || RECORDED.contains(&number), "item {number}: why in part?");
        assert!(item.state.contains("not run here: "), "item {number}: what was probed?");
    }
    let answered = items.iter().filter(|item| item.state.starts_with('●')).count();
    let says = format!("{answered} of the {ITEMS} are ●");
    assert!(page().contains(&says), "{says}");
}

/// The lines of a plan's part under `head`.
fn part_of_plan<'a>(plan: &'a str, head: &str) -> Vec<&'a str> {
    let lines = plan.lines().skip_while(|line| *line != head);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn what_a_machine_lacks_is_planned_all_the_same_and_its_reason_names_what_was_probed() {
    needs!(support::is_root);
    const WHY: &str = "  cannot be made here: ";
    let world = World::new();
    let items = items();
    for (number, command, storage) in MISSING_HERE {
        let item = &items[number - 1];
        let named = format!("pgdyno run {command}");
        assert!(item.commands().contains(&named.as_str()), "item {number}: {named}");
        let args = words(&format!("run {command} --dry-run"));
        let planned = world.run(&args).with_case(named).exits(0);
        let of_storage = part_of_plan(&planned.out, &format!("Storage {storage}"));
        let (why, mut steps): (Vec<&str>, Vec<&str>) =
            of_storage.into_iter().partition(|line| line.starts_with(WHY));
        let why = why.first();
        // What is only set on a directory is set before each trial.
        if steps.len() <= 1 {
            steps = part_of_plan(&planned.out, "Before each trial");
        }
        insta::assert_snapshot!(format!("{number}-{}-{storage}", args[1]), steps.join("\n"));
        // What was tried, and what it takes.
        assert!(why.is_none_or(|why| why.contains("(help: ")), "item {number}: {why:?}");
        let says = item.state.contains("not run here");
        assert!(why.is_none() || says, "item {number}: its state is `{}`; {why:?}", item.state);
    }
    world.assert_nothing_left();
}
