// Documents of the API. `npm run types` writes this file from `crates/web/schema/api.json`.

/**
 * Weight of a caution.
 */
export type Tier = 'conclusion' | 'context';
/**
 * How far a result answers its question.
 */
export type Badge = 'answered' | 'inconclusive' | 'unsafe' | 'unfinished' | 'recorded';
/**
 * Kind of a finding.
 */
export type ProofKind =
  | 'crash'
  | 'rows-differ'
  | 'early-acknowledgements'
  | 'fsync-off'
  | 'generator-limited'
  | 'not-steady'
  | 'noisy-host'
  | 'short-trials';
/**
 * Panel of a run's page.
 */
export type Panel = 'treatments' | 'time' | 'safety' | 'environment';
/**
 * Ratio of the tps of treatment `b` to that of treatment `a`: `[a, b, ratio, low, high, p_together, significant]` in JSON.
 *
 * @minItems 7
 * @maxItems 7
 */
export type PairRow = [
  number,
  number,
  number,
  number | null,
  number | null,
  number | null,
  boolean | null
];
/**
 * The state of a run, as `show` and `list` name it.
 */
export type RunState = 'running' | 'completed' | 'failed' | 'interrupted';
/**
 * Form of a gate's question.
 */
export type Form = 'fail-if' | 'fail-unless';
/**
 * Outcome of a gate, the best first.
 */
export type Outcome = 'passed' | 'undecided' | 'exceeded';
/**
 * Evidence of the data for the condition of a gate.
 */
export type GateState = 'exceeded' | 'kept' | 'open' | 'not-shown' | 'unknown' | 'no-trial';
export type LevelValue = string | number | boolean;
/**
 * Method of an interval.
 */
export type Method = 'paired' | 'pooled' | 'welch' | 'moderated' | 'runs';
/**
 * Part of a transaction's latency.
 */
export type Part =
  | {
      statement: {
        /**
         * The line it begins on.
         */
        line: number;
        /**
         * Name of the script.
         */
        script: string;
        /**
         * The command.
         */
        text: string;
      };
    }
  | 'wait-to-be-sent'
  | 'between-statements';
/**
 * One thing that happened in a run. In JSON, `event` names its kind.
 */
export type LiveRecord =
  | (LiveRun & {
      event: 'begun';
    })
  | {
      /**
       * Figures of the work that change all the time, in words.
       */
      detail?: string | null;
      event: 'working';
      /**
       * How much of the work is done (0 to 1), where that is known.
       */
      share: number | null;
      /**
       * The work, in words.
       */
      what: string;
    }
  | {
      event: 'note';
      /**
       * The note.
       */
      text: string;
    }
  | {
      event: 'warning';
      /**
       * The warning.
       */
      text: string;
    }
  | {
      /**
       * When it began.
       */
      at: Epoch;
      /**
       * Round over all treatments that the trial belongs to, from 1.
       */
      block: number;
      event: 'trial';
      /**
       * Expected time until the run ends (seconds).
       */
      left_s: number;
      /**
       * Place in the run, from 0.
       */
      ordinal: number;
      /**
       * Number among the treatment's trials, from 1.
       */
      repeat: number;
      /**
       * Index of the treatment.
       */
      treatment: number;
    }
  | (LoadSecond & {
      event: 'second';
    })
  | {
      event: 'trial_done';
      /**
       * Why the trial failed.
       */
      failure: string | null;
      /**
       * 99th percentile of latency (microseconds).
       */
      latency_us_p99: number | null;
      /**
       * Expected time until the run ends (seconds).
       */
      left_s: number;
      /**
       * The trial's place in the plan, from 0.
       */
      ordinal: number;
      /**
       * Transactions per second; none for a trial that failed.
       */
      tps: number | null;
    }
  | (Outlook & {
      event: 'outlook';
    })
  | {
      event: 'stopping';
    }
  | {
      event: 'taking_down';
    }
  | {
      /**
       * Why the run could not go on; none if it finished its work.
       */
      error: string | null;
      event: 'ended';
      /**
       * Final state, as `show` names it: `completed`, `failed` or `interrupted`.
       */
      state: string;
    };
/**
 * Nanoseconds since the Unix epoch of a wall clock; displays as RFC 3339 in UTC, to the second.
 */
export type Epoch = number;
/**
 * The state of a planned trial.
 */
export type LiveTrialState =
  | {
      state: 'left';
    }
  | {
      state: 'running';
    }
  | {
      /**
       * 99th percentile of latency (microseconds).
       */
      latency_us_p99: number | null;
      state: 'done';
      /**
       * Transactions per second.
       */
      tps: number | null;
    }
  | {
      /**
       * Reason of the failure.
       */
      failure: string;
      state: 'failed';
    };
/**
 * Something that is broken on purpose.
 */
export type Fault =
  | 'process'
  | 'immediate'
  | 'backend'
  | 'power'
  | 'emulated-lie'
  | 'torn-write'
  | 'io-error'
  | 'disk-full'
  | 'plug';
/**
 * Verdict of crash tests.
 */
export type Verdict =
  | 'pass'
  | 'bounded-loss'
  | 'as planted (takes no writes)'
  | 'as planted (lost)'
  | 'as planted (corrupt)'
  | 'as planted (will not start)'
  | 'as planted (will not mount)'
  | 'partial'
  | 'unknown'
  | 'invalid'
  | 'FAIL (takes no writes)'
  | 'FAIL (lost)'
  | 'FAIL (corrupt)'
  | 'FAIL (will not start)'
  | 'FAIL (will not mount)';
/**
 * Moment of the server's work at which a fault strikes.
 */
export type Aim =
  | 'load'
  | 'checkpoint'
  | 'after-checkpoint'
  | 'segment-switch'
  | 'vacuum'
  | 'create-index'
  | 'recovery'
  | 'wal-flush'
  | 'request'
  | 'hand';
/**
 * One oracle with its outcome.
 */
export type Check = {
  /**
   * Property that the oracle checks.
   */
  name: string;
} & Check1;
export type Check1 =
  | {
      outcome: 'passed';
    }
  | {
      found: string;
      outcome: 'allowed';
    }
  | {
      found: string;
      outcome: 'failed';
    }
  | {
      found: string;
      outcome: 'could-not-run';
    }
  | {
      found: string;
      outcome: 'not-applicable';
    };
/**
 * Result of the filesystem's own check (fsck), which repairs nothing.
 */
export type Fsck =
  | {
      /**
       * The program with its flags, without the device: `e2fsck -f -n`.
       */
      command: string;
      /**
       * How long it took (milliseconds).
       */
      ms: number;
      outcome: 'clean';
    }
  | {
      /**
       * The program with its flags, without the device.
       */
      command: string;
      /**
       * How long it took (milliseconds).
       */
      ms: number;
      outcome: 'complained';
      /**
       * The first lines of its output.
       */
      said: string;
      /**
       * Exit status of the program.
       */
      status: number;
    }
  | {
      outcome: 'not-run';
      /**
       * Reason why not.
       */
      why: string;
    };
/**
 * A seed in a document: a number, and in a page a text, since a browser keeps 53 bits of a number.
 */
export type Seed = number | string;
/**
 * A number of bytes; displays in decimal units (`1.5 GB`).
 */
export type Bytes = number;
/**
 * How a state of the disk was derived from the log of its writes.
 */
export type StateKind =
  'boundary' | 'subset' | 'prefix' | 'omitted' | 'pair-omitted' | 'torn-4096' | 'torn-512';
/**
 * Why a state failed.
 */
export type FailureCause =
  | {
      cause: 'not-written';
    }
  | {
      cause: 'lost';
      /**
       * First of these writes.
       */
      first: MissingWrite[];
      /**
       * Flush that would have made these writes durable in time; none where no acknowledged transaction is missing, and in records of earlier versions.
       */
      flush: MissingFlush | null;
      /**
       * Smallest number of missing or torn writes with which the state still fails, as far as was tried (count).
       */
      writes: number;
    };
/**
 * A kind of page of PostgreSQL's.
 */
export type PageKind = 'data' | 'wal';
/**
 * Carrier of a storage's bytes.
 */
export type Backing =
  | {
      directory: string | null;
    }
  | {
      loop: LoopFile;
    }
  | {
      device: string;
    }
  | {
      ram: Bytes;
    }
  | {
      emulated: EmulatedDisk;
    }
  | {
      raid0: Raid0;
    };
export type Span = string;
/**
 * Program or filesystem that joins the members of a RAID-0.
 */
export type Striper = 'mdadm' | 'lvm' | 'btrfs' | 'zfs';
/**
 * Handling of a write by a RAID controller before the acknowledgement.
 */
export type WritePolicy = 'write-back' | 'write-through';
/**
 * A program that sets RAID controllers.
 */
export type RaidTool = 'storcli' | 'megacli' | 'ssacli' | 'arcconf';
/**
 * A type of device as `smartctl --device` takes it: `megaraid,3` is the fourth disk behind a MegaRAID controller.
 */
export type SmartType = string;
/**
 * Kind of a block device.
 */
export type DeviceKind =
  'disk' | 'partition' | 'md' | 'lvm' | 'crypt' | 'multipath' | 'dm' | 'loop' | 'ram';
/**
 * Whether what was known of the noise before a run counts beside its own.
 */
export type PriorUse = 'counts' | 'apart' | 'uneven' | 'too_few_repeats';
/**
 * Claim that the report's first sentence makes.
 */
export type AnswerKind =
  'leader' | 'effect' | 'a/a' | 'acceptance' | 'safety' | 'sweep' | 'capacity';
export type Slo = string;
/**
 * End of a trial's load.
 */
export type Length =
  | {
      duration: Span;
    }
  | {
      transactions: number;
    };
/**
 * Transactions per second, or the stages of a rate as text.
 */
export type LoadRate = number | string;
/**
 * Fate of a client whose transaction met an error that is not retried.
 */
export type OnError = 'abort-client' | 'abort-all' | 'continue';
export type ReconnectLost = 'never' | 'always' | (number | string);
/**
 * How statements are sent.
 */
export type Protocol = 'simple' | 'extended' | 'prepared';
/**
 * Where the server's programs came from.
 */
export type BuildSource =
  | {
      found: {
        /**
         * The folder of its programs.
         */
        bindir: string;
        /**
         * How it was found: `bindir`, `PG_CONFIG`, `PATH`, or the folder's kind.
         */
        how: string;
      };
    }
  | {
      fetched: {
        /**
         * The artefact it was unpacked from.
         */
        artifact: string;
        /**
         * The folder of its programs.
         */
        bindir: string;
        /**
         * The artefact's SHA-256, as verified.
         */
        sha256: string;
      };
    }
  | {
      given: {
        /**
         * Host and port or socket; never a password.
         */
        address: string;
      };
    };
/**
 * How a session ended.
 */
export type SessionEnd = 'completed' | 'failed' | 'interrupted';
/**
 * Why a run ended.
 */
export type Ended = 'decided' | 'ceiling' | 'budget';
/**
 * Kind of obstacle.
 */
export type FailureKind =
  | 'input'
  | 'unavailable'
  | 'interrupted'
  | 'wait'
  | 'storage'
  | 'server'
  | 'data'
  | 'load'
  | 'generators'
  | 'host'
  | 'unknown';
/**
 * Why no commit of a load is judged.
 */
export type NotJudged =
  | 'asynchronous'
  | {
      'script-sets-it': string;
    }
  | {
      'temporary-tables': string;
    }
  | {
      'not-logged': string;
    };
/**
 * State of an attempt at a trial.
 */
export type TrialState = 'completed' | 'failed' | 'superfluous';
/**
 * Figures of a probe, by its kind.
 */
export type ProbeResult =
  | (FsyncProbe & {
      kind: 'fsync';
    })
  | (DiskProbe & {
      kind: 'disk';
    });
/**
 * A sign that flushes are acknowledged before data is durable. The probe's warnings have the figures.
 */
export type Suspicion =
  | 'quicker-than-rotation'
  | 'quicker-than-commands'
  | 'quicker-than-flash'
  | 'no-slower-than-writes'
  | 'memory'
  | 'no-barriers';
/**
 * `pg_test_fsync`'s comparisons, and one of pgdyno's.
 */
export type FsyncGroup =
  'one-block' | 'two-blocks' | 'open-sync-sizes' | 'other-descriptor' | 'not-synced' | 'concurrent';
/**
 * Outcome of a test of the fsync probe.
 */
export type FsyncOutcome =
  | {
      measured: Flushes;
    }
  | {
      'not-available': string;
    };
/**
 * Pattern of requests to the disk, with fio's names.
 */
export type Pattern = 'write' | 'read' | 'randread' | 'randwrite' | 'randrw';
/**
 * Where figures come from.
 */
export type Provenance = 'imported';
/**
 * Kind of a fact on storage.
 */
export type StorageWhat =
  | 'barriers-off'
  | 'barriers-on'
  | 'write-cache-on'
  | 'write-cache-off'
  | 'power-loss-protection'
  | {
      zfs: {
        /**
         * Name of the property.
         */
        property: string;
        /**
         * Value of the property.
         */
        value: string;
      };
    };
/**
 * Source of the knowledge about a table's columns.
 */
export type Meaning = 'named' | 'computed' | 'unknown';
/**
 * Kind of a result that is no run.
 */
export type OtherKind = 'probe' | 'crash' | 'import';

/**
 * Answers of `pgdyno serve` by path.
 */
export interface Api {
  '/api/compare': ComparePage | BesidePage;
  '/api/history': History & {
    schema: 'pgdyno.serve-history/1';
  };
  '/api/info': Info & {
    schema: 'pgdyno.serve-info/1';
  };
  '/api/live': LiveRuns & {
    schema: 'pgdyno.serve-live-runs/1';
  };
  /**
   * Data of each event, by the event's name.
   */
  '/api/live/{run}': {
    died?: {};
    record?: LiveRecord;
    state?: LiveDocument & {
      schema: 'pgdyno.serve-live/1';
    };
  };
  '/api/live/{run}/stop': StopAsked & {
    schema: 'pgdyno.serve-stop/1';
  };
  '/api/notes/{id}': NoteHistory & {
    schema: 'pgdyno.serve-note/1';
  };
  '/api/page/{id}': RunPage | CrashPage | ProbePage | ImportPage;
  '/api/page/{id}/trials/{index}': TrialDetail;
  '/api/runs': Runs & {
    schema: 'pgdyno.serve-runs/1';
  };
  '/api/show/{id}':
    | (RunView & {
        schema: 'pgdyno.run/1';
      })
    | (CrashView & {
        schema: 'pgdyno.crash/1';
      })
    | (ProbeRecord & {
        schema: 'pgdyno.probe/1';
      })
    | (ImportedRun & {
        schema: 'pgdyno.import/1';
      });
  error: ApiError;
}
/**
 * The data of a page.
 */
export interface ComparePage {
  cautions: Caution[];
  differences: Difference[] | null;
  environment: Environment[];
  headline: Headline;
  kind: 'compare';
  pairs: PairsView | null;
  pgdyno_version: string;
  schema: 'pgdyno.page/1';
  steadiness: SteadinessRow[] | null;
  title: string;
  view: CompareView;
}
/**
 * A note with its tier.
 */
export interface Caution {
  /**
   * Kind of the note, in kebab case (see `NoteKind`).
   */
  kind: string;
  /**
   * The sentence.
   */
  text: string;
  /**
   * Whether it may change the conclusion.
   */
  tier: Tier;
}
/**
 * Something in which the environments of two runs differ.
 */
export interface Difference {
  a: string;
  b: string;
  group: string;
  name: string;
}
/**
 * A machine with its storages.
 */
export interface Environment {
  rows: Row[];
  storages: StorageRows[];
  title: string;
}
/**
 * One subject of a description.
 */
export interface Row {
  /**
   * Whether only a detailed description shows it.
   */
  detail: boolean;
  /**
   * Name of the subject.
   */
  name: string;
  /**
   * Description of the subject.
   */
  text: string;
}
export interface StorageRows {
  name: string;
  rows: Row[];
}
/**
 * Verdict card of a result: what a reader sees first.
 */
export interface Headline {
  /**
   * Answer in one or two sentences. Text between backticks is code.
   */
  answer: string;
  /**
   * How far the question is answered.
   */
  badge: Badge;
  /**
   * Next command, ready to be copied; none where there is none to recommend.
   */
  command: string | null;
  /**
   * At most three figures that matter most, as texts.
   */
  figures: KeyFigure[];
  /**
   * Findings that a reader should see before believing the answer, with their places.
   */
  proofs: Proof[];
  /**
   * The question that the result answers; none if none was asked.
   */
  question: string | null;
}
/**
 * A figure of a headline.
 */
export interface KeyFigure {
  /**
   * Interval and circumstances.
   */
  detail: string | null;
  /**
   * Name of the figure.
   */
  name: string;
  /**
   * Value with its unit.
   */
  value: string;
}
/**
 * A finding, and where the page shows it.
 */
export interface Proof {
  /**
   * Kind of the finding.
   */
  kind: ProofKind;
  /**
   * Panel that shows it.
   */
  panel: Panel;
  /**
   * The finding in a few words.
   */
  text: string;
  /**
   * Index of the trial that shows it best, in `RunView::trials`.
   */
  trial: number | null;
}
/**
 * Ratios of tps between treatments. Each pair stands once: the other direction is the inverse.
 */
export interface PairsView {
  /**
   * Whether every pair of measured treatments is there. Otherwise only those with the best and the planned comparisons are.
   */
  complete: boolean;
  /**
   * The ratios.
   */
  rows: PairRow[];
  /**
   * Treatments of the run (count).
   */
  treatments: number;
}
/**
 * Steadiness of a completed trial.
 */
export interface SteadinessRow {
  changes: string[];
  effective: string;
  /**
   * Number of the trial, from 1.
   */
  number: number;
  seconds: number;
  /**
   * Index in the run's trials.
   */
  trial: number;
  warm_up: string;
  /**
   * Reason for a missing interval, if the column of warm-up does not say it.
   */
  why: string | null;
  within: string;
}
/**
 * Comparison of side B with side A, treatment by treatment.
 */
