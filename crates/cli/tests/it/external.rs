//! A server that pgdyno does not own has the same catalogue before and after, whatever ends a run
//! and whatever others do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::pgbench_support::Server;
use crate::support::{World, finish, with_sets};
use pgdyno_test_support::test_name;

/// Everything that the server's catalogues hold, as `pg_dumpall` writes it down.
fn dump(server: &Server) -> String {
    let output = server.server_program("pg_dumpall").arg("--schema-only").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Some versions write a number drawn at random.
    text.lines()
        .filter(|line| !line.contains("restrict "))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Makes and drops tables of its own until told to end.
fn others(server: &Server, end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        for sql in [
            "create table public.pgbench_others (a int primary key)",
            "comment on table public.pgbench_others is 'made by pgdyno'",
            "create view public.upon_others as select * from public.pgbench_others",
            "drop view public.upon_others",
            "drop table public.pgbench_others",
        ] {
            server.ask("our", sql);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn an_external_server_has_the_same_catalogue_after_runs_and_after_a_killed_one() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let world = World::new();
    server.ask(
        "our",
        "create schema theirs; create table theirs.precious (a int); grant select on \
         theirs.precious to public",
    );
    server.ask("our", "alter database our set work_mem = '5MB'");
    server.ask("our", "alter system set checkpoint_timeout = '7min'");
    let before = dump(&server);
    let dsn = format!(
        "postgres.dsn=\"host={} user=postgres dbname=our\"",
        server.directory("server").display()
    );
    let small = format!("workload.name={}", world.small_workload());
    let sets = [
        dsn.as_str(),
        "load.duration=1s",
        "load.rate=200",
        "load.warm_up=100ms",
        "workload.scale=1",
        "factors={}",
        "factors.checkpoint_timeout=[\"10min\", \"20min\"]",
        "postgres.alter_system=true",
        "between.prewarm=true",
        "experiment.repeats=1",
        &small,
    ];
    let run = with_sets(&["run", "quickstart"], sets);
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| others(&server, &end));
        world.run(&run).exits(0);

        let trials = world.trials_stored();
        let mut child = world.spawn(&run);
        world.until("a trial of the second run to be stored", || world.trials_stored() > trials);
        child.kill().unwrap();
        finish(child);
        end.store(true, Ordering::Relaxed);
        others.join().unwrap();
    });
    let left = dump(&server);
    assert!(
        left.contains("CREATE SCHEMA pgdyno") && left.contains("pg_prewarm"),
        "nothing was left: {left}"
    );

    // Somebody has found it meanwhile.
    server.ask(
        "our",
        "create table pgdyno.precious (a int); create view theirs.upon as select * from \
         pgdyno.pgbench_branches",
    );
    let cleaned = world.run(&["clean"]);
    for named in ["theirs.upon", "pgdyno.precious"] {
        assert!(
            (cleaned.out.clone() + &cleaned.err).contains(named),
            "{} {}",
            cleaned.out,
            cleaned.err
        );
    }
    let tables = "select string_agg(relname, ' ' order by relname) from pg_class where relkind = \
        'r' and relnamespace = 'pgdyno'::regnamespace";
    assert_eq!(server.ask("our", tables), "pgbench_branches precious");
    server.ask("our", "drop view theirs.upon; drop table pgdyno.precious");
    world.run(&["clean"]).exits(0);
    assert_eq!(dump(&server), before);
}
