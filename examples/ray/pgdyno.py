"""pgdyno on the nodes of a Ray cluster.

`pgdyno --generators ray:workers=NUM` and `pgdyno run --hosts ray:NODE,NODE` run this script by
themselves. By hand:

    python3 pgdyno.py workers NUM CPUS HOST PORT PROGRAM < FILE

starts workers, one on each node, for a coordinator of `--generators
join:NUM,listen=HOST:PORT,token=FILE`. It ends with the workers. If one fails, or a node is lost, the
others are ended and the status is 1. Where standard input is a pipe, its end ends all of them, too.

    python3 pgdyno.py host NODE PROGRAM COMMAND

runs a command of the program on one node, of which it has all CPUs, with the script's standard streams.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

try:
    import ray
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import (
        NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy)
except ImportError as missing:
    sys.exit(f"error: {sys.executable} has no Ray: {missing}")

REACHED_WITHIN_S = 30
PLACED_WITHIN_S = 10
SHIPPED_WITHIN_S = 60
LOOK_EVERY_S = 0.25
PR_SET_PDEATHSIG = 1


def start(words, size, **options):
    """Starts `words` once the program of `size` bytes is whole in the working directory, where Ray puts it.

    Nodes of one machine share that folder, and each removes what another has unpacked there before it
    unpacks itself. Who stands in a folder that was removed goes to the one that has its name now.
    """
    folder = os.readlink("/proc/self/cwd").removesuffix(" (deleted)")
    until = time.monotonic() + SHIPPED_WITHIN_S
    while True:
        with contextlib.suppress(FileNotFoundError):
            os.chdir(folder)
            if os.path.getsize("pgdyno") == size:
                os.chmod("pgdyno", 0o700)
                return subprocess.Popen(words, **options)
        if time.monotonic() > until:
            raise TimeoutError(f"the program was not there within {SHIPPED_WITHIN_S} s")
        time.sleep(LOOK_EVERY_S)


@ray.remote(max_restarts=0)
class Worker:
    """Supervises a worker, whose program Ray has put into the working directory."""

    def run(self, address, token, names, size):
        """Returns the worker's name, its status and its words."""
        name = names[ray.get_runtime_context().get_node_id()]
        libc = ctypes.CDLL(None)
        worker = start(
            ["./pgdyno", "worker", "--join", address, "--token-file", "-", "--name", name],
            size,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # An actor that is killed takes its worker along.
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        raylet = os.getppid()
        while True:
            try:
                words = worker.communicate(token, timeout=LOOK_EVERY_S)[1]
                return name, worker.returncode, words
            except subprocess.TimeoutExpired:
                token = None
            # Ray takes many seconds to miss a node, in which the others would offer load.
            if os.getppid() != raylet:
                worker.kill()


FOLDER = tempfile.mkdtemp()


def end(*_):
    """Ends this process at once, and by that all actors."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    os._exit(1)


def fail(words):
    print(f"error: {words}", file=sys.stderr, flush=True)
    end()


def end_with_the_coordinator():
    """Waits for the end of standard input, which is the coordinator's."""
    while os.read(0, 4096):
        pass
    end()


def connect(program):
    """Connects to the cluster, with the program in the working directory of actors. Returns its nodes."""
    # Ray itself tries for minutes.
    patience = threading.Timer(REACHED_WITHIN_S, fail, ["no Ray cluster answers"])
    patience.start()
    os.symlink(os.path.abspath(program), os.path.join(FOLDER, "pgdyno"))
    try:
        ray.init("auto", runtime_env={"working_dir": FOLDER}, logging_level="ERROR",
                 log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as unreachable:
        fail(f"cannot reach a Ray cluster: {unreachable}")
    patience.cancel()
    signal.signal(signal.SIGTERM, end)
    return [node for node in ray.nodes() if node["Alive"]]


def name_of(node):
    return node.get("NodeName") or node["NodeManagerAddress"]


def loss(error):
    """Returns Ray's words, or the words of an exception in an actor, which come last."""
    lines = str(error).splitlines()
    return lines[-1 if isinstance(error, ray.exceptions.RayTaskError) else 0]


def run_workers(workers, cpus, host, port, program):
    workers, cpus = int(workers), int(cpus)
    token = b""
    while not token.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            fail("standard input has no token")
        token += byte
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=end_with_the_coordinator, daemon=True).start()
    nodes = connect(program)
    fit = [node for node in nodes if node["Resources"].get("CPU", 0) >= cpus]
    if len(fit) < workers:
        fail(f"{workers} workers of {cpus} CPUs need as many nodes, and of the cluster's "
             f"{len(nodes)} nodes {len(fit)} have so many CPUs")
    group = placement_group([{"CPU": cpus}] * workers, strategy="STRICT_SPREAD")
    if not group.wait(PLACED_WITHIN_S):
        fail(f"{cpus} CPUs on each of {workers} nodes were not free within {PLACED_WITHIN_S} s")

    names = {node["NodeID"]: name_of(node) for node in nodes}
    host = host or ray.util.get_node_ip_address()
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    running = []
    for index in range(workers):
        place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
        worker = Worker.options(num_cpus=cpus, scheduling_strategy=place).remote()
        running.append(worker.run.remote(address, token.decode(), names, os.path.getsize(program)))
    while running:
        done, running = ray.wait(running)
        try:
            name, status, words = ray.get(done[0])
        except ray.exceptions.RayError as lost:
            fail(f"a worker's node or actor is lost: {loss(lost)}")
        if status != 0:
            fail(f"the worker on {name} ended: {words.strip() or f'status {status}'}")


@ray.remote(num_cpus=0)
def ship():
    """Ends once the program is on a node, which may take minutes."""


@ray.remote(max_restarts=0, max_concurrency=4)
class Command:
    """A command of the program, and its standard streams."""

    def __init__(self, command, size):
        # Ray kills the children of an actor that ends. This one is nobody's child: its standard input
        # ends then, and it ends in order.
        self.process = start(
            ["setsid", "--fork", "./pgdyno", command], size,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            # Ray blocks SIGINT, and what it starts would inherit that.
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, []))

    def write(self, data):
        # One that has ended says why.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(data)

    def close(self):
        self.process.stdin.close()

    def read(self, stream):
        return os.read(getattr(self.process, stream).fileno(), 1 << 20)


