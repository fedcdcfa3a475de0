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
  run.toml:3:7: run.dir = "/proc/triax" cannot be written: /proc is in a kernel file system, where files cannot be created
    choose another folder with run.dir
  run.toml:5:11: log.metrics = "{folder}/run.toml/metrics.jsonl" cannot be written: {folder}/run.toml is a file, not a folder
    choose another folder with log.metrics
  [2]

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