export interface CompareView {
  /**
   * Side A: the base of the comparison.
   */
  a: SideView;
  /**
   * Summary in a sentence or two.
   */
  answer: string[];
  /**
   * Side B: compared with A.
   */
  b: SideView;
  /**
   * Names given with `--by`: what differs on purpose.
   */
  by: string[];
  /**
   * Whether any gate was exceeded.
   */
  exceeded: boolean;
  /**
   * Gates, for every pair.
   */
  gates: GateView[];
  /**
   * Measure beside latency: `tps` or `maximum rate`.
   */
  measure: string;
  /**
   * Notes that a reader needs to trust or doubt the figures.
   */
  notes: string[];
  /**
   * Worst outcome of all gates; none without a gate.
   */
  outcome: Outcome | null;
  /**
   * Pairs of matching treatments.
   */
  pairs: PairView[];
  /**
   * Whether both sides are of one run. Trials are then paired by block.
   */
  same_run: boolean;
  /**
   * Differences between the sides other than their results.
   */
  unequal: Unequal[];
}
/**
 * One side: a run, or some treatments of one.
 */
export interface SideView {
  /**
   * Machines that it ran on, by name; none from an earlier version.
   */
  hosts?: string[];
  /**
   * Name of its recipe or file.
   */
  recipe: string;
  /**
   * Name of the run.
   */
  run: string;
  /**
   * Begin of the run.
   */
  started_at: string;
  /**
   * State of the run.
   */
  state: RunState;
  /**
   * Treatments without a match on the other side, one line each.
   */
  unmatched: string[];
}
/**
 * Result of a gate for one pair.
 */
export interface GateView {
  /**
   * True change (a share, signed) that the gate shows in 80% of such runs; none if nothing can be judged.
   */
  catches: number | null;
  /**
   * Change (a share, signed); none without a ratio.
   */
  change: number | null;
  /**
   * 95% confidence interval of the change.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Form of the question: `--fail-if` or `--fail-unless`.
   */
  form: Form;
  /**
   * Gate.
   */
  gate: string;
  /**
   * Noise floor of the host (a share), where the gate asks for less.
   */
  noise_floor: number | null;
  /**
   * Outcome.
   */
  outcome: Outcome;
  /**
   * Index of the pair.
   */
  pair: number;
  /**
   * Evidence for the condition.
   */
  state: GateState;
  /**
   * Result as a sentence.
   */
  words: string;
}
/**
 * A treatment of B and the matching treatment of A.
 */
export interface PairView {
  /**
   * Treatment of A.
   */
  a: MemberView;
  /**
   * Treatment of B.
   */
  b: MemberView;
  /**
   * Whether a trial of either was generator-limited.
   */
  generator_limited: boolean;
  /**
   * Name of the pair.
   */
  label: string;
  /**
   * Ratios of B's percentiles of latency to A's.
   */
  latency: LatencyRatio[];
  /**
   * Ratio of B's tps to A's.
   */
  ratio: RatioView;
  /**
   * Parts of the difference; none if the loads differ or the difference is not significant.
   */
  why: WhyView | null;
  /**
   * Comparison as a sentence.
   */
  words: string;
}
/**
 * One treatment of a pair.
 */
export interface MemberView {
  /**
   * Levels.
   */
  factors: Levels;
  /**
   * Levels in one line.
   */
  label: string;
  /**
   * Latency of all transactions together (microseconds); none without a transaction.
   */
  latency_us: LatencyView | null;
  /**
   * Reason why `tps` or its interval is missing.
   */
  reason: string | null;
  /**
   * Transactions per second; none without a completed trial.
   */
  tps: TpsView | null;
  /**
   * Index in the plan of its run.
   */
  treatment: number;
  /**
   * Trials completed (count).
   */
  trials: number;
}
/**
 * Factors and their levels, in the order of the experiment.
 */
export interface Levels {
  [k: string]: LevelValue;
}
/**
 * A latency distribution in microseconds. A quantile beyond the sample's size equals the maximum. `stddev` is the standard deviation of the latencies, to three digits as the histogram is.
 */
export interface LatencyView {
  count: number;
  max: number;
  mean: number;
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p99_9: number;
  p99_99: number;
  stddev: number;
}
/**
 * Transactions per second over repeats.
 */
export interface TpsView {
  /**
   * Student's 95% confidence interval of the mean, cut at 0; none where `reason` of the treatment has one.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Fastest trial.
   */
  max: number;
  /**
   * Mean of the trials.
   */
  mean: number;
  /**
   * Slowest trial.
   */
  min: number;
  /**
   * Sample standard deviation of the trials; none for one trial.
   */
  sd: number | null;
}
/**
 * A percentile of latency over another treatment's.
 */
export interface LatencyRatio {
  /**
   * 95% confidence interval. Within a run it is simultaneous with those of all pairs; between two runs it holds for itself alone.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Method of the interval.
   */
  method: Method | null;
  /**
   * Name of the percentile.
   */
  percentile: string;
  /**
   * Geometric mean of the ratio.
   */
  value: number;
}
/**
 * Ratio of two treatments' tps, with its verdict.
 */
export interface RatioView {
  /**
   * 95% confidence interval. Within a run it is simultaneous: 95% of runs have all ratios in their intervals, whichever of them the data choose.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Minimum detectable effect: the true difference (a share) that 80% of such runs find significant.
   */
  detectable: number | null;
  /**
   * Whether the two are equivalent within the plan's margin (two one-sided tests, Holm); none without an interval or a margin.
   */
  equivalent: boolean | null;
  /**
   * Method of the interval.
   */
  method: Method | null;
  /**
   * p-value of no difference, for this comparison alone.
   */
  p: number | null;
  /**
   * p-value when all pairs of the run's treatments are judged together.
   */
  p_together: number | null;
  /**
   * Whether `p_together` is at most 5%; none without an interval, or where `withheld` says why.
   */
  told_apart: boolean | null;
  /**
   * Geometric mean of the ratio; none where none can be formed.
   */
  value: number | null;
  /**
   * Verdict as a sentence.
   */
  verdict: string;
  /**
   * Reason for an interval without a verdict.
   */
  withheld: string | null;
  /**
   * Interval from the trials of two runs alone. It lacks the spread between equal runs. None within one run.
   *
   * @minItems 2
   * @maxItems 2
   */
  within_runs: [number, number] | null;
}
/**
 * Difference of two treatments taken apart: B is compared with A. Times are means over trials.
 */
export interface WhyView {
  /**
   * Active time of the backends per transaction, by wait event; none where either side has no samples.
   */
  active: GapView | null;
  /**
   * Device, WAL and CPU figures of both sides.
   */
  figures: FigureView[];
  /**
   * Mean latency of a transaction by statement; none without a transaction on either side.
   */
  latency: GapView | null;
  /**
   * Telemetry that is missing, with reasons.
   */
  missing: string[];
  /**
   * Index of A in its plan.
   */
  to: number;
  /**
   * Index of B in its plan.
   */
  treatment: number;
  /**
   * Sentences on the largest parts.
   */
  words: string[];
}
/**
 * Difference (gap) and its parts, which add up to it.
 */
export interface GapView {
  /**
   * Mean of A (microseconds per transaction).
   */
  a_us: number;
  /**
   * Mean of B (microseconds per transaction).
   */
  b_us: number;
  /**
   * B minus A, over common blocks if trials are paired.
   */
  gap_us: Gap;
  /**
   * Parts, the largest first.
   */
  parts: PartView[];
  /**
   * Whether the interval leaves 0 out; none without one.
   */
  told_apart: boolean | null;
}
/**
 * A difference of means with its confidence interval.
 */
export interface Gap {
  /**
   * 95% confidence interval; none without repeats or spread.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Mean of the second treatment less that of the first.
   */
  value: number;
}
/**
 * One part of a gap.
 */
export interface PartView {
  /**
   * Mean of A (microseconds per transaction).
   */
  a_us: number;
  /**
   * Mean of B (microseconds per transaction).
   */
  b_us: number;
  /**
   * 95% confidence interval of the share (Fieller's).
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * B minus A.
   */
  gap_us: Gap;
  /**
   * Kind of the part; none for a wait event.
   */
  part: Part | null;
  /**
   * Share of the whole gap. Shares add up to 1; a part that shrank while the whole grew has a negative share.
   */
  share: number | null;
  /**
   * Name: a statement, a wait event, or a phrase.
   */
  what: string;
}
/**
 * A figure on both sides, as means over trials.
 */
export interface FigureView {
  /**
   * Mean of A; none without telemetry.
   */
  a: number | null;
  /**
   * Mean of B; none without telemetry.
   */
  b: number | null;
  /**
   * 95% confidence interval of the ratio.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Name.
   */
  name: string;
  /**
   * Geometric mean of B ÷ A; none if either is 0 or missing.
   */
  ratio: number | null;
  /**
   * Unit.
   */
  unit: string;
}
/**
 * Difference between the sides other than their results.
 */
export interface Unequal {
  /**
   * Value on side A.
   */
  a: string;
  /**
   * Value on side B.
   */
  b: string;
  /**
   * Whether `--by` names it.
   */
  on_purpose: boolean;
  /**
   * Indices of the pairs that differ in it.
   */
  pairs: number[];
  /**
   * Name: `kernel`, `device`, `setting shared_buffers`, …
   */
  what: string;
}
/**
 * The data of a page.
 */
export interface BesidePage {
  cautions: Caution[];
  differences: Difference[] | null;
  environment: Environment[];
  headline: Headline;
  kind: 'beside';
  pairs: PairsView | null;
  pgdyno_version: string;
  schema: 'pgdyno.page/1';
  steadiness: SteadinessRow[] | null;
  title: string;
  view: SideBySideView;
}
/**
 * Imported figures and a run. Nothing is computed between the two: they share neither machine nor repeats.
 */
export interface SideBySideView {
  /**
   * The imported run's name in the store.
   */
  imported: string;
  /**
   * Notes on what keeps the two apart.
   */
  notes: string[];
  /**
   * The run's treatments that have a completed trial.
   */
  ours: SideBySideRow[];
  /**
   * The run's name.
   */
  run: string;
  /**
   * The report's file.
   */
  source: string;
  /**
   * The report's rows, as it names them.
   */
  theirs: SideBySideRow[];
}
/**
 * Row of either side: a treatment of the run, or a row of the report.
 */
export interface SideBySideRow {
  /**
   * Connections.
   */
  clients: number | null;
  /**
   * Name: the treatment's label, or the report's own.
   */
  label: string;
  /**
   * Mean latency (milliseconds).
   */
  latency_ms: number | null;
  /**
   * tps over the highest of its side.
   */
  ratio_to_best: number;
  /**
   * Repeats; none where the report does not say.
   */
  repeats: number | null;
  /**
   * Transactions per second: the mean of the repeats.
   */
  tps: number;
  /**
   * 95% confidence interval of `tps`; always none for imported figures.
   *
   * @minItems 2
   * @maxItems 2
   */
  tps_ci95: [number, number] | null;
}
/**
 * One recipe over time and hosts.
 */
export interface History {
  /**
   * Runs that are not analysed yet (count): ask again for them.
   */
  pending: number;
  /**
   * The recipe's or the file's name.
   */
  recipe: string;
  /**
   * Treatments, in the order of the newest run that has each.
   */
  treatments: TreatmentHistory[];
}
/**
 * One treatment over time and hosts.
 */
export interface TreatmentHistory {
  /**
   * Results of the treatment, oldest first.
   */
  points: HistoryPoint[];
  /**
   * Levels of the treatment's factors, in one line.
   */
  treatment: string;
}
/**
 * A treatment in one run.
 */
export interface HistoryPoint {
  /**
   * 95% confidence interval of `tps`; null where none can be formed.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * The last session's machine, in words.
   */
  host: string | null;
  /**
   * 99th percentile of latency (microseconds).
   */
  latency_us_p99: number | null;
  /**
   * Version of the pgdyno that ran it.
   */
  pgdyno_version: string;
  /**
   * PostgreSQL's version.
   */
  postgres_version: string | null;
  /**
   * The run's id.
   */
  run: string;
  /**
   * When the run began (RFC 3339, UTC).
   */
  started_at: string;
  /**
   * Where the run stands.
   */
  state: RunState;
  /**
   * Mean transactions per second.
   */
  tps: number;
  /**
   * Completed trials (count).
   */
  trials: number;
}
/**
 * The store that is served, and the actions that visitors may take.
 */
export interface Info {
  /**
   * Whether runs may be asked to stop.
   */
  allows_control: boolean;
  /**
   * Whether notes can be written.
   */
  can_write_notes: boolean;
  /**
   * Why notes cannot be written; null if they can.
   */
  notes_reason: string | null;
  /**
   * The server's version.
   */
  pgdyno_version: string;
  /**
   * The store's path.
   */
  store: string;
}
/**
 * Runs that can be watched, newest first.
 */
export interface LiveRuns {
  /**
   * The runs.
   */
  runs: LiveRow[];
  /**
   * Another number once the store holds something else than before: `/api/runs` is to be read again. Notes and headlines do not count.
   */
  version: number;
}
/**
 * A run that can be watched.
 */
export interface LiveRow {
  /**
   * How the run ended; null while it works, and if its process died.
   */
  ended: string | null;
  /**
   * Why the run could not go on.
   */
  error: string | null;
  /**
   * The run's id.
   */
  id: string;
  /**
   * Whether the run's process still works.
   */
  is_alive: boolean;
  /**
   * The recipe's or the file's name.
   */
  recipe: string;
  /**
   * When the session began (RFC 3339, UTC).
   */
  started_at: string;
}
/**
 * A run at its beginning.
 */
export interface LiveRun {
  /**
   * Ordinals of the trials that earlier sessions completed.
   */
  done: number[];
  /**
   * Whether the run ends by itself once everything is decided.
   */
  is_open_ended: boolean;
  /**
   * The process that works on it.
   */
  owner: Owner;
  /**
   * Question of the experiment.
   */
  question: string | null;
  /**
   * The recipe's or the file's name.
   */
  recipe: string;
  /**
   * The run's id in the store.
   */
  run: string;
  /**
   * Schema of the records in words, `LiveRun::SCHEMA`.
   */
  schema: string;
  /**
   * When this session began.
   */
  started_at: Epoch;
  /**
   * Name of each treatment, by index.
   */
  treatments: string[];
  /**
   * All planned trials in order.
   */
  trials: PlannedTrial[];
  /**
   * Load before each measured window (seconds).
   */
  warm_up_s: number;
  /**
   * The measured window (seconds); none if a trial ends by count.
   */
  window_s: number | null;
}
/**
 * A process that owns what pgdyno made: alive only while pid, start and boot all agree.
 */
export interface Owner {
  /**
   * `/proc/sys/kernel/random/boot_id`.
   */
  boot_id: string;
  /**
   * The machine, as in `HostFacts::id`; none from an earlier version.
   */
  host?: string | null;
  /**
   * Process id.
   */
  pid: number;
  /**
   * The process's start in clock ticks since boot (`/proc/PID/stat`, field 22).
   */
  started_ticks: number;
}
/**
 * One trial to run.
 */
export interface PlannedTrial {
  /**
   * Round over all treatments that the trial belongs to, from 1.
   */
  block: number;
  /**
   * Place in the run, from 0.
   */
  ordinal: number;
  /**
   * Number among the treatment's trials, from 1.
   */
  repeat: number;
  /**
   * Index of the treatment.
   */
  treatment: number;
}
/**
 * One second of load.
 */
export interface LoadSecond {
  /**
   * Time from the beginning of the phase to the end of this second (seconds).
   */
  elapsed_s: number;
  /**
   * 99th percentile of the event loops' lag (microseconds); none where it was not measured.
   */
  event_loop_lag_us_p99: number | null;
  /**
   * Transactions that failed (count).
   */
  failed: number;
  /**
   * Latencies: bucket and count, 4 buckets an octave from 1 µs on, as `SecondLatencies::rebinned` has them.
   */
  latencies: [number, number][];
  /**
   * Median latency (microseconds); none if no transaction ended.
   */
  latency_us_p50: number | null;
  /**
   * 99th percentile of latency (microseconds).
   */
  latency_us_p99: number | null;
  /**
   * Expected time until the run ends (seconds).
   */
  left_s: number;
  /**
   * Whether the measured window is open; else it is warm-up.
   */
  measuring: boolean;
  /**
   * Transactions per second.
   */
  tps: number;
  /**
   * Wait events of the loaded backends, most frequent first, at most `LoadSecond::WAITS`, with the mean number of backends that waited (count). `CPU` stands for those that did not wait. Idle ones (`Client:ClientRead`) are left out.
   */
  waits: [string, number][];
}
/**
 * How the comparisons of a run stand after a block.
 */
export interface Outlook {
  /**
   * Blocks that are complete (count).
   */
  blocks: number;
  /**
   * Further blocks until all comparisons are decided, estimated from the intervals so far (count). None if there is no estimate yet, or if some comparisons would stay open after `ceiling` blocks.
   */
  blocks_left: number | null;
  /**
   * Most blocks that the run measures (count).
   */
  ceiling: number;
  /**
   * Comparisons in all (count).
   */
  comparisons: number;
  /**
   * Comparisons that are decided (count).
   */
  decided: number;
}
/**
 * A run as its records have it so far.
 */
export interface LiveDocument {
  /**
   * The trial in progress; none between trials.
   */
  current: LiveTrial | null;
  /**
   * How the run ended, and why it could not go on; none while it works.
   *
   * @minItems 2
   * @maxItems 2
   */
  ended: [string, string | null] | null;
  /**
   * Whether the run's process is gone without a last record.
   */
  has_died: boolean;
  /**
   * Whether the run was asked to end after the trial in progress.
   */
  is_stopping: boolean;
  /**
   * Expected time until the run ends (seconds).
   */
  left_s: number | null;
  /**
   * Notes and warnings so far; a warning begins with `warning: `.
   */
  messages: string[];
  /**
   * How the comparisons stand.
   */
  outlook: Outlook | null;
  /**
   * The run; none before its first record.
   */
  run: LiveRun | null;
  /**
   * State of each planned trial, by its place in the plan.
   */
  trials: LiveTrialState[];
  /**
   * Work without transactions, in words, with how much of it is done (0 to 1); none while load runs.
   *
   * @minItems 2
   * @maxItems 2
   */
  working: [string, number | null] | null;
}
/**
 * The trial in progress.
 */
