"""Three nodes of a Ray cluster on this machine: r1 to r3, with two CPUs each.

Prints the cluster's address and the raylets' process ids, and ends with standard input.
"""

import sys

from ray._private.ray_constants import PROCESS_TYPE_RAYLET
from ray.cluster_utils import Cluster

node = {"num_cpus": 2, "include_dashboard": False}
cluster = Cluster()
nodes = [cluster.add_node(node_name=f"r{number}", **node) for number in (1, 2, 3)]
raylets = [node.all_processes[PROCESS_TYPE_RAYLET][0].process.pid for node in nodes]
print(cluster.address, *raylets, flush=True)
sys.stdin.read()
cluster.shutdown()
