#!/usr/bin/env python3
"""What a client library costs beside the protocol: psycopg against pgdyno.

Both send the same prepared statement, SELECT abalance FROM pgbench_accounts WHERE aid = ?, to the
same server, from the same number of connections, in turn:

    pgdyno pgbench -i -s 10 mydb
    python3 -m venv venv && venv/bin/pip install psycopg[binary]
    venv/bin/python examples/client-library/compare.py --dsn dbname=mydb --clients 4

Each psycopg connection has a process of its own, as in the report of 2015. Rounds alternate the
order, so that a drift of the machine does not look like a difference. `--beside pgbench` puts
PostgreSQL's own pgbench in pgdyno's place.
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


def client(dsn, accounts, start, seconds, results):
    """Runs transactions from `start` (monotonic seconds) on; reports their count and its CPU."""
    count = 0
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        cursor = connection.cursor()
        select = SELECT.format(aid="%s")
        cursor.execute(select, (1,))
        time.sleep(max(0.0, start - time.monotonic()))
        before = resource.getrusage(resource.RUSAGE_SELF)
        end = start + seconds
        while time.monotonic() < end:
            cursor.execute(select, (random.randint(1, accounts),)).fetchall()
            count += 1
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    results.put((count, cpu))


def of_psycopg(args, accounts):
    """Returns psycopg's transactions a second, and its CPU in microseconds for each."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    # Every process has imported and connected by then.
    start = time.monotonic() + 2 + args.clients / 10
    work = (args.dsn, accounts, start, args.seconds, results)
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


def main():
    """Measures in turn and prints a row for each round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dsn", required=True, help="connection string of a pgbench database")
    parser.add_argument("--clients", type=positive, default=4, help="connections of each side")
    parser.add_argument("--seconds", type=positive, default=10, help="length of each measurement")
    parser.add_argument("--rounds", type=positive, default=5, help="measurements of each side")
    parser.add_argument("--beside", default="pgdyno pgbench", help="the client without a library")
    args = parser.parse_args()
    try:
        with psycopg.connect(args.dsn) as connection:
            row = connection.execute("SELECT max(aid) FROM pgbench_accounts").fetchone()
    except psycopg.Error as error:
        sys.exit(f"cannot read pgbench_accounts of {args.dsn}: {error}")
    accounts = row[0]
    if accounts is None:
        sys.exit(f"pgbench_accounts of {args.dsn} is empty: `pgdyno pgbench -i` fills it")
    print(f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__}), {args.clients} clients")
    print(f"beside: {args.beside}")
    print("round   beside tps  psycopg tps  ratio   CPU, µs a transaction: beside  psycopg")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            if number % 2 == 0:
                ours, theirs = of_protocol(args, accounts, folder), of_psycopg(args, accounts)
            else:
                theirs, ours = of_psycopg(args, accounts), of_protocol(args, accounts, folder)
            ratios.append(theirs[0] / ours[0])
            print(
                f"{number + 1:>5} {ours[0]:>12,.0f} {theirs[0]:>12,.0f}  {ratios[-1]:>5.3f}"
                f"   {ours[1]:>29.1f} {theirs[1]:>8.1f}"
            )
    logs = [math.log(ratio) for ratio in ratios]
    print(
        f"psycopg has {math.exp(statistics.mean(logs)):.3f} of the tps of {args.beside} "
        f"(geometric mean; {min(ratios):.3f} to {max(ratios):.3f})"
    )


if __name__ == "__main__":
    main()
