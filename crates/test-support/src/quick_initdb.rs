//! An installation whose `initdb` runs in earnest once for the same options.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use pgdyno_exec::account::server_account;
use pgdyno_postgres::{Install, find};

use crate::program::write_program;
use crate::scratch::Scratch;

/// Copies what an earlier call with the same options made, sets the password, and flushes what
/// `initdb` would. It runs in earnest for another account, with a `PATH` that lacks `cp` or
/// `flock`, and if the log gets a directory of its own.
const INITDB: &str = r##"set -eu
[ "${1-}" = -D ] && [ -w "$templates" ] && command -v cp > /dev/null &&
    command -v flock > /dev/null || exec "$real/initdb" "$@"
data=$2 options=${TZ-} password= user=
for option; do
    case $option in
    -D | "$data") ;;
    --waldir=*) exec "$real/initdb" "$@" ;;
    --pwfile=*) password=$(cat "${option#*=}") ;;
    *) options="$options
$option" ;;
    esac
    case $option in --username=*) user=${option#*=} ;; esac
done
template=$templates/$(printf %s "$options" | cksum | tr ' ' -)
if [ ! -d "$template" ]; then
    # Another call may be making it.
    exec 9> "$template.lock"
    flock 9
    if [ ! -d "$template" ]; then
        "$real/initdb" "$@" 9>&-
        rm -rf "$template.new"
        cp -a "$data" "$template.new"
        mv -T "$template.new" "$template"
        exit
    fi
    exec 9>&-
fi
cp -a "$template/." "$data/"
if [ "$password" ]; then
    echo "ALTER ROLE \"$user\" PASSWORD '$password'" |
        "$real/postgres" --single -F -D "$data" postgres > /dev/null
fi
"$real/initdb" --sync-only -D "$data"
"##;

const PG_CONFIG: &str = r#"case $* in
--bindir) echo "$bin" ;;
*) exec "$real/pg_config" "$@" ;;
esac
"#;

/// An installation in a folder that is removed once this process has ended, however it ended.
struct Kept {
    install: Install,
    #[expect(
        dead_code,
        reason = "its input ends with this process, and then it removes the folder"
    )]
    remover: Child,
}

/// Returns the installed PostgreSQL that pgdyno would choose, with an `initdb` that copies what it
/// made before, and a `pg_config` that leads there. None if no PostgreSQL is installed.
pub fn quick_install() -> Option<Install> {
    static KEPT: OnceLock<Option<Kept>> = OnceLock::new();
    let kept = KEPT.get_or_init(|| find(None, None).unwrap().map(make));
    kept.as_ref().map(|kept| kept.install.clone())
}

fn make(real: Install) -> Kept {
    const REMOVE: &str = r#"read -r nothing; rm -rf "$1""#;
    let folder = Scratch::new().keep();
    let mut remover = Command::new("/bin/sh");
    remover.args(["-c", REMOVE, "sh"]).arg(&folder).process_group(0).stdin(Stdio::piped());
    let remover = remover.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();

    let bindir = folder.join("bin");
    fs::create_dir(&bindir).unwrap();
    let own = ["initdb", "pg_config"];
    for program in fs::read_dir(&real.bindir).unwrap().map(Result::unwrap) {
        if own.iter().all(|name| program.file_name() != *name) {
            symlink(program.path(), bindir.join(program.file_name())).unwrap();
        }
    }
    let templates = folder.join("templates");
    let account = server_account().unwrap();
    fs::create_dir(&templates).unwrap();
    chown(&templates, Some(account.uid), Some(account.gid)).unwrap();
    let places = [("bin", &bindir), ("real", &real.bindir), ("templates", &templates)];
    let places = places.map(|(name, place)| format!("{name}='{}'\n", place.display())).concat();
    for (name, text) in own.into_iter().zip([INITDB, PG_CONFIG]) {
        write_program(&bindir.join(name), &format!("#!/bin/sh\n{places}{text}"));
    }
    Kept { install: Install { bindir, ..real }, remover }
}
