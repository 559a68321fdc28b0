//! `pgdyno doctor`'s page.

use std::fmt::Write as _;

use pgdyno_lab::doctor::Doctor;

/// What was found, section by section.
pub(crate) fn rendered(doctor: &Doctor) -> String {
    let mut out = String::new();
    let host = &doctor.host;
    let _ = writeln!(out, "Host");
    let _ = writeln!(out, "  {}, {}", host.os, host.kernel);
    let _ = writeln!(out, "  {} CPUs ({}), {} of memory", host.cpus, host.cpu_model, host.memory);
    let _ = writeln!(out, "\nPrivileges");
    let who = if doctor.root { "root" } else { "not root" };
    let _ = match &doctor.account {
        Ok(account) if account.is_ours() => writeln!(out, "  {who}; a server runs as the same user"),
        Ok(account) => writeln!(out, "  {who}; a server runs as {}", account.name),
        Err(why) => writeln!(out, "  {who}; no server can be run: {why}"),
    };
    let _ = writeln!(out, "\nPostgreSQL");
    for install in &doctor.found {
        let _ = writeln!(out, "  {:<8} found in {}", install.version, install.bindir.display());
    }
    for install in &doctor.cached {
        let _ = writeln!(out, "  {:<8} fetched before: {}", install.version, install.bindir.display());
    }
    if doctor.found.is_empty() && doctor.cached.is_empty() {
        let _ = writeln!(out, "  none here");
    }
    let fetchable: Vec<&str> = doctor.fetchable.iter().map(|(_, version)| *version).collect();
    match fetchable.as_slice() {
        [] => drop(writeln!(out, "  no build can be fetched for this machine")),
        all => {
            let _ = writeln!(
                out,
                "  can be fetched from Maven Central (small builds without lz4, zstd, io_uring): {}",
                all.join(", ")
            );
        }
    }
    directory(doctor, &mut out);
    if !doctor.missing.is_empty() {
        let _ = writeln!(out, "\nMissing");
        for missing in &doctor.missing {
            let _ = writeln!(out, "  {}", missing.what);
            let _ = writeln!(out, "    without it: {}", missing.why);
            for (place, command) in &missing.how {
                let _ = writeln!(out, "    {place}: {command}");
            }
        }
    }
    out
}

fn directory(doctor: &Doctor, out: &mut String) {
    let report = &doctor.directory;
    let note = if report.exists { "" } else { " (made when it is needed)" };
    let _ = writeln!(out, "\nDirectory {}{note}", report.path.display());
    match &report.storage {
        Ok(facts) => {
            let _ = writeln!(
                out,
                "  {} on {}, mounted at {} ({})",
                facts.filesystem, facts.source, facts.mount_point, facts.mount_options
            );
            let _ = writeln!(out, "  {} free of {}", facts.available, facts.size);
            if let Some(disk) = &facts.disk {
                let kind = match facts.rotational {
                    Some(true) => ", rotating",
                    Some(false) => ", not rotating",
                    None => "",
                };
                let more =
                    [("model", &facts.model), ("scheduler", &facts.scheduler), ("cache", &facts.write_cache)]
                        .iter()
                        .filter_map(|(name, value)| value.as_ref().map(|v| format!(", {name} {v}")))
                        .collect::<String>();
                let _ = writeln!(out, "  disk {disk}{kind}{more}");
            }
        }
        Err(why) => drop(writeln!(out, "  {why}")),
    }
    match &report.problem {
        Some((problem, help)) => {
            let _ = writeln!(out, "  no cluster can be made here: {problem}");
            if let Some(help) = help {
                let _ = writeln!(out, "  help: {help}");
            }
        }
        None => drop(writeln!(out, "  a cluster can be made here")),
    }
}
