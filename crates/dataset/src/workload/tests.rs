//! Workloads, as they are read.

use super::*;

#[test]
fn every_built_in_workload_is_whole() {
    assert!(names().contains(&"tpcb-like") && names().len() >= 3);
    for name in names() {
        let workload = load(name, &[]).unwrap();
        assert!(!workload.scripts.is_empty() && !workload.data.table_names().is_empty(), "{name}");
    }
    assert_eq!(load("select-only", &[]).unwrap().data.name, "tpcb-like");
}

#[test]
fn a_slip_is_answered_with_the_nearest() {
    let error = load("tpcb", &[]).unwrap_err();
    assert!(error.help().unwrap().contains("built in are tpcb-like, "), "{:?}", error.help());
}

#[test]
fn a_folder_of_the_users_can_share_the_data_of_a_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    std::fs::write(folder.path().join("s.sql"), "SELECT 1;\n").unwrap();
    let toml = "description = \"one\"\n[data]\nof = \"tpcb-like\"\n[[script]]\nfile = \"s.sql\"\n";
    std::fs::write(folder.path().join("workload.toml"), toml).unwrap();
    let workload = load(&name, &[]).unwrap();
    assert_eq!(
        (workload.data.name.as_str(), workload.scripts[0].text.as_str()),
        ("tpcb-like", "SELECT 1;\n")
    );
    std::fs::write(folder.path().join("workload.toml"), toml.replace("s.sql", "t.sql")).unwrap();
    assert!(load(&name, &[]).unwrap_err().to_string().contains("t.sql"));
}

#[test]
fn who_shares_data_shares_the_conditions_that_hold_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.sql"), "SELECT 1;\n").unwrap();
    let toml = "description = 'one'\n[data]\nof = 'tprocc'\n[[script]]\nfile = 's.sql'\n\
        [[consistency]]\ncondition = 'own'\nbroken = 'SELECT 0'\n";
    std::fs::write(folder.path().join("workload.toml"), toml).unwrap();
    let workload = load(&folder.path().display().to_string(), &[]).unwrap();
    let (own, shared) = workload.consistency.split_last().unwrap();
    assert_eq!(shared, load("tprocc", &[]).unwrap().consistency);
    assert_eq!(own.condition, "own");
}

#[test]
fn scripts_have_pauses_that_are_multiplied() {
    let scripts = "[[script]]\nfile = 'a.sql'\nkeying_time = '18s'\nthink_time = '500ms'\n\
        [[script]]\nfile = 'b.sql'\n";
    let workload = folder(scripts).unwrap();
    assert_eq!(workload.scripts[0].pauses.to_string(), "keying time 18s, think time 500ms");
    assert!(workload.scripts[1].pauses.is_empty() && workload.has_pauses());
    assert_eq!(workload.pauses, 1.0);
    assert_eq!(folder(&format!("pauses = 0\n{scripts}")).unwrap().pauses, 0.0);
    for wrong in ["-1", "nan", "1001"] {
        let error = folder(&format!("pauses = {wrong}\n{scripts}")).unwrap_err().to_string();
        assert!(error.ends_with("is no number from 0 to 1000"), "{error}");
    }
    let tprocc = load("tprocc", &[]).unwrap();
    let pauses: Vec<u64> =
        tprocc.scripts.iter().map(|s| s.pauses.keying_time.0.as_secs()).collect();
    assert_eq!((pauses, tprocc.pauses), (vec![18, 3, 2, 2, 2], 0.0));
}

#[test]
fn variables_have_values_unless_a_load_says_otherwise() {
    let script = "[[script]]\nfile = 'a.sql'\n";
    let workload =
        folder(&format!("define = {{ skew = 1.5, whole = 2.0, on = true }}\n{script}")).unwrap();
    let defined: Vec<_> =
        workload.define.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(defined, [("on", "true"), ("skew", "1.5"), ("whole", "2.0")]);
    let error = folder(&format!("define = {{ 'a-b' = 1 }}\n{script}")).unwrap_err().to_string();
    assert!(error.ends_with("`a-b` in [define] cannot be a variable's name"), "{error}");
}

