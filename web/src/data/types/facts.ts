// Facts about the machine and its storages, as far as pages use them: `environment` has them as rows.

export interface HostFacts {
  os: string;
  kernel: string;
  cpu_model: string;
  cpus: number;
  memory: number;
  [key: string]: unknown;
}

export interface StorageFacts {
  name: string;
  directory: string;
  filesystem: string;
  mount_options: string;
  disk: string | null;
  model: string | null;
  write_cache: string | null;
  [key: string]: unknown;
}