export interface LiveTrial {
  /**
   * Time of the trial's begin.
   */
  at: Epoch;
  /**
   * Round over all treatments that the trial belongs to, from 1.
   */
  block: number;
  /**
   * Place in the run, from 0.
   */
  ordinal: number;
  /**
   * Number among the treatment's trials, from 1.
   */
  repeat: number;
  /**
   * Seconds so far, warm-up included.
   */
  seconds: LoadSecond[];
  /**
   * Index of the treatment.
   */
  treatment: number;
}
/**
 * A run was asked to end after the trial in progress.
 */
export interface StopAsked {
  /**
   * The run's id.
   */
  run: string;
}
/**
 * A note with its earlier versions.
 */
export interface NoteHistory {
  /**
   * Id of the result.
   */
  id: string;
  /**
   * Every version, newest first; empty where nobody wrote one.
   */
  versions: NoteVersion[];
}
/**
 * A version of a note.
 */
export interface NoteVersion {
  /**
   * Tags, in the order in which they were written.
   */
  tags: string[];
  /**
   * The text; empty for tags without a note.
   */
  text: string;
  /**
   * When it was written.
   */
  written_at: string;
}
/**
 * The data of a page.
 */
export interface RunPage {
  cautions: Caution[];
  differences: Difference[] | null;
  environment: Environment[];
  headline: Headline;
  kind: 'run';
  pairs: PairsView | null;
  pgdyno_version: string;
  schema: 'pgdyno.page/1';
  steadiness: SteadinessRow[] | null;
  title: string;
  view: RunView;
}
/**
 * A run.
 */
export interface RunView {
  /**
   * Whether `pgdyno pgbench --store` stored it: nothing but the load was controlled.
   */
  ad_hoc: boolean;
  /**
   * Answer to the run's question, in one or two sentences.
   */
  answer: string[];
  /**
   * The index of the treatment with the highest geometric mean of tps; none where none can be formed.
   */
  best: number | null;
  /**
   * Rates that each treatment's searches tried; empty without a search.
   */
  capacity: CapacityView[];
  /**
   * The notes with their tiers: first those that may change the conclusion.
   */
  cautions: Caution[];
  /**
   * Pairs of treatments that differ in one factor.
   */
  comparisons: Comparison[];
  /**
   * Courses over ordered factors of three levels or more; empty before a run is complete.
   */
  courses: CourseView[];
  /**
   * Crash tests of the treatments, in order; treatments that differ in their load only share one.
   */
  crashes: CrashView[];
  /**
   * Average effect that the question asks for; none without such a question, with one combination of the other factors, or before a run is complete.
   */
  effect: EffectView | null;
  /**
   * The experiment file's text.
   */
  experiment: string;
  /**
   * Results of fsync probes, oldest first.
   */
  fsync: FsyncView[];
  /**
   * Verdict card: badge, key figures, next command.
   */
  headline: Headline;
  /**
   * Interactions of each two factors; empty before a run is complete.
   */
  interactions: InteractionView[];
  /**
   * Noise floor of the last session's host; none where it is not known.
   */
  noise_floor: NoiseFloor | null;
  /**
   * Noise that earlier runs on the host predicted, and whether it counts; none if they told nothing.
   */
  noise_prior: NoisePriorView | null;
  /**
   * Notes that a reader needs to trust or doubt the figures.
   */
  notes: string[];
  /**
   * The `--set key=value` that were given.
   */
  overrides: string[];
  /**
   * Plan of the run.
   */
  plan: Plan;
  /**
   * Probes of the storages before and after the trials, in order.
   */
  probes: StageProbeView[];
  /**
   * The run.
   */
  run: RunHead;
  /**
   * Growth of tps with the number of clients; empty for fewer than three numbers of clients.
   */
  scaling: ScalingView[];
  /**
   * Every distinct server.
   */
  servers: ServerView[];
  /**
   * Sessions: processes that worked on the run.
   */
  sessions: SessionView[];
  /**
   * State of a run that may end by itself; none for fixed repeats.
   */
  stopping: StoppingView | null;
  /**
   * Removals of detail from its records, oldest first: when, and how much.
   */
  thinned: Thinning[];
  /**
   * Every treatment, in the plan's order.
   */
  treatments: TreatmentView[];
  /**
   * Every attempt at a trial, in the order of recording.
   */
  trials: TrialView[];
  /**
   * Parts of each significant difference: against the best, and between treatments that differ in one factor.
   */
  why: WhyView[];
}
/**
 * Rates that a treatment's searches tried.
 */
export interface CapacityView {
  /**
   * The rates with their latencies, over all completed trials: the lower rate first.
   */
  curve: CurvePoint[];
  /**
   * Latency that a rate must keep; none where the objective names none.
   */
  objective: ObjectiveView | null;
  /**
   * The treatment's index.
   */
  treatment: number;
  /**
   * Maximum rate, in a sentence.
   */
  words: string;
}
/**
 * Step of a search: a rate that one trial tried.
 */
export interface CurvePoint {
  /**
   * Reason why the step did not keep the objective; none if it did.
   */
  broken: string | null;
  /**
   * Whether the step was to confirm the answer of the search.
   */
  confirming: boolean;
  /**
   * Median latency (microseconds).
   */
  latency_us_p50: number | null;
  /**
   * 95th percentile of latency.
   */
  latency_us_p95: number | null;
  /**
   * 99th percentile of latency.
   */
  latency_us_p99: number | null;
  /**
   * The trial's place in the plan, from 0.
   */
  ordinal: number;
  /**
   * Transactions offered per second.
   */
  rate: number;
}
/**
 * The limit of latency in an objective; the first where there are several.
 */
export interface ObjectiveView {
  /**
   * The limit (microseconds).
   */
  limit_us: number;
  /**
   * The percentile: `p99`.
   */
  percentile: string;
  /**
   * The whole objective: `p99 < 20ms, failed < 0.1%`.
   */
  text: string;
}
/**
 * Two treatments that differ in one factor only.
 */
export interface Comparison {
  /**
   * Factor in which they differ.
   */
  factor: string;
  /**
   * Whether a trial of either was generator-limited, so that the difference may be the generator's.
   */
  generator_limited: boolean;
  /**
   * Levels of the other factors, which both share, in one line; empty for an experiment of one factor.
   */
  given: string;
  /**
   * Whether the difference is significant, as the ratio's `significant` says.
   */
  holm: boolean | null;
  /**
   * Ratios of percentiles of latency.
   */
  latency: LatencyRatio[];
  /**
   * The ratio of their tps.
   */
  ratio: RatioView;
  /**
   * Index of the treatment that it is compared with.
   */
  to: number;
  /**
   * Index of the compared treatment.
   */
  treatment: number;
  /**
   * Comparison as a sentence.
   */
  words: string;
}
/**
 * Course of tps, or of the maximum rate, over the levels of an ordered factor.
 */
export interface CourseView {
  /**
   * Fitted curve, a point for each of `treatments`; empty where the treatments share no noise.
   */
  curve: CoursePoint[];
  /**
   * The factor.
   */
  factor: string;
  /**
   * Whether the course falls somewhere.
   */
  falls: boolean;
  /**
   * The other factors' levels in one line; empty where this factor is all that varies.
   */
  given: string;
  /**
   * First and last of `treatments` (positions) that may be the highest, with 95% confidence, if there is one peak; none where it falls and rises again.
   *
   * @minItems 2
   * @maxItems 2
   */
  peak: [number, number] | null;
  /**
   * Whether the course rises somewhere.
   */
  rises: boolean;
  /**
   * Indices of the measured treatments, by ascending level.
   */
  treatments: number[];
}
/**
 * Point of a fitted curve.
 */
export interface CoursePoint {
  /**
   * Band that holds the whole curve's shape in 95% of runs, if it has one peak.
   *
   * @minItems 2
   * @maxItems 2
   */
  band: [number, number];
  /**
   * Fitted tps, or maximum rate (1/s).
   */
  value: number;
}
/**
 * Crash tests as JSON has them: sums over all faults, then each fault.
 */
export interface CrashView {
  /**
   * Transactions acknowledged in the rounds of all faults (count).
   */
  acknowledged: number;
  /**
   * Whether all planned rounds were done.
   */
  complete: boolean;
  /**
   * Positive controls.
   */
  controls: Control[];
  /**
   * Names of the faults, joined by commas.
   */
  fault: string;
  /**
   * Results fault by fault.
   */
  faults: FaultView[];
  /**
   * Mounts after power cuts and fsck, over the rounds of all faults; none without a power cut.
   */
  filesystems: FilesystemsView | null;
  /**
   * Fault that set the verdict; none if no fault was tried.
   */
  gravest: GravestFault | null;
  /**
   * Machine.
   */
  host: HostFacts;
  /**
   * Name in the store.
   */
  id: string;
  /**
   * Acknowledged transactions that are missing (count). It is not a share of `acknowledged`: the rounds of other faults dilute it.
   */
  lost: number;
  /**
   * Name of the crashed server.
   */
  name: string;
  /**
   * Circumstances that weaken the verdict.
   */
  notes: string[];
  /**
   * Age of the oldest lost transaction at its fault (milliseconds).
   */
  oldest_lost_ms: number | null;
  /**
   * Version of pgdyno.
   */
  pgdyno_version: string;
  /**
   * Reason for the verdict.
   */
  reason: string;
  /**
   * Longest recovery (milliseconds).
   */
  recovery_ms: number | null;
  /**
   * Rounds (count).
   */
  rounds: number;
  /**
   * Run that they belong to.
   */
  run: string | null;
  /**
   * Seed that repeats every round.
   */
  seed: Seed;
  /**
   * Version of the server.
   */
  server_version: string;
  /**
   * Settings that were asked for.
   */
  settings: {
    [k: string]: string;
  };
  /**
   * Begin of the session.
   */
  started_at: string;
  /**
   * All states of a recorded stretch; none where moments were drawn.
   */
  states: StatesView | null;
  /**
   * Storage of PGDATA.
   */
  storage: StorageFacts;
  /**
   * Index of the run's treatment.
   */
  treatment: number | null;
  /**
   * The verdict.
   */
  verdict: Verdict;
}
/**
 * A round that must fail, to show that the instrument sees.
 */
export interface Control {
  /**
   * Fault whose failures the control shows to be seen; none if it stands for the whole session.
   */
  fault: Fault | null;
  /**
   * Name of the planted failure.
   */
  name: string;
  /**
   * Reason for the verdict.
   */
  reason: string;
  /**
   * Whether the instrument saw the planted failure.
   */
  seen: boolean;
  /**
   * Verdict of the control's round.
   */
  verdict: Verdict;
}
/**
 * Result of one fault, as JSON has it.
 */
export interface FaultView {
  /**
   * Transactions acknowledged in all rounds (count).
   */
  acknowledged: number;
  /**
   * Upper bound of the probability that a round fails (95% confidence); none if one failed.
   */
  chance_at_most: number | null;
  /**
   * All rounds.
   */
  each: Round[];
  /**
   * The fault.
   */
  fault: string;
  /**
   * Mounts after power cuts and fsck; none for a fault that cuts no power.
   */
  filesystems: FilesystemsView | null;
  /**
   * Acknowledged transactions that are missing (count).
   */
  lost: number;
  /**
   * Median over the rounds of the age of each one's oldest loss (milliseconds), 0 for a round without one; none if nothing was lost.
   */
  median_lost_ms: number | null;
  /**
   * Age of the oldest lost transaction at the fault (milliseconds).
   */
  oldest_lost_ms: number | null;
  /**
   * Whether the fault is meant to fail.
   */
  planted: boolean;
  /**
   * Detection power of the rounds; none for a fault that tests no flushes.
   */
  power: PowerView | null;
  /**
   * Reason for the verdict.
   */
  reason: string;
  /**
   * The longest recovery (milliseconds).
   */
  recovery_ms: number | null;
  /**
   * Rounds (count).
   */
  rounds: number;
  /**
   * The verdict.
   */
  verdict: Verdict;
}
/**
 * One round: load, fault, recovery, verification.
 */
export interface Round {
  /**
   * Transactions acknowledged (count).
   */
  acknowledged: number;
  /**
   * Moment at which the fault struck.
   */
  aim: Aim;
  /**
   * Result of each oracle.
   */
  checks: Check[];
  /**
   * Command that repeats the round. Pages alone have it.
   */
  command?: string | null;
  /**
   * Filesystems that were mounted again after a power cut: that of PGDATA, then that of pg_wal where it has its own. Empty for other faults, and in records of earlier versions.
   */
  filesystems: FilesystemRecovery[];
  /**
   * Transactions whose COMMIT was in flight (count).
   */
  in_doubt: number;
  /**
   * Folder with the remains of a failed round; none where nothing was kept.
   */
  kept: string | null;
  /**
   * Lines of the ledger, for people: lost transactions among their neighbours, or the last ones before the fault. None if the fault was not tried, and in records of earlier versions.
   */
  ledger: string | null;
  /**
   * Lines of the server's log that bear on it.
   */
  log: string;
  /**
   * Acknowledged transactions that are missing (count).
   */
  lost: number;
  /**
   * Details of the fault that its name does not tell.
   */
  notes: string[];
  /**
   * Number of the round within its fault, from 1.
   */
  number: number;
  /**
   * Age of the oldest lost transaction at the fault (milliseconds).
   */
  oldest_lost_ms: number | null;
  /**
   * Amount of testing that the round did.
   */
  power: RoundPower;
  /**
   * Reason for the verdict.
   */
  reason: string;
  /**
   * From the end of the fault until the server took connections (milliseconds); none if it did not.
   */
  recovery_ms: number | null;
  /**
   * Seed that repeats the round.
   */
  seed: Seed;
  /**
   * Time from the load's beginning to the fault (milliseconds).
   */
  struck_after_ms: number;
  /**
   * First lost transactions, oldest first.
   */
  tokens: LostTransaction[];
  /**
   * Verdict of the oracles.
   */
  verdict: Verdict;
}
/**
 * A filesystem after the power cut of a round.
 */
export interface FilesystemRecovery {
  /**
   * The filesystem's name: `ext4`.
   */
  filesystem: string;
  /**
   * Result of a check without repairs, after the server had recovered and stopped and the filesystem was unmounted.
   */
  fsck: Fsck;
  /**
   * Duration of the first mount after the last power cut, which replays the journal (milliseconds).
   */
  mount_ms: number;
  /**
   * The storage's name in the experiment file.
   */
  storage: string;
}
/**
 * Amount of testing that a round did between its baseline and its fault.
 */
export interface RoundPower {
  /**
   * Share of the disk's cache that the cut took (0 to 1); the rest had reached the medium. It is the probability with which a write is lost whose flush was skipped. None: all of the cache.
   */
  cache_lost: number | null;
  /**
   * Checkpoints that completed (count). Recovery replays WAL since the last of them, so that without one no flush of a data file is under test.
   */
  checkpoints: number | null;
  /**
   * Whether the disk's own flushes were under test, as on an emulated disk; else only those of kernel and filesystem.
   */
  disk_flushes: boolean;
  /**
   * Flushes that the storage completed (count); none where nothing counts them.
   */
  flushes: number | null;
  /**
   * Acknowledged commits that only the last completed flush made durable (count): a storage that skipped this flush would have lost them.
   */
  last_window: number | null;
}
/**
 * An acknowledged transaction that is missing after recovery.
 */
export interface LostTransaction {
  /**
   * Time from the acknowledgement to the fault (milliseconds).
   */
  age_ms: number;
  /**
   * Name of the transaction.
   */
  token: Token;
}
/**
 * Unique name of one transaction of a load.
 */
export interface Token {
  /**
   * The client's number, from 0.
   */
  client: number;
  /**
   * The transaction's number among the client's; each is one more than the one before.
   */
  sequence: number;
}
/**
 * Mounts after power cuts and what fsck found then, over rounds.
 */
export interface FilesystemsView {
  /**
   * Rounds in which fsck ended with another status than 0 (count).
   */
  complaints: number;
  /**
   * Median over these rounds of the time that a read-only fsck took (milliseconds); none if it was not run.
   */
  fsck_ms: number | null;
  /**
   * Median over these rounds of the time that the mount took, in which the journal is replayed (milliseconds).
   */
  mount_ms: number | null;
  /**
   * Rounds in which a filesystem was mounted after a power cut (count).
   */
  rounds: number;
  /**
   * Figures in sentences.
   */
  words: string[];
}
/**
 * Detection power: what the rounds put under test, and which faulty disks they would have shown.
 */
export interface PowerView {
  /**
   * Checkpoints that completed (count); none where no round counted them.
   */
  checkpoints: number | null;
  /**
   * Whether the disk's own flushes were under test in every round.
   */
  disk_flushes: boolean;
  /**
   * Flushes that the storage completed (count); none where no round counted them.
   */
  flushes: number | null;
  /**
   * Fewest and most acknowledged commits in the last flush window (count); none where no round counted them.
   *
   * @minItems 2
   * @maxItems 2
   */
  last_window: [number, number] | null;
  /**
   * Probability of detecting a disk that skips one flush in 100; none as above.
   */
  one_in_100_seen: number | null;
  /**
   * Probability of detecting a disk that skips one flush in 10. None if the fault is planted, or tests no disk's flushes.
   */
  one_in_10_seen: number | null;
  /**
   * Rounds that count towards the bound (count). In such a round a checkpoint completed. If the fault is a power cut alone, an acknowledged commit also lay in the last flush window, unless nobody counted those commits.
   */
  rounds: number;
  /**
   * Rounds on whose disk flushes were under test with a commit in the last window (count): see `skip_seen`.
   */
  windows: number;
  /**
   * Detection power in sentences; empty if nothing was counted.
   */
  words: string[];
}
/**
 * Fault that set the verdict of a session, with the loss in its own rounds.
 */
