# pgdyno's workers as a batch job, one on each client. The coordinator runs where they reach it, and
# writes the token:
#
#     pgdyno pgbench -c 64 -j 8 -T 60 -h db1 \
#         --generators join:4,listen=10.0.0.1:7433,token=/run/bench.token,wait=5m mydb
#     nomad var put nomad/jobs/pgdyno-workers token=@/run/bench.token
#     nomad job run workers.nomad.hcl
#
# The job ends with the load; a worker that fails is not replaced, since that load is invalid.
# Afterwards: nomad job stop -purge pgdyno-workers; nomad var purge nomad/jobs/pgdyno-workers
job "pgdyno-workers" {
  type = "batch"

  group "workers" {
    count = 4

    constraint {
      distinct_hosts = true
    }

    restart {
      attempts = 0
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "worker" {
      driver = "exec"

      config {
        # The very same version as the coordinator, on each client.
        command = "/usr/bin/pgdyno"
        args = [
          "worker", "--join", "10.0.0.1:7433", "--token-file", "${NOMAD_SECRETS_DIR}/token",
          "--name", "${node.unique.name}",
        ]
      }

      template {
        data        = "{{ with nomadVar \"nomad/jobs/pgdyno-workers\" }}{{ .token }}{{ end }}"
        destination = "${NOMAD_SECRETS_DIR}/token"
        perms       = "400"
      }

      # As many processors as the worker has event loops.
      resources {
        cores  = 2
        memory = 1024
      }
    }
  }
}
