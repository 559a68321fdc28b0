#!/bin/sh
# Repeats the report of 2016 (docs/field-reports/004-zfs-xfs.md) with the OpenZFS of this machine.
#
#     sudo examples/openzfs/measure.sh DIRECTORY [quick|report|large]
#
# DIRECTORY is an existing folder on the disk to be measured. ZFS and XFS are made in loop files
# there, one beside the other, and removed again. Nothing else on the machine is changed, but for two
# parameters of ZFS, which hold for all of its pools while the run lasts: prefetch off, and the
# cache's step as in the report. They are put back.
#
# Results come into DIRECTORY/openzfs-results: the versions, the plan, the figures as text, JSON and
# a page. `--allow-zfs-fuse` as the first argument tries the script with zfs-fuse, whose figures say
# little about OpenZFS.

set -eu

fail() {
    echo "measure.sh: $1" >&2
    exit 1
}

allow_fuse=no
if [ "${1-}" = --allow-zfs-fuse ]; then
    allow_fuse=yes
    shift
fi
{ [ $# = 1 ] || [ $# = 2 ]; } || fail "give a directory, and at most one size: quick, report or large"
directory=$1
size=${2-quick}
case $size in
quick | report | large) ;;
*) fail "no size \`$size\`: it is quick, report or large" ;;
esac
[ -d "$directory" ] || fail "$directory is no directory"
directory=$(cd "$directory" && pwd)
[ "$(id -u)" = 0 ] || fail "it makes filesystems: run it as root"
for program in pgdyno zpool zfs mkfs.xfs mkfs.ext4; do
    command -v "$program" >/dev/null || fail "the program $program is not installed"
done

# OpenZFS has a module in the kernel; zfs-fuse has none.
parameters=/sys/module/zfs/parameters
if [ -d "$parameters" ]; then
    version=$(zfs version)
elif [ "$allow_fuse" = yes ]; then
    version="zfs-fuse, in user space; pool version $(zpool upgrade | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -n 1)"
else
    fail "this kernel has no OpenZFS (/sys/module/zfs is missing): load it with \`modprobe zfs\`"
fi

results=$directory/openzfs-results
mkdir -p "$results"
{
    echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "kernel: $(uname -srm)"
    echo "ZFS: $version"
    pgdyno --version | head -n 1
} >"$results/versions.txt"
cat "$results/versions.txt"

set -- zfs-xfs --size "$size"
for storage in xfs zfs log; do
    set -- "$@" --set "storage.$storage.backing.loop.directory=$directory"
done
if [ -d "$parameters" ]; then
    # The report's settings: prefetch off, and of 256 GB a step of 16 MB. Parameters come and go
    # between versions of OpenZFS: those that are missing here are named and left out.
    for parameter in zfs_prefetch_disable=1 zfs_arc_shrink_shift=14; do
        name=${parameter%=*}
        if [ -w "$parameters/$name" ]; then
            set -- "$@" --set "storage.zfs.device.module_parameters.zfs.$name=${parameter#*=}"
        else
            echo "left out: this ZFS has no parameter $name that can be set" | tee -a "$results/versions.txt"
        fi
    done
fi

pgdyno run "$@" --dry-run >"$results/plan.txt"
if grep "cannot be made here" "$results/plan.txt" >&2; then
    fail "a storage cannot be made; the whole plan is in $results/plan.txt"
fi
pgdyno run "$@"
pgdyno show latest --verbose >"$results/figures.txt"
pgdyno show latest --json >"$results/figures.json"
pgdyno report latest -o "$results/page.html"
echo "results: $results"