export interface GravestFault {
  /**
   * Transactions acknowledged in these rounds (count).
   */
  acknowledged: number;
  /**
   * Fault.
   */
  fault: Fault;
  /**
   * Acknowledged transactions that are missing (count).
   */
  lost: number;
  /**
   * Whether the fault is meant to fail.
   */
  planted: boolean;
  /**
   * Rounds of the fault (count).
   */
  rounds: number;
  /**
   * Verdict.
   */
  verdict: Verdict;
}
/**
 * The machine that ran the trials.
 */
export interface HostFacts {
  /**
   * Limits of pgdyno's control group.
   */
  cgroup: CgroupFacts;
  /**
   * Layout and clocking of the CPUs.
   */
  cpu: CpuFacts;
  /**
   * CPU model, from `/proc/cpuinfo`.
   */
  cpu_model: string;
  /**
   * Logical CPUs online (count).
   */
  cpus: number;
  /**
   * Manufacturer and model.
   */
  hardware: Hardware;
  /**
   * Digest of `/etc/machine-id`, which tells machines apart. None where the file does not exist.
   */
  id?: string | null;
  /**
   * Kernel name, release and machine, from uname.
   */
  kernel: string;
  /**
   * Load average over the minute before, from `/proc/loadavg`: processes that ran, or waited for a CPU or a disk (count). None in records of earlier versions.
   */
  load_average?: number | null;
  /**
   * Main memory.
   */
  memory: Bytes;
  /**
   * Name on the network, from uname.
   */
  name?: string | null;
  /**
   * Distribution and version, from `/etc/os-release`.
   */
  os: string;
  /**
   * Layout and paging of the memory.
   */
  paging: MemoryFacts;
  /**
   * Command line and settings of the kernel.
   */
  settings: KernelFacts;
  /**
   * Hypervisor, container and cloud.
   */
  virtualization: Virtualization;
}
/**
 * Limits of pgdyno's own control group and those above it: the tightest of each.
 */
export interface CgroupFacts {
  /**
   * CPUs' worth of time (count), from `cpu.max` or `cpu.cfs_quota_us`.
   */
  cpus: number | null;
  /**
   * CPUs that may be used, if not all: `Cpus_allowed_list`, which `taskset` sets within the control group's limits, else `cpuset.cpus.effective`.
   */
  cpuset: string | null;
  /**
   * Limits of devices' traffic, as `io.max` or `blkio.throttle.*` have them.
   */
  io: string[];
  /**
   * Memory, page cache included, from `memory.max`, `memory.high` or `memory.limit_in_bytes`.
   */
  memory: Bytes | null;
}
/**
 * CPUs, from `/sys/devices/system/cpu` and `/proc/cpuinfo`.
 */
export interface CpuFacts {
  /**
   * The lowest of the highest frequencies that the CPUs are allowed (kHz), `scaling_max_freq`.
   */
  allowed_max_khz: number | null;
  /**
   * Whether turbo or boost is on.
   */
  boost: boolean | null;
  /**
   * Cores of all sockets together (count).
   */
  cores: number | null;
  /**
   * `cpufreq/scaling_driver`.
   */
  driver: string | null;
  /**
   * The different `cpufreq/energy_performance_preference` in use.
   */
  energy_preferences: string[];
  /**
   * The different `cpufreq/scaling_governor` in use; one where all CPUs have the same.
   */
  governors: string[];
  /**
   * The highest frequency that the hardware has (kHz), `cpuinfo_max_freq`.
   */
  hardware_max_khz: number | null;
  /**
   * The lowest frequency that the hardware has (kHz), `cpuinfo_min_freq`.
   */
  hardware_min_khz: number | null;
  /**
   * Microcode revision, from `/proc/cpuinfo`.
   */
  microcode: string | null;
  /**
   * Whether several hardware threads share a core (`smt/active`).
   */
  smt: boolean | null;
  /**
   * Sockets (count).
   */
  sockets: number | null;
}
/**
 * DMI's names, from `/sys/class/dmi/id`. Serial numbers and UUIDs are never read.
 */
export interface Hardware {
  /**
   * `bios_vendor`, `bios_version` and `bios_date`, as far as there.
   */
  bios: string | null;
  /**
   * `board_name`.
   */
  board: string | null;
  /**
   * `product_name`.
   */
  product: string | null;
  /**
   * `sys_vendor`.
   */
  vendor: string | null;
  /**
   * `product_version`.
   */
  version: string | null;
}
/**
 * Memory, from `/sys/kernel/mm`, `/sys/devices/system/node` and `/proc/meminfo`.
 */
export interface MemoryFacts {
  /**
   * Size of one explicit huge page.
   */
  huge_page_size: Bytes | null;
  /**
   * Explicit huge pages set aside (count), `HugePages_Total`.
   */
  huge_pages: number | null;
  /**
   * The memory of each NUMA node, in the nodes' order.
   */
  numa_nodes: Bytes[];
  /**
   * Swap space.
   */
  swap: Bytes | null;
  /**
   * Transparent huge pages: `always`, `madvise` or `never`.
   */
  transparent_hugepage: string | null;
  /**
   * Effort of the kernel to provide transparent huge pages: `transparent_hugepage/defrag`.
   */
  transparent_hugepage_defrag: string | null;
}
/**
 * The kernel's settings.
 */
export interface KernelFacts {
  /**
   * The clock behind `clock_gettime`: `tsc`, `kvm-clock`, `hpet`, …
   */
  clocksource: string | null;
  /**
   * Every clock that the kernel could use.
   */
  clocksources: string[];
  /**
   * `/proc/cmdline` up to ` -- `, where init's arguments begin. Values that look like secrets are left out.
   */
  cmdline: string | null;
  /**
   * Sysctls that affect databases, by name.
   */
  sysctl: {
    [k: string]: string;
  };
  /**
   * CPU vulnerabilities and their mitigations, from `/sys/devices/system/cpu/vulnerabilities`.
   */
  vulnerabilities: {
    [k: string]: string;
  };
}
/**
 * Virtualization around the system: hypervisor, container, cloud.
 */
export interface Virtualization {
  /**
   * The cloud, as DMI tells it: `Amazon EC2`, …
   */
  cloud: string | null;
  /**
   * The container manager: `docker`, `podman`, `lxc`, …
   */
  container: string | null;
  /**
   * The hypervisor: `kvm`, `vmware`, …; `unknown` where the CPU says that there is one and DMI does not say which.
   */
  hypervisor: string | null;
  /**
   * Instance type of the cloud, where DMI tells it.
   */
  instance_type: string | null;
  /**
   * CPU time since boot that the hypervisor gave to others (share of all CPU time, 0 to 1).
   */
  steal: number | null;
}
/**
 * All states of a recorded stretch of load.
 */
export interface StatesView {
  /**
   * States at flush boundaries.
   */
  boundaries: StateCount;
  /**
   * Cause of failure of the first flush boundary that failed; none if none failed.
   */
  cause: FailureCause | null;
  /**
   * Flush boundaries that changed nothing: the state of the flush before was judged for both (count).
   */
  equal_boundaries: number;
  /**
   * States within epochs whose image is that of another state, which is judged at least as strictly (count).
   */
  equal_within: number;
  /**
   * States that failed (count).
   */
  failed: number;
  /**
   * The first states that failed.
   */
  failures: FailedState[];
  /**
   * Time that all states took together, side by side where `jobs` says so (milliseconds). None without a state, and in records of earlier versions.
   */
  judging_ms: number | null;
  /**
   * Folder with the image, the disk log and the ledger, if a state failed.
   */
  kept: string | null;
  /**
   * Acknowledged transactions that are missing in any state (count).
   */
  lost: number;
  /**
   * Phases of `state_ms`. None without a state, and in records of earlier versions.
   */
  phases: StatePhases | null;
  /**
   * Why.
   */
  reason: string;
  /**
   * Median time to show, mount, recover and judge a state (milliseconds). None without a state.
   */
  state_ms: number | null;
  /**
   * Recorded stretch of load.
   */
  stretch: RecordedStretch;
  /**
   * States whose server was looked at by every oracle (count). The others were looked at by the ledger's, by the sums, and by a scan of every table.
   */
  thorough: number;
  /**
   * Why the first unknown state could not be checked.
   */
  unchecked: string | null;
  /**
   * States that could not be checked (count).
   */
  unknown: number;
  /**
   * Reason for the verdict.
   */
  verdict: Verdict;
  /**
   * States within epochs, by kind.
   */
  within: StateCount[];
  /**
   * The logarithm to base 2 of the number of all states within epochs, none of them torn. None if there is no such state.
   */
  within_log2: number | null;
  /**
   * Sentences: how many states were judged, and what was found in them.
   */
  words: string[];
}
/**
 * States of one kind.
 */
export interface StateCount {
  /**
   * States that were judged (count).
   */
  judged: number;
  /**
   * The kind.
   */
  kind: StateKind;
  /**
   * States that there are (count).
   */
  total: number;
}
/**
 * A write that a state lacks, although later ones are there; or one that is torn.
 */
export interface MissingWrite {
  /**
   * Files that the write is part of, as far as they are known. For a torn write, files of the page that the tear is in.
   */
  files: FilePart[];
  /**
   * Bytes at the write's beginning that are there; 0 if all of it is missing.
   */
  kept: number;
  /**
   * Number of the write in the disk log.
   */
  number: number;
  /**
   * PostgreSQL's pages in the write, each with its WAL position (an LSN as a number).
   */
  pages: [PageKind, number][];
}
/**
 * A part of a file.
 */
export interface FilePart {
  /**
   * The file, below PGDATA.
   */
  file: string;
  /**
   * Length (bytes).
   */
  length: number;
  /**
   * Offset in the file (bytes).
   */
  offset: number;
}
/**
 * A flush that a disk was not asked for in time.
 */
export interface MissingFlush {
  /**
   * Write that the flush had to cover, by its number.
   */
  after: number;
  /**
   * Newest event when a transaction that needs that write was acknowledged, by its number.
   */
  before: number;
  /**
   * Name of that transaction.
   */
  token: Token;
}
/**
 * A state that the server did not survive as it must.
 */
export interface FailedState {
  /**
   * Why the state failed. Between flushes only the first state of each verdict has a cause.
   */
  cause: FailureCause | null;
  /**
   * How the state was derived.
   */
  kind: StateKind;
  /**
   * Lines of the server's log that bear on it.
   */
  log: string;
  /**
   * Acknowledged transactions that are missing (count).
   */
  lost: number;
  /**
   * Earlier writes that the state lacks or has in part.
   */
  missing: MissingWrite[];
  /**
   * Newest event of the disk log that the state contains, by its number.
   */
  newest: number;
  /**
   * Reason for the verdict.
   */
  reason: string;
  /**
   * First lost transactions.
   */
  tokens: Token[];
  /**
   * First event of the disk log after which no cut leaves this state, by its number; none if there is no such event.
   */
  until: number | null;
  /**
   * Verdict on the state.
   */
  verdict: Verdict;
}
/**
 * How long the parts of judging a state took (milliseconds): of each the median of all states.
 */
export interface StatePhases {
  /**
   * The disk's power is cut, and what was mounted goes.
   */
  cut_ms: number;
  /**
   * The disk shows the state, and the kernel mounts it.
   */
  mount_ms: number;
  /**
   * The oracles' reads, a clean stop of the server and another start.
   */
  oracles_ms: number;
  /**
   * The server starts and recovers; 0 where the filesystem was not mounted.
   */
  recovery_ms: number;
}
/**
 * The stretch of load that was recorded.
 */
export interface RecordedStretch {
  /**
   * Transactions that were acknowledged (count).
   */
  acknowledged: number;
  /**
   * Acknowledged transactions for which the write of the commit record is known (count). None where commits are asynchronous, and in records of earlier versions.
   */
  by_record: number | null;
  /**
   * Checkpoints that completed (count).
   */
  checkpoints: number;
  /**
   * Transactions that were acknowledged before a flush covered their commit record, or, where that is not known, what was written since their COMMIT was sent (count). None where commits are asynchronous.
   */
  early: number | null;
  /**
   * The first of the early ones.
   */
  first_early: Token[];
  /**
   * Flushes that the disk did (count).
   */
  flushes: number;
  /**
   * How long it was (milliseconds).
   */
  length_ms: number;
  /**
   * The size of the disk log (bytes).
   */
  log_bytes: number;
  /**
   * Writes and discards (count).
   */
  writes: number;
}
/**
 * A storage's directory, with the filesystem and the devices that hold it.
 */
export interface StorageFacts {
  /**
   * Stack that the experiment asked for; none in records from before pgdyno knew stacks, and where no experiment asks.
   */
  asked: Storage | null;
  /**
   * Further attributes that new files in the directory inherit: those of chattr(1) (`+S`), and btrfs's properties (`compression=zstd`).
   */
  attributes: string[];
  /**
   * Room that an unprivileged user may still fill.
   */
  available: Bytes;
  /**
   * Filesystems beneath the directory's own, upper ones first; none in records of earlier versions.
   */
  beneath: FilesystemBeneath[];
  /**
   * The filesystem's block size (bytes), from statvfs.
   */
  block_bytes: number | null;
  /**
   * The block device's kernel name (`vda1`), where there is one.
   */
  device: string | null;
  /**
   * Devices that the filesystem lies on, each with the devices under it.
   */
  devices: BlockDevice[];
  /**
   * Directory of the storage.
   */
  directory: string;
  /**
   * The whole disk that the device is part of (`vda`), or the device itself.
   */
  disk: string | null;
  /**
   * Why the storage could not be made; nothing else is known of it then.
   */
  failure: string | null;
  /**
   * The mount's filesystem type, from `/proc/self/mountinfo`.
   */
  filesystem: string;
  /**
   * Other properties of the filesystem, by its own names: ZFS's properties, btrfs's profiles.
   */
  geometry: {
    [k: string]: string;
  };
  /**
   * The disk's model, where sysfs tells.
   */
  model: string | null;
  /**
   * Mount and superblock options.
   */
  mount_options: string;
  /**
   * Mount point of the filesystem.
   */
  mount_point: string;
  /**
   * Name in the experiment file.
   */
  name: string;
  /**
   * Whether new files in the directory are written in place on a copy-on-write filesystem (`chattr +C`).
   */
  no_copy_on_write: boolean | null;
  /**
   * Whether it failed because this machine lacks something (kernel, program, root): its trials are left out instead of failed.
   */
  not_available_here: boolean;
  /**
   * Stack that was made, as read once it stood.
   */
  obtained: StackFacts | null;
  /**
   * `true` for spinning media, as the kernel believes.
   */
  rotational: boolean | null;
  /**
   * The I/O scheduler in use.
   */
  scheduler: string | null;
  /**
   * The filesystem's size.
   */
  size: Bytes;
  /**
   * The mount's source as the kernel names it.
   */
  source: string;
  /**
   * Facts that could not be found out, and why.
   */
  unavailable: string[];
  /**
   * `write back` or `write through`, as the kernel believes.
   */
  write_cache: string | null;
}
/**
 * `[storage.<name>]`.
 */
export interface Storage {
  /**
   * Backing that carries the bytes.
   */
  backing: Backing;
  /**
   * Settings of the device under it while trials run; put back afterwards.
   */
  device: DeviceSettings;
  /**
   * Filesystem to make. None for a directory, which is used as it is, and for a RAM disk, which is a tmpfs.
   */
  filesystem: FilesystemChoice | null;
  /**
   * Whether trials judge each commit by the flushes of the disk under `pg_wal`, which must be emulated.
   */
  flush_accounting?: boolean;
  /**
   * Limit on the device's speed; none leaves it as it is.
   */
  limit: Limit | null;
  /**
   * Device type by which smartctl reaches the disk; none lets smartctl find out.
   */
  smart?: SmartType | null;
  /**
   * Tables that lie on other storages: the storage's name, and the tables in a tablespace on it.
   */
  tablespaces: {
    [k: string]: string[];
  };
  /**
   * Name of the storage that holds `pg_wal`; none leaves it in PGDATA.
   */
  wal: string | null;
}
/**
 * A file behind a loop device.
 */
export interface LoopFile {
  /**
   * Whether the loop device bypasses the page cache of the filesystem that holds the file.
   */
  direct_io: boolean;
  /**
   * The directory that the file is made in; none means pgdyno's own.
   */
  directory: string | null;
  /**
   * Offset of the loop device in the file (bytes); none: 0, which is aligned. Old partition tables began the first partition at 63 sectors of 512 bytes, so that each block of the filesystem lies on two of the disk's.
   */
  offset?: Bytes | null;
  /**
   * Logical sector size of the loop device (bytes): 512 or 4096; none means the kernel's default.
   */
  sector_size: number | null;
  /**
   * The loop device's size. The file is larger by `offset`, and allocated in full.
   */
  size: Bytes;
}
/**
 * A disk that pgdyno emulates, with a volatile cache, known latencies and a power that can be cut. No figure measured on it is a real device's.
 */
export interface EmulatedDisk {
  /**
   * Room for unflushed writes in main memory. Beyond it, the oldest go to the medium, as a drive does it.
   */
  cache: Bytes;
  /**
   * Directory that the disk's files are made in; none means pgdyno's own.
   */
  directory: string | null;
  /**
   * Latency of requests.
   */
  latency: DiskLatency;
  /**
   * Whether every write is kept, so that the disk can be shown as it was after any of them.
   */
  log: boolean;
  /**
   * Logical sector size of the loop device (bytes): 512 or 4096; none means the kernel's default.
   */
  sector_size: number | null;
  /**
   * Seed of everything drawn at random: writes that survive a cut, places of tears, requests that fail.
   */
  seed: Seed;
  /**
   * Size. Durable data lies in a sparse file.
   */
  size: Bytes;
}
/**
 * Latency that an emulated disk adds to a request of any size, beside the cost of the emulation.
 */
export interface DiskLatency {
  /**
   * Latency of a cache flush.
   */
  flush: Span;
  /**
   * Requests served at a time (count), 1 for a hard disk's arm; the others wait for their turn. None: no limit.
   */
  parallel: number | null;
  /**
   * Latency of a read.
   */
  read: Span;
  /**
   * Latency of a write into the cache.
   */
  write: Span;
}
/**
 * Striping over several backings.
 */
