# SPDX-License-Identifier: Apache-2.0

# triax schedule --measured

A run of `kernels-sim`, which computes nothing, and writes the timeline of step 2:

  $ . "$TESTDIR/setup"
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 4
  > hidden = 16
  > sequence = 8
  > [parallel]
  > pipeline = 2
  > chunks = 2
  > data = 2
  > [batch]
  > global = 8
  > micro = 1
  > [schedule]
  > plugin = "sched-interleaved"
  > [kernels]
  > plugin = "kernels-sim"
  > op_us = 100
  > [optimizer]
  > plugin = "optim-sgd"
  > [train]
  > steps = 3
  > [log]
  > timeline = 2
  > [run]
  > dir = "run"
  > END

Before the run, there is no timeline:

  $ triax schedule run.toml --measured
  {folder}/run/timeline-rank-0.json: does not exist
    record a step first: triax train RUN.toml --set log.timeline=N, where N is a step to come
  [1]

Nothing was computed, and the result says so:

  $ triax train run.toml 2> /dev/null | grep -o 'ran 3 steps: [^;]*;'
  ran 3 steps: kernels-sim does not compute, so all losses are 0;

## Arguments that do not fit together

  $ triax schedule run.toml --measured --format csv
  triax: --measured cannot be written as csv; use --format table, svg, json or trace
    see: triax schedule --help
  [2]
  $ triax schedule run.toml --measured --forward-ms 1 --input-ms 1 --weight-ms 1 --format svg
  triax: --measured cannot be combined with pass times: it uses the times of the run
    see: triax schedule --help
  [2]
  $ triax schedule --scheduler sched-gpipe --pipeline 2 --microbatches 2 --measured
  triax: --measured needs the TOML of the run that recorded a step
    see: triax schedule --help
  [2]

## Runs that are not the one that was measured

Another number of ranks:

  $ triax schedule run.toml --measured --set parallel.data=1
  {folder}/run: rank 0 recorded a run of 4 ranks, but this run has 2
    use the TOML and the --set of the run that was trained, or train again
  [1]

Another pipeline:

  $ triax schedule run.toml --measured --set parallel.pipeline=4 --set parallel.chunks=1 --set parallel.data=1 \
  >   --set schedule.plugin=sched-breadth-first
  {folder}/run: pipeline rank 0, pass 2: 2F0 ran, but its program has 0F2
    use the TOML and the --set of the run that was trained, or train again
  [1]

Another schedule:

  $ triax schedule run.toml --measured --set schedule.plugin=sched-breadth-first
  {folder}/run: pipeline rank 0, pass 2: 2F0 ran, but its program has 0F2
    use the TOML and the --set of the run that was trained, or train again
  [1]

The timeline of a rank is missing:

  $ mv run/timeline-rank-2.json .
  $ triax schedule run.toml --measured
  {folder}/run/timeline-rank-2.json: does not exist
    the folder has the files of 3 other ranks: copy this file from the machine of the rank, or train again with log.timeline, in a folder that all ranks share
  [1]

The timeline of an earlier run is not taken for this one's:

  $ mv timeline-rank-2.json run
  $ triax train run.toml --set log.timeline=0 > /dev/null 2>&1
  $ triax schedule run.toml --measured
  {folder}/run/timeline-rank-0.json: does not exist
    record a step first: triax train RUN.toml --set log.timeline=N, where N is a step to come
  [1]
