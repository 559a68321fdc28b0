#!/bin/sh
# Builds PostgreSQL with WAL blocks of another size, as the report of 2013 had it
# (docs/field-reports/000-ssd-acceptance.md).
#
#     examples/wal-blocks/build.sh PREFIX [SIZE] [SOURCE]
#
# PREFIX is the folder that gets bin, lib and share; it must be empty or absent. SIZE is in kB: 1, 2,
# 4, 8, 16, 32 or 64; 16 when left out. SOURCE is the folder of PostgreSQL's source. Without it, the
# source package of the newest PostgreSQL that this machine has from Debian or Ubuntu is fetched by
# `apt-get source`, which needs a `deb-src` line in /etc/apt. Building needs gcc, make and dpkg-dev.
#
# A second build, with SIZE 8, is the fair peer: a distribution's own has other compiler options.
#
#     examples/wal-blocks/build.sh /opt/pg-8k 8
#     examples/wal-blocks/build.sh /opt/pg-16k 16
#     pgdyno run ssd-acceptance \
#       --set 'factors.postgres.bindir=["/opt/pg-8k/bin", "/opt/pg-16k/bin"]'

set -eu

fail() {
    echo "build.sh: $1" >&2
    exit 1
}

{ [ $# -ge 1 ] && [ $# -le 3 ]; } || fail "give a folder, and at most a size in kB and the source"
prefix=$1
size=${2-16}
case $size in
1 | 2 | 4 | 8 | 16 | 32 | 64) ;;
*) fail "WAL blocks of \`$size\` kB: it is 1, 2, 4, 8, 16, 32 or 64" ;;
esac
[ -z "$(ls -A "$prefix" 2>/dev/null)" ] || fail "$prefix is not empty"
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
for program in gcc make; do
    command -v "$program" >/dev/null || fail "the program $program is not installed"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ $# = 3 ]; then
    source=$(cd "$3" && pwd)
    [ -x "$source/configure" ] || fail "$source is no source of PostgreSQL: it has no configure"
else
    package=$(dpkg-query --show --showformat '${Package}\n' 'postgresql-[1-9]*' 2>/dev/null |
        grep -E '^postgresql-[0-9]+$' | sort -t- -k2 -n | tail -n 1)
    [ -n "$package" ] || fail "no package of PostgreSQL is installed: name the folder of its source"
    version=$(dpkg-query --show --showformat '${Version}' "$package")
    (cd "$scratch" && apt-get source --only-source "$package=$version") ||
        fail "apt-get has no source of $package $version: add a deb-src line, or name the folder of its source"
    source=$(find "$scratch" -mindepth 1 -maxdepth 1 -type d)
fi

mkdir "$scratch/build"
cd "$scratch/build"
"$source/configure" --quiet --prefix="$prefix" --with-wal-blocksize="$size" \
    --without-readline --without-zlib --without-icu >configure.log 2>&1 ||
    { tail -n 20 configure.log >&2; fail "configure failed"; }
make -s -j "$(nproc)" install >make.log 2>&1 || { tail -n 20 make.log >&2; fail "make failed"; }
# pgbench, pg_test_fsync and pg_amcheck's extension are of contrib or beside the server.
make -s -C contrib -j "$(nproc)" install >contrib.log 2>&1 ||
    { tail -n 20 contrib.log >&2; fail "make of contrib failed"; }
echo "$("$prefix/bin/postgres" --version), WAL blocks of $size kB, in $prefix/bin"