#[test]
fn a_script_of_another_folder_is_named_by_its_path() {
    let (a, b) = (load("ycsb-a", &[]).unwrap(), load("ycsb-b", &[]).unwrap());
    let scripts = |w: &Workload| w.scripts.iter().map(|s| s.text.clone()).collect::<Vec<_>>();
    assert_eq!((scripts(&a), a.data.name, b.scripts[0].weight), (scripts(&b), b.data.name, 95));
}

/// The workload of a folder with this `workload.toml` and scripts `a.sql` and `b.sql`.
fn folder(toml: &str) -> Result<Workload, WorkloadError> {
    folder_with(toml, &[])
}

fn folder_with(toml: &str, own: &[(PathBuf, u32)]) -> Result<Workload, WorkloadError> {
    let folder = tempfile::tempdir().unwrap();
    for script in ["a.sql", "b.sql"] {
        std::fs::write(folder.path().join(script), "SELECT 1;\n").unwrap();
    }
    let head = "description = \"one\"\ndata = { of = \"tpcb-like\" }\n";
    std::fs::write(folder.path().join("workload.toml"), format!("{head}{toml}")).unwrap();
    load(&folder.path().display().to_string(), own)
}

const GROUPS: &str = "headline = 'b'\n\
    [[group]]\nname = 'readers'\nclients = 4\nthink_time = '40ms'\n\
    script = [{ file = 'a.sql', weight = 3 }, { file = 'b.sql' }]\n\
    [[group]]\nname = 'writers'\nclients = 1\nrate = '500 for 1m'\nscript = [{ file = 'b.sql' }]\n";

#[test]
fn groups_share_out_the_scripts() {
    let workload = folder(GROUPS).unwrap();
    let scripts: Vec<_> = workload.scripts.iter().map(|s| (s.name.as_str(), s.weight)).collect();
    assert_eq!(scripts, [("a", 3), ("b", 1), ("b", 1)]);
    assert_eq!(workload.headline.as_deref(), Some("b"));
    let groups: Vec<_> =
        workload.groups.iter().map(|group| (group.scripts, group.to_string())).collect();
    assert_eq!(groups[0], (2, "readers: 4 clients, think time 40ms".to_owned()));
    assert_eq!(groups[1].0, 1);
    assert_eq!(groups[1].1, "writers: 1 client, transactions due each second: 500 for 1m");
}

#[test]
fn groups_that_cannot_be_are_answered_with_the_reason() {
    let script = "script = [{ file = 'a.sql' }]\n";
    for (toml, words) in [
        (format!("[[group]]\nname = 'r'\n{script}"), "group `r` has no clients"),
        (format!("[[group]]\nname = 'r'\nclients = 0\n{script}"), "group `r` has no clients"),
        (format!("[[group]]\nname = 'a b'\nclients = 1\n{script}"), "no name of a group"),
        ("[[group]]\nname = 'r'\nclients = 1\n".into(), "`r` has no script with a weight"),
        (format!("{GROUPS}[[group]]\nname = 'readers'\nclients = 1\n{script}"), "two groups"),
        (format!("{GROUPS}[[script]]\nfile = 'a.sql'\n"), "exclude each other"),
        (format!("{GROUPS}[count]\nquery = 'SELECT 1'\nrows_per_transaction = 1\n"), "`[count]`"),
        (GROUPS.replace("'b'", "'c'"), "`headline` names `c`, which is no script of it"),
        (GROUPS.replace("500 for 1m", "fast"), "fast"),
    ] {
        let error = folder(&toml).unwrap_err().to_string();
        assert!(error.contains(words), "{toml}\n{error}");
    }
    let own = [(PathBuf::from("/dev/null"), 1)];
    let error = folder_with(GROUPS, &own).unwrap_err().to_string();
    assert!(error.contains("which yours cannot replace"), "{error}");
}
