# SPDX-License-Identifier: Apache-2.0

# Files that a run writes

A file or folder that cannot be written is refused before training.

  $ . "$TESTDIR/setup"

Metrics that are a folder:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [log]
  > metrics = "."
  > END
  $ triax check run.toml
  run.toml:3:11: log.metrics = "{folder}" is a folder
    name a file
  [2]

Metrics over a file that is something else:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [log]
  > metrics = "run.toml"
  > END
  $ triax check run.toml
  run.toml:3:11: log.metrics = "{folder}/run.toml" exists and is not a metrics file
    name another file
  [2]

Folders that cannot take files:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [run]
  > dir = "/proc/triax"
  > [log]
  > metrics = "run.toml/metrics.jsonl"
  > END
  $ triax check run.toml
  run.toml:3:7: run.dir = "/proc/triax" cannot be written: /proc is part of a kernel file system, where files cannot be created
    choose another folder with run.dir
  run.toml:5:11: log.metrics = "{folder}/run.toml/metrics.jsonl" cannot be written: {folder}/run.toml is a file, not a folder
    choose another folder with log.metrics
  [2]

Files that the run itself writes:

  $ for name in resolved.toml failure.json failed-start.json launcher.log rank-3.log timeline-rank-0.json resolved.toml.tmp; do
  >   triax check base.toml --set log.metrics=runs/base/$name
  > done
  --set: log.metrics = "{folder}/runs/base/resolved.toml" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  --set: log.metrics = "{folder}/runs/base/failure.json" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  --set: log.metrics = "{folder}/runs/base/failed-start.json" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  --set: log.metrics = "{folder}/runs/base/launcher.log" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  --set: log.metrics = "{folder}/runs/base/rank-3.log" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  --set: log.metrics = "{folder}/runs/base/timeline-rank-0.json" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  --set: log.metrics = "{folder}/runs/base/resolved.toml.tmp" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  [2]
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [log]
  > metrics = "runs/run/rank-0.log"
  > END
  $ triax train run.toml
  run.toml:3:11: log.metrics = "{folder}/runs/run/rank-0.log" is a file that the run itself writes
    name another file, or leave it out: metrics.jsonl in run.dir
  [2]
  $ test -e runs
  [1]

The timeline of a step after the last:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [log]
  > timeline = 51
  > END
  $ triax check run.toml
  run.toml:3:12: log.timeline = 51 is after the last step, train.steps = 50
    train.steps is set at base.toml:26:9
    name a step of the run, or 0 for none
  [2]
