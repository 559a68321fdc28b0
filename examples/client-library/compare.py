#!/usr/bin/env python3
"""What client libraries cost beside the protocol: psycopg and SQLAlchemy against pgdyno.

All send the same prepared statement, SELECT abalance FROM pgbench_accounts WHERE aid = ?, to the
same server, from the same number of connections, in turn:

    pgdyno pgbench -i -s 10 mydb
    python3 -m venv venv && venv/bin/pip install psycopg[binary] sqlalchemy
    venv/bin/python examples/client-library/compare.py --dsn dbname=mydb --clients 4

Each connection of a library has a process of its own, as in the report of 2015. Rounds begin with
another client each, so that a drift of the machine does not look like a difference. `--beside
pgbench` puts PostgreSQL's own pgbench in pgdyno's place, and `--through psycopg` leaves SQLAlchemy
out.
"""

import argparse
import math
import multiprocessing
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import psycopg

SELECT = "SELECT abalance FROM pgbench_accounts WHERE aid = {aid}"


def by_psycopg(connection):
    """Returns a function that reads the account of a key through psycopg's cursor."""
    cursor = connection.cursor()
    select = SELECT.format(aid="%s")
    return lambda aid: cursor.execute(select, (aid,)).fetchall()


def by_sqlalchemy(connection):
    """Returns a function that reads the account of a key through SQLAlchemy's `execute`, as in the report."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: connection,
        poolclass=sqlalchemy.pool.StaticPool,
        isolation_level="AUTOCOMMIT",
    )
    session = engine.connect()
    select = sqlalchemy.text(SELECT.format(aid=":aid"))
    return lambda aid: session.execute(select, {"aid": aid}).fetchall()


LIBRARIES = {"psycopg": by_psycopg, "sqlalchemy": by_sqlalchemy}


def client(library, dsn, accounts, start, seconds, results):
    """Runs transactions from `start` (monotonic seconds) on; reports their count and its CPU."""
    count = 0
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        read = LIBRARIES[library](connection)
        read(1)
        time.sleep(max(0.0, start - time.monotonic()))
        before = resource.getrusage(resource.RUSAGE_SELF)
        end = start + seconds
        while time.monotonic() < end:
            read(random.randint(1, accounts))
            count += 1
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    results.put((count, cpu))


def of_library(library, args, accounts):
    """Returns the library's transactions a second, and its CPU in microseconds for each."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    # Every process has imported and connected by then.
    start = time.monotonic() + 2 + args.clients / 5
    work = (library, args.dsn, accounts, start, args.seconds, results)
    processes = [context.Process(target=client, args=work) for _ in range(args.clients)]
    for process in processes:
        process.start()
    done = [results.get(timeout=args.seconds + 120) for _ in processes]
    for process in processes:
        process.join()
    count = sum(count for count, _ in done)
    return count / args.seconds, 1e6 * sum(cpu for _, cpu in done) / count


def of_protocol(args, accounts, folder):
    """Returns the bare client's transactions a second, and its CPU in microseconds for each."""
    script = pathlib.Path(folder, "select.sql")
    select = SELECT.format(aid=":aid")
    script.write_text(f"\\set aid random(1, {accounts})\n{select};\n", encoding="utf-8")
    command = [*args.beside.split(), "-n", "-M", "prepared", "-f", str(script)]
    command += ["-c", str(args.clients), "-T", str(args.seconds), args.dsn]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    tps = re.search(r"^tps = ([0-9.]+)", ended.stdout, re.MULTILINE)
    if ended.returncode != 0 or tps is None:
        sys.exit(f"cannot measure with {' '.join(command)}:\n{ended.stdout}{ended.stderr}")
    tps = float(tps.group(1))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return tps, 1e6 * cpu / (tps * args.seconds)


def positive(text):
    """Parses a whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def versions(libraries):
    """Returns the libraries' versions, for the report."""
    told = [f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__})"]
    if "sqlalchemy" in libraries:
        try:
            import sqlalchemy
        except ImportError as error:
            sys.exit(f"cannot measure SQLAlchemy: {error} (pip install sqlalchemy)")
        told.append(f"SQLAlchemy {sqlalchemy.__version__} over psycopg")
    return ", ".join(told)


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dsn", required=True, help="connection string of a pgbench database")
    parser.add_argument("--clients", type=positive, default=4, help="connections of each side")
    parser.add_argument("--seconds", type=positive, default=10, help="length of each measurement")
    parser.add_argument("--rounds", type=positive, default=6, help="measurements of each side")
    parser.add_argument("--beside", default="pgdyno pgbench", help="the client without a library")
    parser.add_argument(
        "--through",
        action="append",
        choices=list(LIBRARIES),
        help="a library to measure; may be repeated; all when left out",
    )
    args = parser.parse_args()
    args.through = args.through or list(LIBRARIES)
    return args


def count_accounts(dsn):
    """Returns the highest key of pgbench_accounts."""
    try:
        with psycopg.connect(dsn) as connection:
            row = connection.execute("SELECT max(aid) FROM pgbench_accounts").fetchone()
    except psycopg.Error as error:
        sys.exit(f"cannot read pgbench_accounts of {dsn}: {error}")
    if row[0] is None:
        sys.exit(f"pgbench_accounts of {dsn} is empty: `pgdyno pgbench -i` fills it")
    return row[0]


def main():
    """Measures in turn and prints a row for each client of each round."""
    args = arguments()
    accounts = count_accounts(args.dsn)
    print(f"{versions(args.through)}, {args.clients} clients")
    names = [args.beside, *args.through]
    width = max(len(name) for name in names)
    print(f"round  {'client':<{width}}         tps  CPU, µs a transaction")
    ratios = {name: ([], []) for name in args.through}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            first = number % len(names)
            found = {}
            for name in names[first:] + names[:first]:
                if name == args.beside:
                    found[name] = of_protocol(args, accounts, folder)
                else:
                    found[name] = of_library(name, args, accounts)
            for name in names:
                tps, cpu = found[name]
                print(f"{number + 1:>5}  {name:<{width}}  {tps:>10,.0f}  {cpu:>10.1f}")
            for name, both in ratios.items():
                for which in (0, 1):
                    both[which].append(found[name][which] / found[args.beside][which])
    for name, both in ratios.items():
        for of, values in zip(("tps", "CPU a transaction"), both):
            mean = math.exp(statistics.mean(math.log(value) for value in values))
            print(
                f"{name}: {mean:.2f} of the {of} of {args.beside} "
                f"(geometric mean; {min(values):.2f} to {max(values):.2f})"
            )


if __name__ == "__main__":
    main()