export interface Raid0 {
  /**
   * Program or filesystem that stripes; none: the filesystem where it can (btrfs, zfs), else mdadm, else LVM.
   */
  by: Striper | null;
  /**
   * Bytes on one member before the next has its turn; none means the striper's default.
   */
  chunk: Bytes | null;
  /**
   * The members: loop files, devices and emulated disks.
   */
  members: Backing[];
}
/**
 * Settings of a block device.
 */
export interface DeviceSettings {
  /**
   * Commands of the user, for settings that pgdyno does not know.
   */
  hook: Hook | null;
  /**
   * Parameters of kernel modules, by module and name. They hold for the whole host.
   */
  module_parameters?: {
    [k: string]: {
      [k: string]: string;
    };
  };
  /**
   * `queue/nr_requests` (count).
   */
  nr_requests: number | null;
  /**
   * Policy of that volume's write cache.
   */
  raid_cache?: WritePolicy | null;
  /**
   * The volume of a RAID controller that carries the storage; none where there is none, or where its cache is left as it is.
   */
  raid_volume?: RaidVolume | null;
  /**
   * `queue/read_ahead_kb` (KiB).
   */
  read_ahead_kb: number | null;
  /**
   * `queue/scheduler`: `none`, `mq-deadline`, `bfq`, `kyber`, …
   */
  scheduler: string | null;
  /**
   * Whether free blocks are trimmed before every trial.
   */
  trim: boolean;
  /**
   * The drive's volatile write cache, on or off (`hdparm -W`, `nvme set-feature`, else `queue/write_cache`).
   */
  write_cache: boolean | null;
}
/**
 * Commands of the user that set something pgdyno does not know. Program and arguments, no shell.
 */
export interface Hook {
  /**
   * Expected output of `read_back` once `set` has run (surrounding blanks do not matter); none: any output is right.
   */
  expect: string | null;
  /**
   * Command that prints the setting; its output is stored with every trial.
   */
  read_back: string[];
  /**
   * Command that puts the setting back as it was.
   */
  restore: string[];
  /**
   * Command that applies the setting.
   */
  set: string[];
}
/**
 * A volume of a RAID controller, and the manufacturer's program that sets it.
 */
export interface RaidVolume {
  /**
   * The controller, as the program counts: for ssacli its slot.
   */
  controller: number;
  /**
   * The program.
   */
  tool: RaidTool;
  /**
   * The volume (virtual or logical drive), as the program counts.
   */
  volume: number;
}
/**
 * A filesystem to be made.
 */
export interface FilesystemChoice {
  /**
   * ZFS: properties of the dataset (`zfs create -o`).
   */
  dataset: {
    [k: string]: string;
  };
  /**
   * Further arguments for the filesystem's mkfs program.
   */
  mkfs: string[];
  /**
   * Mount options, beside pgdyno's defaults for it.
   */
  mount: string[];
  /**
   * Name for `mount -t`: `ext4`, `xfs`, `zfs`, …; `overlay` over a directory; `none` is as if no filesystem were asked for.
   */
  name: string;
  /**
   * ZFS: properties of the pool (`zpool create -o`).
   */
  pool: {
    [k: string]: string;
  };
}
/**
 * Upper bounds for a device's traffic, set through a control group. They let bursts through and are no stand-in for a slow disk.
 */
export interface Limit {
  /**
   * Bytes read a second.
   */
  read_bps: number | null;
  /**
   * Reads a second.
   */
  read_iops: number | null;
  /**
   * Bytes written a second.
   */
  write_bps: number | null;
  /**
   * Writes a second.
   */
  write_iops: number | null;
}
/**
 * A filesystem beneath another one: it holds an overlay's upper directory, or a loop device's file.
 */
export interface FilesystemBeneath {
  /**
   * Filesystem type, from `/proc/self/mountinfo`.
   */
  filesystem: string;
  /**
   * The upper directory or the file.
   */
  holds: string;
  /**
   * Mount and superblock options.
   */
  mount_options: string;
  /**
   * Mount point.
   */
  mount_point: string;
}
/**
 * A block device, from `/sys/class/block`.
 */
export interface BlockDevice {
  /**
   * Bytes by which its start misses the physical blocks, as the kernel computes.
   */
  alignment_offset: number | null;
  /**
   * The file behind a loop device.
   */
  backing: LoopFacts | null;
  /**
   * Whether unused blocks can be discarded.
   */
  discard: boolean | null;
  /**
   * Firmware revision.
   */
  firmware: string | null;
  /**
   * Whether single writes can be forced to the medium (`queue/fua`).
   */
  fua: boolean | null;
  /**
   * A disk's health.
   */
  health: Health | null;
  /**
   * Kind of device: disk, partition, RAID, …
   */
  kind: DeviceKind & string;
  /**
   * Name that users gave the device: device mapper's (`vg0-data`).
   */
  label: string | null;
  /**
   * Logical block size (bytes).
   */
  logical_block_bytes: number | null;
  /**
   * Smallest preferred request (bytes): a RAID's chunk.
   */
  minimum_io_bytes: number | null;
  /**
   * Vendor and model.
   */
  model: string | null;
  /**
   * The kernel's name: `nvme0n1p1`.
   */
  name: string;
  /**
   * `queue/nr_requests` (count).
   */
  nr_requests: number | null;
  /**
   * A partition's first byte on its disk.
   */
  offset: Bytes | null;
  /**
   * Devices under this one.
   */
  on: BlockDevice[];
  /**
   * Preferred request (bytes): a RAID's stripe; none where the device does not say.
   */
  optimal_io_bytes: number | null;
  /**
   * Physical block size (bytes).
   */
  physical_block_bytes: number | null;
  /**
   * Software RAID.
   */
  raid: RaidFacts | null;
  /**
   * `queue/read_ahead_kb` (KiB).
   */
  read_ahead_kb: number | null;
  /**
   * `true` for spinning media, as the kernel believes.
   */
  rotational: boolean | null;
  /**
   * The I/O scheduler in use.
   */
  scheduler: string | null;
  /**
   * Serial number: `sha256:` and the first 16 hexadecimal digits, unless serials are kept.
   */
  serial: string | null;
  /**
   * Size of the device.
   */
  size: Bytes;
  /**
   * Transport: `nvme`, `virtio`, `ata`, `usb`, `scsi`, …
   */
  transport: string | null;
  /**
   * `write back` or `write through`, as the kernel believes.
   */
  write_cache: string | null;
  /**
   * World-wide name, treated as the serial number is.
   */
  wwn: string | null;
}
/**
 * A loop device's file, from `loop/`.
 */
export interface LoopFacts {
  /**
   * Whether the loop device bypasses the page cache of the file's filesystem.
   */
  direct_io: boolean | null;
  /**
   * The file.
   */
  file: string;
  /**
   * The file's own filesystem type.
   */
  filesystem: string | null;
  /**
   * Mount options of that filesystem.
   */
  mount_options: string | null;
}
/**
 * A disk's own word on its health, through `smartctl`.
 */
export interface Health {
  /**
   * NVMe: `available_spare` (%).
   */
  available_spare: number | null;
  /**
   * NVMe: level below which spare blocks are short (%).
   */
  available_spare_threshold: number | null;
  /**
   * NVMe: bits of `critical_warning`; zero is good.
   */
  critical_warning: number | null;
  /**
   * Device type that smartctl was told, for a disk behind a RAID controller.
   */
  device_type: SmartType | null;
  /**
   * Errors that the disk's own log has counted.
   */
  errors_logged: number | null;
  /**
   * NVMe: `media_errors`.
   */
  media_errors: number | null;
  /**
   * Overall verdict of the disk on itself.
   */
  passed: boolean | null;
  /**
   * ATA: attribute 197, `Current_Pending_Sector`.
   */
  pending_sectors: number | null;
  /**
   * NVMe: `percentage_used` of the rated endurance; may exceed 100.
   */
  percentage_used: number | null;
  /**
   * Hours powered on.
   */
  power_on_hours: number | null;
  /**
   * ATA: attribute 5, `Reallocated_Sector_Ct`.
   */
  reallocated_sectors: number | null;
  /**
   * Everything that smartctl says of the disk; none in records of earlier versions.
   */
  report: SmartReport | null;
  /**
   * Temperature (°C).
   */
  temperature: number | null;
  /**
   * Why the health is unknown, in smartctl's own words if it ran.
   */
  unavailable: string | null;
}
/**
 * Everything that `smartctl -x --json` says of a disk, its logs of errors and of self-tests among it.
 */
export interface SmartReport {
  /**
   * The document, without serial numbers unless they are kept.
   */
  document: {
    [k: string]: unknown;
  };
  /**
   * Parts that were left out because the document was too large.
   */
  left_out: string[];
}
/**
 * Linux software RAID, from `md/`.
 */
export interface RaidFacts {
  /**
   * Bytes on one member before the next has its turn.
   */
  chunk: Bytes | null;
  /**
   * Members that it lacks (count).
   */
  degraded: number | null;
  /**
   * Members that it should have (count).
   */
  disks: number | null;
  /**
   * `raid0`, `raid1`, …
   */
  level: string;
  /**
   * `array_state`.
   */
  state: string | null;
  /**
   * `sync_action`: `idle`, `resync`, `recover`, `check`, …
   */
  sync_action: string | null;
}
/**
 * A storage stack as it was obtained.
 */
export interface StackFacts {
  /**
   * Block devices that carry it.
   */
  devices: DeviceFacts[];
  /**
   * The filesystem that was made; none where a directory is used as it is, or a tmpfs.
   */
  filesystem: FilesystemFacts | null;
  /**
   * Remarks for readers of the figures.
   */
  notes: string[];
  /**
   * Settings of the devices that were changed: name, and value as it reads now.
   */
  settings: [string, string][];
  /**
   * Striper that joins them, if there are several.
   */
  striper: Striper | null;
}
/**
 * A block device.
 */
export interface DeviceFacts {
  /**
   * Name in `/dev/disk/by-id`, where it has one.
   */
  by_id: string | null;
  /**
   * The disk's model, where sysfs tells.
   */
  model: string | null;
  /**
   * The kernel's name: `nvme0n1`.
   */
  name: string;
  /**
   * Path.
   */
  path: string;
  /**
   * The disk's serial number, or the first 12 hexadecimal digits of its SHA-256.
   */
  serial: string | null;
  /**
   * Size of the device.
   */
  size: Bytes;
}
/**
 * A made filesystem, as the kernel and the filesystem's own programs describe it once it is mounted.
 */
export interface FilesystemFacts {
  /**
   * Driver that serves it: the kernel's (`ext4` for an ext2), `OpenZFS 2.1.11`, `zfs-fuse`.
   */
  driver: string;
  /**
   * Type as mounted, from `/proc/self/mountinfo`: `ext3`, `xfs`, `fuse.zfs`, …
   */
  kind: string;
  /**
   * Mount point.
   */
  mount_point: string;
  /**
   * Mount and superblock options, from `/proc/self/mountinfo` and, where the driver has such a file, from its own list, which names the defaults too.
   */
  options: string[];
  /**
   * Geometry, features and properties, named as the filesystem's own programs name them.
   */
  properties: {
    [k: string]: string;
  };
  /**
   * The mount's source as the kernel names it.
   */
  source: string;
  /**
   * Programs that made it, as they call themselves: `mke2fs 1.47.0 (5-Feb-2023)`.
   */
  tools: string;
}
/**
 * Effect that the question asks for, averaged over all combinations of the other factors' levels.
 */
export interface EffectView {
  /**
   * Level that `level` is compared with.
   */
  against: string;
  /**
   * 95% confidence interval of `ratio`.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number];
  /**
   * Combinations of the other factors' levels (count): 2 or more.
   */
  combinations: number;
  /**
   * The factor.
   */
  factor: string;
  /**
   * Level whose effect is asked for.
   */
  level: string;
  /**
   * p-value of no effect.
   */
  p: number;
  /**
   * Geometric mean of the ratios of tps, or of maximum rates.
   */
  ratio: number;
  /**
   * Whether `p` is at most 5%.
   */
  significant: boolean;
}
/**
 * Result of the fsync probe on a storage.
 */
export interface FsyncView {
  /**
   * Bytes written before each flush.
   */
  block_bytes: number;
  /**
   * Flushes (count).
   */
  flushes: number;
  /**
   * Latency of a write and its flush.
   */
  latency_us: LatencyView | null;
  /**
   * When it was measured.
   */
  measured_at: string;
  /**
   * The call, as `wal_sync_method` names it.
   */
  method: string;
  /**
   * Flushes of one writer (1/s); none when there were none.
   */
  per_second: number | null;
  /**
   * Time they took together.
   */
  seconds: number;
  /**
   * The storage's name.
   */
  storage: string;
}
/**
 * Interaction of two factors: whether the effect of one depends on the other.
 */
export interface InteractionView {
  /**
   * Level of `factor` that `level` is compared with.
   */
  against: string;
  /**
   * 95% confidence interval of `ratio`; it holds for all levels of both factors together.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number];
  /**
   * Whether `p` is at most 5%.
   */
  depends: boolean;
  /**
   * Factor whose effect is judged.
   */
  factor: string;
  /**
   * Level of `on` where that ratio is higher.
   */
  higher_with: string;
  /**
   * Level of `factor` whose ratio to `against` differs most clearly.
   */
  level: string;
  /**
   * Level of `on` where that ratio is lower.
   */
  lower_with: string;
  /**
   * Factor on which the effect may depend.
   */
  on: string;
  /**
   * p-value of no interaction, beside all other pairs of factors.
   */
  p: number;
  /**
   * Ratio at `higher_with` over the ratio at `lower_with`: 1 or more.
   */
  ratio: number;
}
/**
 * Noise floor of a host, from the newest completed A/A run there.
 */
export interface NoiseFloor {
  /**
   * Blocks that had both (count).
   */
  blocks: number;
  /**
   * 95% confidence interval of `ratio`.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number];
  /**
   * The farther end of the interval as a share: a difference below it may be none.
   */
  floor: number;
  /**
   * Noise floors of percentiles of latency, for those that have an interval.
   */
  latency: LatencyFloor[];
  /**
   * Names of the two equal treatments.
   *
   * @minItems 2
   * @maxItems 2
   */
  names: [string, string];
  /**
   * Ratio of their tps.
   */
  ratio: number;
  /**
   * The run.
   */
  run: string;
  /**
   * When it began.
   */
  started_at: string;
}
/**
 * Noise floor of a percentile of latency.
 */
export interface LatencyFloor {
  /**
   * The farther end of the ratio's interval as a share.
   */
  floor: number;
  /**
   * Name of the percentile.
   */
  percentile: string;
}
/**
 * Noise between a run's trials, as earlier runs on the host predict it.
 */
export interface NoisePriorView {
  /**
   * Degrees of freedom that it counts for.
   */
  freedom: number;
  /**
   * Degrees of freedom of the run's own spread.
   */
  own_freedom: number;
  /**
   * The run's own spread (a share).
   */
  own_spread: number;
  /**
   * Earlier runs that it was computed from (count).
   */
  runs: number;
  /**
   * Relative standard deviation of the earlier runs' tps between trials (a share).
   */
  spread: number;
  /**
   * Whether it counts beside the run's own.
   */
  used: PriorUse;
}
/**
 * Every treatment, and every trial in the order in which they run.
 */
export interface Plan {
  /**
   * Form of the answer; none in the stores of earlier versions, and where the experiment leaves it open.
   */
  answer: Answer | null;
  /**
   * Reason for opening the run with a trial that is not measured; none where there was no such trial.
   */
  conditioning: Conditioning | null;
  /**
   * Indexes of the treatments that are crashed once the trials are over; empty in the stores of earlier versions.
   */
  crashed: number[];
  /**
   * The seed of the data sets' rows; none in plans of earlier versions, where `seed` was that too.
   */
  data_seed: Seed | null;
  /**
   * Numbers of repeats at which a complete run was extended, ascending. Verdicts were looked at there.
   */
  extended_after: number[];
  /**
   * The names of the factors, in the file's order.
   */
  factors: string[];
  /**
   * Search for the highest rate in every trial; none where trials offer the load as it is.
   */
  find: Find | null;
  /**
   * Name of the script whose transactions alone are compared; none: all are. None in the stores of earlier versions.
   */
  headline?: string | null;
  /**
   * The measured window.
   */
  length: Length;
  /**
   * How the data sets' rows are made and loaded.
   */
  loading: Loading;
  /**
   * The largest difference of tps that does not matter (a share: 0.03 for 3%), for judging equivalence; none if the experiment names none.
   */
  margin: number | null;
  /**
   * The experiment's name.
   */
  name: string;
  /**
   * Noise of earlier runs, as known when the run began; none where they told nothing or were not to count, and in the stores of earlier versions.
   */
  noise_prior: NoisePrior | null;
  /**
   * Question of the experiment.
   */
  question: string | null;
  /**
   * The seed of the order and the load.
   */
  seed: Seed;
  /**
   * Rule that ends the run before all trials are run; none where the number of repeats is fixed.
   */
  stopping: Stopping | null;
  /**
   * All treatments; trials refer to them by index.
   */
  treatments: Treatment[];
  /**
   * All trials in order.
   */
  trials: PlannedTrial[];
  /**
   * Load offered before each measured window.
   */
  warm_up: Span;
}
/**
 * How an experiment's question is answered: `[answer]`.
 */
export interface Answer {
  /**
   * Level that `level` is compared with; none: the factor's first.
   */
  against: string | null;
  /**
   * Kind of the report's first sentence.
   */
  kind: AnswerKind;
  /**
   * Level whose effect the sentence states: of the first factor that has this level. None: the last level of the first factor.
   */
  level: string | null;
  /**
   * Name of the effect in the sentence, in the words of the question: `waiting for the disk at commit`.
   */
  words: string | null;
}
/**
 * Difference of first trials in earlier runs on a host, as expected of a run to come.
 */