def run_on_host(host, program, command):
    nodes = connect(program)
    found = [node for node in nodes if host in (name_of(node), node["NodeManagerAddress"])]
    if len(found) != 1:
        fail(f"the cluster has {len(found)} nodes {host}; its nodes are "
             f"{', '.join(sorted(name_of(node) for node in nodes))}")
    place = NodeAffinitySchedulingStrategy(found[0]["NodeID"], soft=False)
    cpus = found[0]["Resources"].get("CPU", 0)
    ray.get(ship.options(scheduling_strategy=place).remote())
    actor = Command.options(num_cpus=cpus, scheduling_strategy=place).remote(
        command, os.path.getsize(program))
    placed, _ = ray.wait([actor.__ray_ready__.remote()], timeout=PLACED_WITHIN_S)
    if not placed:
        fail(f"the {cpus:g} CPUs of {host} were not free within {PLACED_WITHIN_S} s")

    def pass_in():
        while data := os.read(0, 1 << 16):
            ray.get(actor.write.remote(data))
        ray.get(actor.close.remote())

    def pass_out(stream, to):
        while data := ray.get(actor.read.remote(stream)):
            try:
                to.write(data)
                to.flush()
            except BrokenPipeError:
                pass  # Who reads is gone. The command ends by itself, as its standard input has ended.

    def guarded(work, *args):
        try:
            work(*args)
        except ray.exceptions.RayError as lost:
            fail(f"{host} or the actor on it is lost: {loss(lost)}")

    threading.Thread(target=guarded, args=(pass_in,), daemon=True).start()
    outputs = [threading.Thread(target=guarded, args=(pass_out, *of))
               for of in (("stdout", sys.stdout.buffer), ("stderr", sys.stderr.buffer))]
    for output in outputs:
        output.start()
    for output in outputs:
        output.join()


if __name__ == "__main__":
    {"workers": run_workers, "host": run_on_host}[sys.argv[1]](*sys.argv[2:])
    shutil.rmtree(FOLDER)