export interface Conditioning {
  /**
   * Difference between the tps of first trials and that expected of them (a share: −0.1 for 10% less).
   */
  difference: number;
  /**
   * Earlier runs that the difference rests on (count).
   */
  runs: number;
}
/**
 * Search of a trial for the highest rate that keeps an objective.
 */
export interface Find {
  /**
   * Largest final distance between a rate that keeps the objective and one that does not (a share).
   */
  resolution: number;
  /**
   * Objective that the rate must keep.
   */
  slo: Slo;
  /**
   * Window of a step; the answer is confirmed over the plan's whole window.
   */
  step: Span;
}
/**
 * How a data set's rows are generated and loaded.
 */
export interface Loading {
  /**
   * Blanks in every filler (percent, 0 to 100); the rest is drawn from 64 characters. pgbench's fillers are all blanks, which shrink on filesystems that compress.
   */
  filler_compress_percentage: number;
  /**
   * Connections that load side by side (count); none: one for each core.
   */
  jobs: number | null;
  /**
   * Partitions of each table that its workload lets be partitioned (count); 0: none.
   */
  partitions: number;
  /**
   * Settings of a managed server while rows are loaded, over those of `[postgres]`.
   */
  settings: {
    [k: string]: string;
  };
}
/**
 * Noise between trials that earlier runs on the host predict for a run.
 */
export interface NoisePrior {
  /**
   * Degrees of freedom of the variance, beside the run's own.
   */
  freedom: number;
  /**
   * Earlier runs that the variance rests on (count).
   */
  runs: number;
  /**
   * Variance of the logarithms of trials' tps.
   */
  variance: number;
}
/**
 * A run that goes on, block by block, with the treatments whose comparison is still open.
 */
export interface Stopping {
  /**
   * Time that trials may take, with what comes around them.
   */
  budget: Span | null;
  /**
   * Blocks after which it ends, whatever is open: the plan has that many.
   */
  ceiling: number;
  /**
   * Blocks that are run in any case.
   */
  floor: number;
  /**
   * Half the width of a ratio's interval (a share) at which it is known well enough; none: only a verdict closes a comparison.
   */
  precision: number | null;
}
/**
 * One combination of levels, resolved to the storage, load and server that it stands for.
 */
export interface Treatment {
  /**
   * Connections, those of all groups together.
   */
  clients: number;
  /**
   * Device settings that factors assign, over the storage's own.
   */
  device: DeviceSettings;
  /**
   * Processes that offer the load, where factors name them (`local:2`); `none`: this process alone. Absent: the experiment's generators.
   */
  generators: string | null;
  /**
   * Groups that the clients are divided into; empty where all clients run all scripts, and in the stores of earlier versions.
   */
  groups?: ClientGroup[];
  /**
   * Levels of the factors.
   */
  levels: Levels;
  /**
   * Options of the load beyond its scripts.
   */
  options: LoadOptions;
  /**
   * Folder of the server's programs, where factors name one; none: the experiment's.
   */
  postgres_bindir: string | null;
  /**
   * Major version that is wanted; none: any.
   */
  postgres_version: number | null;
  /**
   * How statements are sent.
   */
  protocol: Protocol;
  /**
   * The data set's size in the workload's unit.
   */
  scale: number;
  /**
   * Name of the server that pgdyno does not own, where factors name one. Its DSN is not stored.
   */
  server: string | null;
  /**
   * Settings of the treatment, beyond pgdyno's own for a managed server.
   */
  settings: {
    [k: string]: string;
  };
  /**
   * The name of the storage that holds PGDATA.
   */
  storage: string;
  /**
   * Event loops.
   */
  threads: number;
  /**
   * The workload's name or folder.
   */
  workload: string;
}
/**
 * Clients that run scripts of their own, at a pace of their own.
 */
export interface ClientGroup {
  /**
   * Connections (count).
   */
  clients: number;
  /**
   * Name.
   */
  name: string;
  /**
   * Rate at which transactions are due over the group's clients together. None: a client's next transaction is due when the previous one is done and thought over.
   */
  rate: LoadRate | null;
  /**
   * Scripts that its clients choose from, behind those of the groups before it (count).
   */
  scripts: number;
  /**
   * Name of the server that its clients connect to; none: the treatment's.
   */
  server: string | null;
  /**
   * Mean time that a client thinks before each transaction; zero: none. Each is drawn from an exponential distribution that is cut at ten times the mean (TPC Benchmark C 5.11, 5.2.5.4). Not together with a rate.
   */
  think_time: Span;
}
/**
 * Options of a load beyond its scripts, after pgbench's.
 */
export interface LoadOptions {
  /**
   * Variables that are set for scripts, as text.
   */
  define: {
    [k: string]: string;
  };
  /**
   * Latency beyond which a transaction is counted as late. With a rate, a transaction is skipped if it would begin later than this.
   */
  latency_limit: Span | null;
  /**
   * Most tries of a transaction that meets serialization failures or deadlocks (count). 0: no limit; then `latency_limit` or the load's end must provide one.
   */
  max_tries: number;
  /**
   * Fate of a client after an error that is not retried.
   */
  on_error: OnError & string;
  /**
   * Number that multiplies the pauses of the workload's scripts; none where they have none. 0: clients do not pause.
   */
  pauses: number | null;
  /**
   * Rate at which transactions are due over all clients together, at random (Poisson) times; latency counts from the due time. None: a client's next transaction is due when the previous one is done.
   */
  rate: LoadRate | null;
  /**
   * Whether every transaction has a connection of its own.
   */
  reconnect: boolean;
  /**
   * Reaction to a lost connection.
   */
  reconnect_lost: ReconnectLost & string;
}
/**
 * Probe of one of the run's storages, in brief. `pgdyno show ID` has all of it.
 */
export interface StageProbeView {
  /**
   * Of an fsync probe: why the storage is suspected to acknowledge what is not yet durable, in few words.
   */
  acknowledges_from_cache: string[];
  /**
   * Whether the storage's free blocks were discarded right before.
   */
  after_trim: boolean;
  /**
   * Attempts at trials that had begun before it (count): 0 before the first trial.
   */
  attempts_before: number;
  /**
   * Whether the whole probe was measured.
   */
  complete: boolean;
  /**
   * Of an fsync probe: writes of one block with fdatasync by one writer (1/s).
   */
  flushes_per_second: number | null;
  /**
   * Id in the store: kind, start and four letters drawn at random.
   */
  id: string;
  /**
   * `fsync` or `disk`.
   */
  kind: string;
  /**
   * Of a disk probe: random reads of 8 kB (1/s), at the queue depth that gave most.
   */
  randread_iops: number | null;
  /**
   * Of a disk probe: random writes of 8 kB (1/s), at the queue depth that gave most.
   */
  randwrite_iops: number | null;
  /**
   * Of a disk probe: sequential reads (bytes/s), the mean of its zones.
   */
  read_bytes_per_second: number | null;
  /**
   * When it began.
   */
  started_at: string;
  /**
   * The storage's name.
   */
  storage: string;
  /**
   * Warnings about figures that may be wrong.
   */
  warnings: string[];
  /**
   * Of a disk probe: sequential writes (bytes/s), the mean of its zones.
   */
  write_bytes_per_second: number | null;
}
/**
 * Identity and state of a run.
 */
export interface RunHead {
  /**
   * Attempts that failed (count).
   */
  attempts_failed: number;
  /**
   * Id in the store: recipe, start and four letters drawn at random.
   */
  id: string;
  /**
   * Treatments whose crash tests were asked for and are not done to the end, by label. Those whose storage is not available are left out.
   */
  not_crashed: string[];
  /**
   * The pgdyno that ran it.
   */
  pgdyno_version: string;
  /**
   * The question it answers.
   */
  question: string | null;
  /**
   * The recipe's or the file's name.
   */
  recipe: string;
  /**
   * When it began.
   */
  started_at: string;
  /**
   * State.
   */
  state: RunState;
  /**
   * Planned trials that are completed (count).
   */
  trials_completed: number;
  /**
   * Planned trials (count).
   */
  trials_planned: number;
}
/**
 * Treatments that differ in the number of clients only.
 */
export interface ScalingView {
  /**
   * Levels of the other factors, which all share, in one line; empty where clients are all that varies.
   */
  given: string;
  /**
   * Universal Scalability Law through them; none where `words` say why.
   */
  law: Scaling | null;
  /**
   * Indices of the treatments.
   */
  treatments: number[];
  /**
   * The law in a sentence.
   */
  words: string;
}
/**
 * A fit of the law.
 */
export interface Scaling {
  /**
   * κ: cost of every pair of clients (a share).
   */
  kappa: Fitted;
  /**
   * The knee: `peak` over λ. This many clients would reach the peak if they did not hinder each other; the two asymptotic bounds meet there (P. J. Denning and J. P. Buzen, *The operational analysis of queueing network models*, ACM Computing Surveys 10, 1978).
   */
  knee: Fitted | null;
  /**
   * λ: throughput of one client (1/s).
   */
  lambda: Fitted;
  /**
   * Most clients that were measured; beyond, the law extrapolates.
   */
  measured_to: number;
  /**
   * Highest throughput (1/s); with κ = 0 the limit λ / σ. None if there is none (σ = 0 too).
   */
  peak: Fitted | null;
  /**
   * Number of clients with the highest throughput; none if it rises for ever (κ = 0).
   */
  peak_clients: Fitted | null;
  /**
   * σ: contention (a share).
   */
  sigma: Fitted;
  /**
   * Largest deviation of a number of clients' geometric mean from the law (a share).
   */
  worst: number;
}
/**
 * A fitted value.
 */
export interface Fitted {
  /**
   * 95% confidence interval: jackknife over blocks (R. G. Miller, *The jackknife – a review*, Biometrika 61, 1974). None with fewer than three blocks, or where leaving one out leaves no value.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Best estimate.
   */
  value: number;
}
/**
 * A server, and the trials that ran on it.
 */
export interface ServerView {
  /**
   * Origin of its programs.
   */
  build: BuildSource;
  /**
   * Settings over all its trials.
   */
  settings: SettingView[];
  /**
   * The trials' ordinals.
   */
  trials: number[];
  /**
   * `version()`.
   */
  version: string;
  /**
   * `server_version_num`.
   */
  version_num: number;
}
/**
 * A setting over all trials of a server.
 */
export interface SettingView {
  /**
   * Name in `pg_settings`.
   */
  name: string;
  /**
   * The value, or each of `values` in their order, as `SHOW` prints it.
   */
  shown: string[];
  /**
   * Origin of the value, as in `pg_settings`.
   */
  source: string;
  /**
   * Unit in `pg_settings`.
   */
  unit: string | null;
  /**
   * Value, if all trials had the same.
   */
  value: string | null;
  /**
   * Each value with the trials (ordinals) that had it, if they differ.
   */
  values: [string, number[]][];
}
/**
 * Session of a run: a process that worked on it.
 */
export interface SessionView {
  /**
   * How it ended; none while it has not.
   */
  end: SessionEnd | null;
  /**
   * The machine.
   */
  host: HostFacts;
  /**
   * When it began.
   */
  started_at: string;
  /**
   * Facts of each storage.
   */
  storage: StorageFacts[];
}
/**
 * State of a run that may end by itself.
 */
export interface StoppingView {
  /**
   * Blocks of the treatment that was measured most (count).
   */
  blocks: number;
  /**
   * The most blocks.
   */
  ceiling: number;
  /**
   * Comparisons that are decided (count).
   */
  decided: number;
  /**
   * Reason for its end; none while it goes on.
   */
  ended: Ended | null;
  /**
   * Blocks that are run in any case.
   */
  floor: number;
  /**
   * Numbers of blocks after which an interim analysis judges the run.
   */
  looks: number[];
  /**
   * Comparisons that are not decided, each in a line.
   */
  open: string[];
  /**
   * State in a sentence.
   */
  words: string;
}
/**
 * Rows that a thinning removes, or removed.
 */
export interface Thinning {
  /**
   * Seconds between the samples of telemetry that stay.
   */
  every_s: number;
  /**
   * The run.
   */
  run: string;
  /**
   * Samples of telemetry that go (count).
   */
  samples: number;
  /**
   * Seconds whose distribution of latencies goes (count).
   */
  seconds: number;
  /**
   * When the run was thinned; for one that is only planned, now.
   */
  thinned_at: string;
}
/**
 * A treatment over its completed trials.
 */
export interface TreatmentView {
  /**
   * Attempts that failed (count).
   */
  attempts_failed: number;
  /**
   * Commits per WAL flush. Above 1, commits share flushes.
   */
  commits_per_flush: number | null;
  /**
   * Whether a commit waits for a flush, by the server's settings; none if unknown.
   */
  commits_wait: boolean | null;
  /**
   * Result of crash tests; none if there were none.
   */
  crash: TreatmentCrash | null;
  /**
   * Trend of tps over repeats, judged with all treatments of the run; none for fewer than four repeats.
   */
  drift: Trend | null;
  /**
   * Levels of its factors.
   */
  factors: Levels;
  /**
   * Transactions that ended in an error in the windows of completed trials (count).
   */
  failed: number;
  /**
   * Failed transactions by SQLSTATE.
   */
  failures: {
    [k: string]: number;
  };
  /**
   * Flushes per second that one writer gets from the storage; none where commits don't wait, or most transactions wrote nothing.
   */
  fsync_per_second: number | null;
  /**
   * Completed trials in which the load generator may have been the limit (count).
   */
  generator_limited: number;
  /**
   * Generators that offered its load together; empty for one process.
   */
  generators: GeneratorView[];
  /**
   * Groups of its clients; empty where all clients run all scripts.
   */
  groups: GroupView[];
  /**
   * Index in the plan.
   */
  index: number;
  /**
   * Levels of its factors in one line.
   */
  label: string;
  /**
   * Percentiles of latency over trials, with confidence intervals.
   */
  latency_intervals: LatencyInterval[];
  /**
   * Latency of all transactions together (microseconds); none without a transaction.
   */
  latency_us: LatencyView | null;
  /**
   * tps × mean latency ÷ clients. Little's law gives 1 in a closed loop. None for an open loop, or with failures.
   */
  little: number | null;
  /**
   * Whether it may be the fastest: in 95% of runs the fastest is among the treatments that may. None if it is not ranked, and without verdicts.
   */
  may_be_best: boolean | null;
  /**
   * Reason why it cannot be the best: it is known to break its promise.
   */
  not_ranked: string | null;
  /**
   * Latency by quantile as (share of transactions, microseconds), up to the quantile beyond which ten transactions lie.
   */
  quantiles: [number, number][];
  /**
   * Ratio of its tps to that of the best treatment; none without a completed trial.
   */
  ratio_to_best: RatioView | null;
  /**
   * Reason why `tps` or its interval is missing.
   */
  reason: string | null;
  /**
   * Latency from sent to done, for loads with a rate. `latency_us` counts from due to done.
   */
  service_us: LatencyView | null;
  /**
   * Stages of its rate over time; empty where the rate stays, or there is none.
   */
  stages: StageView[];
  /**
   * Statements, over all completed trials.
   */
  statements: StatementView[];
  /**
   * Transactions per second, or the maximum rate for a search; none without a completed trial.
   */
  tps: TpsView | null;
  /**
   * Transactions in the windows of completed trials (count).
   */
  transactions: number;
  /**
   * Trials completed (count).
   */
  trials: number;
  /**
   * Trials planned (count).
   */
  trials_planned: number;
  /**
   * Reason why its storage is not available on the last session's machine.
   */
  unavailable: string | null;
  /**
   * States of its backends over all completed trials, the commonest first.
   */
  waits: WaitView[];
  /**
   * WAL flushes per second; none where commits do not wait or the server does not count flushes.
   */
  wal_flushes_per_second: number | null;
}
/**
 * Crash tests of a treatment, in brief.
 */
export interface TreatmentCrash {
  /**
   * Transactions acknowledged in all faults' rounds together (count).
   */
  acknowledged: number;
  /**
   * Mounts after power cuts and fsck; none without a power cut.
   */
  filesystems: FilesystemsView | null;
  /**
   * Fault that set the verdict, with its own loss; none if no fault was tried.
   */
  gravest: GravestFault | null;
  /**
   * Name of the crash tests in `RunView::crashes`.
   */
  id: string;
  /**
   * Acknowledged transactions that are missing (count). It is not a share of `acknowledged`: the rounds of other faults dilute it.
   */
  lost: number;
  /**
   * Reason for the verdict.
   */
  reason: string;
  /**
   * Verdict.
   */
  verdict: Verdict;
}
/**
 * How surely a sequence rises or falls.
 */
export interface Trend {
  /**
   * The two-sided p-value: the share of all orders of its values that rise or fall as steadily or more so.
   */
  chance: number;
  /**
   * That p-value where several sequences are judged together by Holm's rule (`trends`); alone, the same.
   */
  chance_together: number;
  /**
   * Whether each value is beyond the one before it.
   */
  every_one: boolean;
  /**
   * Whether it rises.
   */
  rising: boolean;
}
/**
 * One of several generators that offered a treatment's load together, over its completed trials.
 */
export interface GeneratorView {
  /**
   * CPU of its busiest event loop, in the trial where that was highest (cores).
   */
  busiest_thread: number;
  /**
   * Clients in the last trial (count).
   */
  clients: number;
  /**
   * Uncertainty of its clock at that start (microseconds, in both directions).
   */
  clock_uncertainty_us: number;
  /**
   * CPU that it used in the windows (cores).
   */
  cpus: number | null;
  /**
   * Transactions that ended in an error in the windows (count).
   */
  failed: number;
  /**
   * Mean latency of its transactions (microseconds); none without any.
   */
  latency_us_mean: number | null;
  /**
   * Lowest and highest median latency of a trial (microseconds).
   *
   * @minItems 2
   * @maxItems 2
   */
  latency_us_p50: [number, number] | null;
  /**
   * Lowest and highest 99th percentile of latency of a trial (microseconds).
   *
   * @minItems 2
   * @maxItems 2
   */
  latency_us_p99: [number, number] | null;
  /**
   * Name: a host, or `local-1`.
   */
  name: string;
  /**
   * Delay of its start after the agreed instant, in the trial where it may have been largest (microseconds; negative if it was early).
   */
  start_skew_us: number;
  /**
   * Event loops in the last trial (count).
   */
  threads: number;
  /**
   * Transactions per second of all windows together; none for windows of no length.
   */
  tps: number | null;
  /**
   * Transactions that ended well in the windows (count).
   */
  transactions: number;
  /**
   * Trials in which it offered load (count).
   */
  trials: number;
}
/**
 * A group of a treatment's clients, over its completed trials.
 */
export interface GroupView {
  /**
   * Clients (count).
   */
  clients: number;
  /**
   * Transactions that ended in an error (count).
   */
  failed: number;
  /**
   * Latency of its transactions, from when they were due; none without any.
   */
  latency_us: LatencyView | null;
  /**
   * Name.
   */
  name: string;
  /**
   * Rate over its clients together (`500`, or stages); none in a closed loop.
   */
  rate: string | null;
  /**
   * Name of the server of its clients; none: the treatment's.
   */
  server: string | null;
  /**
   * Mean time that a client thinks before each transaction (`40ms`); none: none.
   */
  think_time: string | null;
  /**
   * Transactions per second; none without a completed trial.
   */
  tps: TpsView | null;
  /**
   * Transactions that ended well (count).
   */
  transactions: number;
}
/**
 * A percentile of latency over the trials that have ten transactions beyond it.
 */
export interface LatencyInterval {
  /**
   * 95% confidence interval, Student's on logarithms; none for one trial or equal ones.
   *
   * @minItems 2
   * @maxItems 2
   */
  ci95: [number, number] | null;
  /**
   * Name of the percentile.
   */
  percentile: string;
  /**
   * Geometric mean over the trials (microseconds).
   */
  us: number;
}
/**
 * A stage of a treatment's rate over time, over its completed trials. A transaction belongs to the stage in which it ended.
 */
export interface StageView {
  /**
   * Beginning, when it first comes (seconds since the window's opening).
   */
  begin_s: number;
  /**
   * Mean rate.
   */
  due: number;
  /**
   * Transactions that ended in an error in it (count).
   */
  failed: number;
  /**
   * Rate at its beginning (transactions due per second).
   */
  from: number;
  /**
   * Longest latency (microseconds).
   */
  latency_us_max: number | null;
  /**
   * Median latency of its transactions (microseconds); none without any.
   */
  latency_us_p50: number | null;
  /**
   * 95th percentile of latency (microseconds).
   */
  latency_us_p95: number | null;
  /**
   * 99th percentile of latency (microseconds).
   */
  latency_us_p99: number | null;
  /**
   * Length (seconds).
   */
  seconds: number;
  /**
   * Stages that it stands for (count): neighbours are one where there are many.
   */
  stages: number;
  /**
   * Rate at its end.
   */
  to: number;
  /**
   * Transactions that ended well in it, per second; none if no trial reached it.
   */
  tps: number | null;
  /**
   * Transactions that ended well in it (count).
   */
  transactions: number;
}
/**
 * One SQL command.
 */
export interface StatementView {
  /**
   * Errors within the window (count).
   */
  failed: number;
  /**
   * From sent to the first byte of its reply; none if it never ended, or was stored before this was measured.
   */
  first_byte_us: LatencyView | null;
  /**
   * Latency from sent to done; none if it never ended.
   */
  latency_us: LatencyView | null;
  /**
   * The line it begins on.
   */
  line: number;
  /**
   * Name of the script.
   */
  script: string;
  /**
   * The command.
   */
  text: string;
}
/**
 * State of a load's backends: running, or waiting for an event.
 */
export interface WaitView {
  /**
   * Mean number of backends in this state.
   */
  backends: number;
  /**
   * `type:event` as in `pg_stat_activity`, or `CPU`: runs or wants to.
   */
  event: string;
  /**
   * Share of all samples (0 to 1).
   */
  share: number;
}
/**
 * One attempt at a trial.
 */
export interface TrialView {
  /**
   * Errors that made clients give up.
   */
  abort_reasons: string[];
  /**
   * Clients that gave up (count).
   */
  aborted_clients: number;
  /**
   * Block, from 1.
   */
  block: number;
  /**
   * CPU of the generator's busiest thread (cores).
   */
  busiest_thread: number | null;
  /**
   * Time until all clients were connected (seconds).
   */
  connect_s: number | null;
  /**
   * Waiting time of replies and due transactions for the load generator's event loops; none in records of versions before it was measured.
   */
  event_loop_lag: EventLoopLag | null;
  /**
   * Checkpoints and autovacuum, as the server's log has them; none where the log is out of reach.
   */
  events: LogEvent[] | null;
  /**
   * Levels of its treatment.
   */
  factors: Levels;
  /**
   * Transactions that ended in an error in the window (count).
   */
  failed: number | null;
  /**
   * Reason of the failure, and advice.
   */
  failure: string | null;
  /**
   * Kind of obstacle that the failure was.
   */
  failure_kind: FailureKind | null;
  /**
   * Failed transactions by SQLSTATE.
   */
  failures: {
    [k: string]: number;
  };
  /**
   * Result of flush accounting; none if it was not asked for.
   */
  flush_accounting?: FlushAccounting | null;
  /**
   * CPU of the load generator (cores).
   */
  generator_cpus: number | null;
  /**
   * Reason why the load generator may have been the limit; none if it was not.
   */
  generator_limit: string | null;
  /**
   * Latency of its transactions (microseconds).
   */
  latency_us: LatencyView | null;
  /**
   * Begin of the measured window.
   */
  measured_at: string | null;
  /**
   * Length of the window (seconds).
   */
  measured_s: number | null;
  /**
   * CPU that telemetry took; none where it was not measured.
   */
  observer: ObserverView | null;
  /**
   * Place in the plan, from 0.
   */
  ordinal: number;
  /**
   * Number among its treatment's trials, from 1.
   */
  repeat: number;
  /**
   * Rates that were tried, for a search. All other figures are of the step that confirmed the answer, or of the last step if none did.
   */
  search: Search | null;
  /**
   * One element for each second. Pages have these and the telemetry apart.
   */
  series?: SecondView[];
  /**
   * Index of its server.
   */
  server: number | null;
  /**
   * Transactions as the server counted them.
   */
  server_count: ServerCount | null;
  /**
   * Latency from sent to done, for loads with a rate (microseconds).
   */
  service_us: LatencyView | null;
  /**
   * Index of its session.
   */
  session: number | null;
  /**
   * Sizes of the largest tables and indexes, the fastest growing first.
   */
  sizes: RelationSize[];
  /**
   * Begin of provisioning.
   */
  started_at: string;
  /**
   * State: completed, failed, or superfluous since another attempt was completed.
   */
  state: TrialState;
  /**
   * Scripts and their statements.
   */
  statements: StatementView[];
  /**
   * Steadiness of its seconds; none without a series.
   */
  steadiness: Steadiness | null;
  /**
   * Telemetry as rates.
   */
  telemetry?: RateTable[];
  /**
   * Transactions per second in the window; none unless completed.
   */
  tps: number | null;
  /**
   * Transactions that ended well in the window (count).
   */
  transactions: number | null;
  /**
   * Index of its treatment.
   */
  treatment: number;
  /**
   * Load before the window (seconds).
   */
  warm_up_s: number | null;
  /**
   * Transactions that succeeded before the window (count).
   */
  warm_up_transactions: number | null;
}
/**
 * Time that replies and due transactions waited for the event loop of their thread.  Of the replies that one turn of the loop finds, only the longest wait counts: from the turn of the first reply to that of the last. A due transaction waits from its due time. The figures are lower bounds: waits in the kernel while the loop is busy are not seen.
 */
export interface EventLoopLag {
  /**
   * The longest wait (microseconds).
   */
  max_us: number;
  /**
   * The median (microseconds).
   */
  p50_us: number;
  /**
   * The 99th percentile (microseconds).
   */
  p99_us: number;
}
/**
 * Event in the server's log that the load may have felt.
 */
export interface LogEvent {
  /**
   * `checkpoint starting`, `checkpoint complete`, `automatic vacuum`, `automatic analyze`, …, in the log's own words.
   */
  kind: string;
  /**
   * Numbers of the message, by the log's names and in its units.
   */
  numbers: {
    [k: string]: number;
  };
  /**
   * The checkpoint's reasons, or the table.
   */
  of: string;
  /**
   * Time since the window opened (seconds); none if the log's times cannot be read.
   */
  t_s: number | null;
}
/**
 * Result of flush accounting over a load.  A commit is judged if the server said that its transaction changed rows. A flush of its own is one that began after COMMIT was sent, and was done before the acknowledgement arrived. Commits may share it.
 */
export interface FlushAccounting {
  /**
   * Commits among them that were acknowledged without a flush of their own (count).
   */
  early: number;
  /**
   * When the first `Self::early` were acknowledged: from the window's opening, negative before it (seconds), at most `FlushAccounting::MAX_INSTANTS`.
   */
  first_early_s: number[];
  /**
   * Commits that were judged, from the load's beginning to its end (count).
   */
  judged: number;
  /**
   * Why no commit was judged; none if commits were.
   */
  not_judged?: NotJudged | null;
  /**
   * Transactions that changed rows and could not be judged: their statements were sent in a pipeline (count).
   */
  unjudged: number;
}
/**
 * CPU that telemetry took beside the load.
 */
export interface ObserverView {
  /**
   * CPU of the server backends that answer them (cores); none on another machine.
   */
  backends_cpus: number | null;
  /**
   * CPU of pgdyno's sampling threads (cores).
   */
  sampler_cpus: number;
}
/**
 * Result of a trial's search.
 */
export interface Search {
  /**
   * The lowest rate that did not keep the objective (1/s); none if all did.
   */
  least_broken: number | null;
  /**
   * The highest rate that was confirmed (1/s); none if none was.
   */
  max_rate: number | null;
  /**
   * Every rate that was tried, in order.
   */
  steps: SearchStep[];
}
/**
 * One rate that was tried.
 */
export interface SearchStep {
  /**
   * Why the step did not keep the objective; none if it did, and for a closed loop.
   */
  broken: string | null;
  /**
   * Whether the step is to confirm the answer, over the whole window.
   */
  confirming: boolean;
  /**
   * Transactions that ended in an error (count).
   */
  failed: number;
  /**
   * Why the load generator may have been the limit; none if it was not.
   */
  generator_limit: string | null;
  /**
   * Median latency (microseconds).
   */
  latency_us_p50: number | null;
  /**
   * 95th percentile of latency (microseconds).
   */
  latency_us_p95: number | null;
  /**
   * 99th percentile of latency (microseconds).
   */
  latency_us_p99: number | null;
  /**
   * 99.9th percentile of latency (microseconds).
   */
  latency_us_p99_9: number | null;
  /**
   * The window (seconds).
   */
  measured_s: number;
  /**
   * Transactions offered per second; none for the first step, a closed loop that tells where to begin.
   */
  rate: number | null;
  /**
   * Transactions that were skipped (count).
   */
  skipped: number;
  /**
   * Transactions per second that ended well.
   */
  tps: number | null;
  /**
   * Transactions that ended well (count).
   */
  transactions: number;
}
/**
 * One second of a trial's window.
 */
export interface SecondView {
  /**
   * Transactions that ended in an error in it (count).
   */
  failed: number;
  /**
   * Longest latency (microseconds).
   */
  latency_us_max: number | null;
  /**
   * Median latency (microseconds); none when nothing ended in it.
   */
  latency_us_p50: number | null;
  /**
   * 95th percentile of latency (microseconds).
   */
  latency_us_p95: number | null;
  /**
   * 99th percentile of latency (microseconds).
   */
  latency_us_p99: number | null;
  /**
   * How much of the second lies within the window (seconds; less than 1 only in the last one).
   */
  length_s: number;
  /**
   * Whole seconds from the window's opening to this second's beginning.
   */
  t_s: number;
  /**
   * Transactions per second in it; none for no length.
   */
  tps: number | null;
  /**
   * Transactions that ended well in it (count).
   */
  transactions: number;
}
/**
 * Growth of PostgreSQL's own counters from before the load to after it.
 */
export interface ServerCount {
  /**
   * Growth of the rows that the workload adds with each transaction (count); none if it names no such rows.
   */
  rows: number | null;
  /**
   * Expected `rows`: acknowledged transactions times rows added by each (count).
   */
  rows_expected: number | null;
  /**
   * Growth of `pg_stat_database.xact_commit` of the loaded database: the load's commits, one for each connection made, autovacuum's, and those of telemetry as it reads sizes (count).
   */
  xact_commit: number;
}
/**
 * A table, without its indexes, or an index.
 */
export interface RelationSize {
  /**
   * Size at the last sample (bytes).
   */
  after_bytes: number;
  /**
   * Size at the first sample, just before the window (bytes).
   */
  before_bytes: number;
  /**
   * Growth for each transaction between the two samples (bytes); none if it did not grow.
   */
  bytes_per_transaction: number | null;
  /**
   * Name of the table or index.
   */
  name: string;
}
/**
 * Steadiness of tps from second to second, over the whole seconds of the window.
 */
export interface Steadiness {
  /**
   * Correlation of neighbouring seconds.
   */
  autocorrelation: Autocorrelation | null;
  /**
   * Changes of tps; none for fewer than 20 seconds.
   */
  changes: Change[] | null;
  /**
   * Whether tps became steady; none where `steady_why` has the reason.
   */
  steady: boolean | null;
  /**
   * Reason why steadiness was not judged.
   */
  steady_why: string | null;
  /**
   * Independent seconds that the series is worth, where they are too few to judge (count).
   */
  too_alike: number | null;
  /**
   * Change of mean tps without the warm-up seconds (a share).
   */
  warm_up_gain: number | null;
  /**
   * Seconds at the beginning that still look like warm-up (MSER-5), 0 for none. None if that cannot be judged, or if tps never became steady.
   */
  warm_up_s: number | null;
  /**
   * Half of the 95% interval of the mean over seconds, as a share of the mean. It holds for this trial only. None where `within_why` has the reason.
   */
  within: number | null;
  /**
   * Reason why `within` is missing.
   */
  within_why: string | null;
}
/**
 * Resemblance of neighbours in a series.
 */
export interface Autocorrelation {
  /**
   * Independent values whose mean would be as sure as this series' (count, at most the series' length).
   */
  effective: number;
  /**
   * Correlation of neighbours (-1 to 1).
   */
  first: number;
}
/**
 * A change of the mean tps within a trial.
 */
export interface Change {
  /**
   * Mean tps until the next change.
   */
  after: number;
  /**
   * Mean tps since the change before.
   */
  before: number;
  /**
   * Time since the window opened (seconds).
   */
  t_s: number;
  /**
   * Events and figures that changed at that time. They need not be the cause.
   */
  with: string[];
}
/**
 * Rates over time that share a unit and an axis: one chart.
 */
export interface RateTable {
  /**
   * Whether only a detailed report shows it.
   */
  detail: boolean;
  /**
   * Subject: `cpu`, `device_throughput`, `wait_events`, `wal`, `memory`, …
   */
  group: string;
  /**
   * Lines of the chart.
   */
  lines: RateLine[];
  /**
   * Whether the lines are parts of a whole.
   */
  stacked: boolean;
  /**
   * Begin of each interval (seconds since the window opened).
   */
  t_s: number[];
  /**
   * Title of the chart.
   */
  title: string;
  /**
   * Unit of the values.
   */
  unit: string;
}
/**
 * One line of a `RateTable`.
 */
export interface RateLine {
  /**
   * Name of the line.
   */
  name: string;
  /**
   * One value for each interval; none if the source had none or its counter went back.
   */
  values: (number | null)[];
}
/**
 * The data of a page.
 */
export interface CrashPage {
  cautions: Caution[];
  differences: Difference[] | null;
  environment: Environment[];
  headline: Headline;
  kind: 'crash';
  pairs: PairsView | null;
  pgdyno_version: string;
  schema: 'pgdyno.page/1';
  steadiness: SteadinessRow[] | null;
  title: string;
  view: CrashView;
}
/**
 * The data of a page.
 */
export interface ProbePage {
  cautions: Caution[];
  differences: Difference[] | null;
  environment: Environment[];
  headline: Headline;
  kind: 'probe';
  pairs: PairsView | null;
  pgdyno_version: string;
  schema: 'pgdyno.page/1';
  steadiness: SteadinessRow[] | null;
  title: string;
  view: ProbeRecord;
}
/**
 * One execution of a probe; serialises as the document that `--json` prints.
 */
export interface ProbeRecord {
  /**
   * The machine.
   */
  host: HostFacts;
  /**
   * Id in the store: kind, start and four letters drawn at random.
   */
  id: string;
  /**
   * Storage's name in a run, else the directory or device as the user gave it.
   */
  name: string;
  /**
   * pgdyno's version.
   */
  pgdyno_version: string;
  /**
   * Figures.
   */
  result: ProbeResult;
  /**
   * Run that the probe belongs to; none for a probe by itself.
   */
  run: string | null;
  /**
   * Time of the probe's begin.
   */
  started_at: string;
  /**
   * Filesystem and devices under the directory; for a device, the device itself.
   */
  storage: StorageFacts;
}
/**
 * `pg_test_fsync`'s job, with percentiles and concurrent writers.
 */
export interface FsyncProbe {
  /**
   * Bytes of a block.
   */
  block_bytes: number;
  /**
   * Whether all tests were done.
   */
  complete: boolean;
  /**
   * Planned duration of each test (seconds).
   */
  seconds_per_test: number;
  /**
   * Signs that flushes are acknowledged before data is durable; empty in the stores of earlier versions.
   */
  suspicions: Suspicion[];
  /**
   * Every test, in order.
   */
  tests: FsyncTest[];
  /**
   * Findings that make figures doubtful.
   */
  warnings: string[];
}
/**
 * One test of the fsync probe.
 */
export interface FsyncTest {
  /**
   * Files written at the same time, a thread each (count).
   */
  files: number;
  /**
   * Comparison that the test belongs to.
   */
  group: FsyncGroup;
  /**
   * Name of the test within its group, as `pg_test_fsync` prints it.
   */
  name: string;
  /**
   * Figures, or why there are none.
   */
  outcome: FsyncOutcome;
}
/**
 * Figures of one test. An operation is the writes and the flush that makes them durable.
 */
export interface Flushes {
  /**
   * Latency of one operation.
   */
  latency: LatencySummary;
  /**
   * Operations of all writers together (count).
   */
  operations: number;
  /**
   * Duration (seconds).
   */
  seconds: number;
}
/**
 * Summary of a distribution of latencies (microseconds).
 */
export interface LatencySummary {
  /**
   * The longest.
   */
  us_max: number;
  /**
   * The mean.
   */
  us_mean: number;
  /**
   * The median.
   */
  us_p50: number;
  /**
   * 90th percentile.
   */
  us_p90: number;
  /**
   * 95th percentile.
   */
  us_p95: number;
  /**
   * 99th percentile.
   */
  us_p99: number;
  /**
   * 99.9th percentile.
   */
  us_p999: number;
}
/**
 * The raw curves of a disk.
 */
export interface DiskProbe {
  /**
   * Whether all points were done.
   */
  complete: boolean;
  /**
   * Whether the page cache was bypassed (`O_DIRECT`).
   */
  direct: boolean;
  /**
   * Program that offered the load: `fio` with its version, or pgdyno's own simple one.
   */
  driver: string;
  /**
   * Points that were not measured, and why.
   */
  not_measured: string[];
  /**
   * Every point, in order.
   */
  points: DiskPoint[];
  /**
   * Planned duration of each point, except those of the sequential write (seconds).
   */
  seconds_per_point: number;
  /**
   * Extent of the disk that was measured: the file's size, or the device's.
   */
  span: Bytes;
  /**
   * Whether the filesystem's free blocks were discarded right before (`fstrim`).
   */
  trimmed: boolean;
  /**
   * Findings that make figures doubtful.
   */
  warnings: string[];
}
/**
 * One point of a curve.
 */
export interface DiskPoint {
  /**
   * Bytes of each request.
   */
  block_bytes: number;
  /**
   * Length of that part.
   */
  length: Bytes;
  /**
   * Offset of the part of the span that was read or written.
   */
  offset: Bytes;
  /**
   * Pattern of the requests.
   */
  pattern: Pattern;
  /**
   * Requests under way at a time (count).
   */
  queue_depth: number;
  /**
   * Reads; none if there were none.
   */
  read: Transfers | null;
  /**
   * Duration (seconds).
   */
  seconds: number;
  /**
   * Writes; none if there were none.
   */
  write: Transfers | null;
}
/**
 * Requests of one direction.
 */
export interface Transfers {
  /**
   * Bytes per second.
   */
  bytes_per_second: number;
  /**
   * Requests per second.
   */
  iops: number;
  /**
   * Latency of one request, from submission to completion.
   */
  latency: LatencySummary;
  /**
   * Requests (count).
   */
  operations: number;
}
/**
 * The data of a page.
 */
export interface ImportPage {
  cautions: Caution[];
  differences: Difference[] | null;
  environment: Environment[];
  headline: Headline;
  kind: 'import';
  pairs: PairsView | null;
  pgdyno_version: string;
  schema: 'pgdyno.page/1';
  steadiness: SteadinessRow[] | null;
  title: string;
  view: ImportedRun;
}
/**
 * Figures of one report: pgdyno did not measure them.
 */
export interface ImportedRun {
  /**
   * Name in the store.
   */
  id: string;
  /**
   * When it was imported.
   */
  imported_at: string;
  /**
   * The pgdyno that read it.
   */
  pgdyno_version: string;
  /**
   * Said wherever it is shown.
   */
  provenance: Provenance;
  /**
   * Recognised figures.
   */
  recognised: Recognised;
  /**
   * SHA-256 of the file, in hexadecimal digits.
   */
  sha256: string;
  /**
   * The report's file, as it was named.
   */
  source: string;
}
/**
 * Figures that were recognised in one document. A store keeps them.
 */
export interface Recognised {
  /**
   * CPU lines of iostat.
   */
  cpus: CpuLine[];
  /**
   * Device lines of iostat.
   */
  devices: DeviceLine[];
  /**
   * Lines of pg_test_fsync.
   */
  fsync: FsyncLine[];
  /**
   * Reports of pgbench.
   */
  runs: PgbenchRun[];
  /**
   * Settings of PostgreSQL.
   */
  settings: ReportSetting[];
  /**
   * Facts on the storage.
   */
  storage: StorageFact[];
  /**
   * Reports of sysbench.
   */
  sysbench: SysbenchRun[];
  /**
   * Tables of tps, or of figures that the authors computed.
   */
  tables: ReportTable[];
}
/**
 * CPU of iostat: its parts (percent), by name.
 */
export interface CpuLine {
  /**
   * Where it stands in the file, from 1.
   */
  line: number;
  /**
   * `user`, `nice`, `system`, `iowait`, `steal`, `idle`.
   */
  parts: [string, Figure][];
}
/**
 * A printed number.
 */
export interface Figure {
  /**
   * Half a unit of the last printed digit: what rounding may have taken.
   */
  half: number;
  /**
   * Where it stands in its file, from 1.
   */
  line: number;
  /**
   * As printed.
   */
  value: number;
}
/**
 * A device of iostat.
 */
export interface DeviceLine {
  /**
   * Columns by iostat's names.
   */
  columns: [string, Figure][];
  /**
   * The device.
   */
  device: string;
}
/**
 * One method of pg_test_fsync.
 */
export interface FsyncLine {
  /**
   * The method, or what else the line names.
   */
  method: string;
  /**
   * Operations in a second.
   */
  per_second: Figure;
  /**
   * Heading above it: the comparison that it is part of.
   */
  section: string;
  /**
   * Microseconds for each, where the program prints them (from 9.3 on).
   */
  us: Figure | null;
}
/**
 * Report of pgbench on one run. Each part is none where it was not printed, or not copied.
 */
export interface PgbenchRun {
  /**
   * `number of clients`.
   */
  clients: Figure | null;
  /**
   * `duration` (seconds).
   */
  duration_s: Figure | null;
  /**
   * `number of failed transactions` (from 15 on).
   */
  failed: Figure | null;
  /**
   * `initial connection time` (milliseconds).
   */
  initial_connection_ms: Figure | null;
  /**
   * Heading above it that may be its name.
   */
  label: string | null;
  /**
   * Last line in the file.
   */
  last_line: number;
  /**
   * `latency average` (milliseconds).
   */
  latency_average_ms: Figure | null;
  /**
   * `latency stddev` (milliseconds): printed only where latencies were measured one by one.
   */
  latency_stddev_ms: Figure | null;
  /**
   * First line in the file, from 1.
   */
  line: number;
  /**
   * `maximum number of tries` (from 15 on).
   */
  max_tries: Figure | null;
  /**
   * Progress lines that stand above it.
   */
  progress: ReportProgress[];
  /**
   * `query mode`.
   */
  query_mode: string | null;
  /**
   * `number of transactions retried`.
   */
  retried: Figure | null;
  /**
   * `scaling factor`.
   */
  scale: Figure | null;
  /**
   * The average of `rate limit schedule lag` (milliseconds).
   */
  schedule_lag_ms: Figure | null;
  /**
   * The scripts of a run with several.
   */
  scripts: ReportScript[];
  /**
   * `number of transactions skipped`, with a rate and a limit.
   */
  skipped: Figure | null;
  /**
   * `statement latencies in milliseconds` of a run with one script.
   */
  statements: ReportStatement[];
  /**
   * `number of threads` (from 9.0 on).
   */
  threads: Figure | null;
  /**
   * tps of which nothing more is said.
   */
  tps_bare: Figure | null;
  /**
   * tps `excluding connections establishing` (to 13).
   */
  tps_excluding: Figure | null;
  /**
   * tps `including connections establishing` (to 13).
   */
  tps_including: Figure | null;
  /**
   * tps `including reconnection times` (from 14 on, with -C).
   */
  tps_reconnecting: Figure | null;
  /**
   * tps `without initial connection time` (from 14 on).
   */
  tps_without: Figure | null;
  /**
   * `transaction type`.
   */
  transaction_type: string | null;
  /**
   * `number of transactions actually processed`.
   */
  transactions: Figure | null;
  /**
   * `number of transactions per client`.
   */
  transactions_per_client: Figure | null;
  /**
   * Count behind the slash: transactions that were to be processed.
   */
  transactions_wanted: Figure | null;
  /**
   * pgbench's version (from 14 on).
   */
  version: string | null;
}
/**
 * A progress line.
 */
export interface ReportProgress {
  /**
   * Time since the start (seconds).
   */
  at_s: Figure;
  /**
   * Mean latency since then (milliseconds).
   */
  latency_ms: Figure | null;
  /**
   * tps since the line before.
   */
  tps: Figure;
}
/**
 * A script of several.
 */
export interface ReportScript {
  /**
   * Mean latency (milliseconds).
   */
  latency_average_ms: Figure | null;
  /**
   * Where it is named in the file, from 1.
   */
  line: number;
  /**
   * File, or name of the built-in script.
   */
  name: string;
  /**
   * Share of all transactions (percent).
   */
  percent: Figure | null;
  /**
   * `statement latencies in milliseconds`.
   */
  statements: ReportStatement[];
  /**
   * Share by weight (percent).
   */
  target_percent: Figure | null;
  /**
   * Transactions of the script in a second.
   */
  tps: Figure | null;
  /**
   * Transactions of the script (count).
   */
  transactions: Figure | null;
}
/**
 * A command of a script and its mean latency.
 */
export interface ReportStatement {
  /**
   * How often it failed (from 15 on).
   */
  failures: Figure | null;
  /**
   * Mean latency (milliseconds).
   */
  latency_ms: Figure;
  /**
   * The command's first line.
   */
  text: string;
}
/**
 * A setting that the report shows.
 */
export interface ReportSetting {
  /**
   * Where it stands in the file, from 1.
   */
  line: number;
  /**
   * Name of the setting.
   */
  name: string;
  /**
   * Value without quotes.
   */
  value: string;
}
/**
 * Something that the report says of its storage.
 */
export interface StorageFact {
  /**
   * Where it stands in the file, from 1.
   */
  line: number;
  /**
   * Kind of the fact.
   */
  what: StorageWhat;
  /**
   * The words or the option that say it.
   */
  words: string;
}
/**
 * Report of sysbench on one run. Each part is none where it was not printed, or not copied.
 */
export interface SysbenchRun {
  /**
   * `ignored errors`.
   */
  errors: Figure | null;
  /**
   * `total number of events`.
   */
  events: Figure | null;
  /**
   * Events of a thread, on average.
   */
  events_per_thread: Figure | null;
  /**
   * Last line in the file.
   */
  last_line: number;
  /**
   * The mean latency (milliseconds).
   */
  latency_average_ms: Figure | null;
  /**
   * The sum of latencies (milliseconds).
   */
  latency_sum_ms: Figure | null;
  /**
   * First line in the file, from 1.
   */
  line: number;
  /**
   * Queries that do neither.
   */
  others: Figure | null;
  /**
   * Transactions in a second.
   */
  per_second: Figure | null;
  /**
   * Interval lines that stand above it.
   */
  progress: ReportProgress[];
  /**
   * `queries`.
   */
  queries: Figure | null;
  /**
   * Queries in a second.
   */
  queries_per_second: Figure | null;
  /**
   * Queries that read.
   */
  reads: Figure | null;
  /**
   * Time that a thread spent in events, on average (seconds).
   */
  thread_time_s: Figure | null;
  /**
   * `Number of threads`.
   */
  threads: Figure | null;
  /**
   * The three together, as printed.
   */
  total: Figure | null;
  /**
   * `total time`, or `time elapsed` (seconds).
   */
  total_time_s: Figure | null;
  /**
   * `transactions`.
   */
  transactions: Figure | null;
  /**
   * Queries that write.
   */
  writes: Figure | null;
}
/**
 * Table with at least one understood column.
 */
export interface ReportTable {
  /**
   * Names of the columns; empty if unknown.
   */
  header: string[];
  /**
   * Line of its first row in the file, from 1.
   */
  line: number;
  /**
   * Origin of what is known of the columns.
   */
  meaning: Meaning;
  /**
   * Rows.
   */
  rows: ReportRow[];
  /**
   * Whether the table itself mentions medians, intervals or numbers of repeats.
   */
  summarised: boolean;
  /**
   * Whether its figures are tps.
   */
  tps: boolean;
}
/**
 * Row of a table.
 */
export interface ReportRow {
  /**
   * Whether a spread is printed.
   */
  has_spread: boolean;
  /**
   * Text of the first column.
   */
  label: string;
  /**
   * Line in the file, from 1.
   */
  line: number;
  /**
   * Mean, as printed.
   */
  mean: Figure | null;
  /**
   * Figures of unknown meaning, as (column, figure).
   */
  others: [number, Figure][];
  /**
   * Ratio to another row, as printed.
   */
  ratio: Figure | null;
  /**
   * Figure of each repeat.
   */
  repeats: Figure[];
  /**
   * Share of the whole, as printed (percent).
   */
  share: Figure | null;
}
/**
 * Seconds and telemetry of a trial, reduced to a bounded number of buckets.
 */
export interface TrialDetail {
  /**
   * Most buckets of time.
   */
  buckets: number;
  /**
   * Latencies over time; none in trials that earlier versions stored.
   */
  heat: Heat | null;
  /**
   * Whether a bucket holds more than one second.
   */
  reduced: boolean;
  series: Series;
  /**
   * The trial's statements, in their order; empty in trials that earlier versions stored.
   */
  statements: StatementSeries[];
  telemetry: Chart[];
}
/**
 * Counts of latencies by bucket of time and of latency. Latency bucket `k` begins at `base_us` · 2^(k/`per_octave`) microseconds.
 */
export interface Heat {
  base_us: number;
  per_octave: number;
  /**
   * Time bucket, latency bucket, count; again and again.
   */
  rows: number[];
}
/**
 * Seconds of the window. Latencies are in microseconds.
 */
export interface Series {
  failed: number[];
  length_s: number[];
  max: (number | null)[];
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[];
  t_s: number[];
  tps: Reduced;
  transactions: number[];
}
/**
 * Values over buckets; extremes where a bucket may hold several values.
 */
export interface Reduced {
  max?: (number | null)[] | null;
  mean: (number | null)[];
  min?: (number | null)[] | null;
}
/**
 * One statement over buckets.
 */
export interface StatementSeries {
  /**
   * Executions that ended well (count).
   */
  executions: number[];
  /**
   * Their mean latency (microseconds); none where nothing was executed.
   */
  latency_us: (number | null)[];
}
/**
 * One chart of telemetry.
 */
export interface Chart {
  detail: boolean;
  group: string;
  lines: ChartLine[];
  stacked: boolean;
  t_s: number[];
  title: string;
  unit: string;
}
/**
 * Values over buckets; extremes where a bucket may hold several values.
 */
export interface ChartLine {
  max?: (number | null)[] | null;
  mean: (number | null)[];
  min?: (number | null)[] | null;
  name: string;
}
/**
 * Contents of the store, newest first.
 */
export interface Runs {
  /**
   * Probes, crash tests and imports.
   */
  others: NotedRow[];
  /**
   * Runs whose badge, headline and sparkline are not known yet (count). They are found in the background while no run is measured.
   */
  pending: number;
  /**
   * The runs.
   */
  runs: RunRow[];
}
/**
 * A probe, crash tests or an import with the user's note.
 */
export interface NotedRow {
  /**
   * Id of the result.
   */
  id: string;
  /**
   * Kind of the result.
   */
  kind: OtherKind;
  /**
   * Storage that was probed or crashed; the imported report's file.
   */
  name: string;
  /**
   * The user's note; empty where there is none.
   */
  note: string;
  /**
   * Id of the run that the result belongs to; null for one by itself.
   */
  run: string | null;
  /**
   * When the probe or the tests began; of an import, when it was imported.
   */
  started_at: string;
  /**
   * `completed` or `incomplete`; the verdict of crash tests; what was recognised in an import.
   */
  state: string;
  /**
   * The user's tags.
   */
  tags: string[];
}
/**
 * A run in the list.
 */
export interface RunRow {
  /**
   * Whether `pgdyno pgbench --store` stored the run.
   */
  ad_hoc: boolean;
  /**
   * Attempts that failed (count), also those whose trial was completed later.
   */
  attempts_failed: number;
  /**
   * How far the run answers its question; null while that is not known.
   */
  badge: Badge | null;
  /**
   * The answer in one or two sentences; null while it is not known.
   */
  headline: string | null;
  /**
   * The last session's machine, in words; null while it is not known.
   */
  host: string | null;
  /**
   * Machines that the run's sessions ran on, by name, or as `--hosts` named the machine. Sessions of earlier versions name none.
   */
  hosts: string[];
  /**
   * Name.
   */
  id: string;
  /**
   * Whether the run's process is at work and can be watched.
   */
  is_live: boolean;
  /**
   * Treatments whose crash tests were asked for and are not done to the end (count).
   */
  not_crashed: number;
  /**
   * The user's note; empty where there is none.
   */
  note: string;
  /**
   * Question that the run answers.
   */
  question: string | null;
  /**
   * Name of the recipe or of the experiment file.
   */
  recipe: string;
  /**
   * Transactions per second of completed trials in order, at most 40.
   */
  spark: number[];
  /**
   * When the run began.
   */
  started_at: string;
  /**
   * State of the run, by its trials and sessions.
   */
  state: RunState;
  /**
   * The user's tags.
   */
  tags: string[];
  /**
   * Planned trials that are completed (count).
   */
  trials_done: number;
  /**
   * Planned trials (count).
   */
  trials_planned: number;
}
/**
 * Why a request cannot be answered.
 */
export interface ApiError {
  /**
   * Factors that could be named by `by`, where two results differ in something that must be equal; null for any other error.
   */
  comparable_by: string[] | null;
  /**
   * Message: the attempt, its object, and what was found.
   */
  error: string;
  /**
   * Advice; null where there is none.
   */
  help: string | null;
}
