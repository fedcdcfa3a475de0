# SPDX-License-Identifier: Apache-2.0

# triax schedule

  $ . "$TESTDIR/setup"

`interleaved.toml` is a run of four pipeline ranks with two chunks each:

  $ cat > interleaved.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 8
  > [batch]
  > global = 12
  > [parallel]
  > pipeline = 4
  > chunks = 2
  > [schedule]
  > plugin = "sched-interleaved"
  > END

## Refused arguments

Nothing given:

  $ triax schedule
  triax: --scheduler, --pipeline and --microbatches are required unless RUN.toml or --file is given
    see: triax schedule --help
  [2]

A format alone:

  $ triax schedule --format csv
  triax: --scheduler, --pipeline and --microbatches are required unless RUN.toml or --file is given
    see: triax schedule --help
  [2]

No number of microbatches:

  $ triax schedule --scheduler sched-gpipe --pipeline 4
  triax: --microbatches is required unless RUN.toml or --file is given
    see: triax schedule --help
  [2]

A size out of range:

  $ triax schedule --scheduler sched-gpipe --pipeline 0 --microbatches 8
  triax: --pipeline must be an integer in [1, 4096], got "0"
    see: triax schedule --help
  [2]

An unknown format:

  $ triax schedule --scheduler sched-gpipe --pipeline 4 --microbatches 8 --format picture
  triax: --format must be table, csv, svg, json or trace, got "picture"
    see: triax schedule --help
  [2]

A folder that does not exist:

  $ triax schedule --scheduler sched-gpipe --pipeline 4 --microbatches 8 --output not/there.csv
  triax: --output: folder "not" does not exist
    see: triax schedule --help
  [2]

A table of the lowered program:

  $ triax schedule --scheduler sched-1f1b --pipeline 2 --microbatches 2 --lowered
  triax: --lowered needs --format csv, not table
    see: triax schedule --help
  [2]

A table with times:

  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1
  triax: --format: table has no time axis for the pass times; use svg, json or trace
    see: triax schedule --help
  [2]

Some of the times:

  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --format svg --forward-ms 1 --link-ms 1
  triax: with pass times, --input-ms and --weight-ms are required
    see: triax schedule --help
  [2]

Times that are all zero:

  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --format svg --forward-ms 0 --input-ms 0 --weight-ms 0
  triax: --forward-ms, --input-ms, --weight-ms are all 0: there is nothing to simulate
    see: triax schedule --help
  [2]

## Scheduler and run

A misspelled scheduler:

  $ triax schedule --scheduler sched-1f1p --pipeline 4 --microbatches 8
  --scheduler: schedule.plugin "sched-1f1p" was not found; did you mean "sched-1f1b"?
    looked in: {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with --path or TRIAX_PLUGIN_PATH
  [2]

A plugin that is no scheduler:

  $ triax schedule --scheduler model-gpt --pipeline 4 --microbatches 8
  --scheduler: schedule.plugin "model-gpt" is a model, not a scheduler
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
  [2]

A key that the scheduler does not have:

  $ triax schedule --scheduler sched-gpipe --pipeline 4 --microbatches 8 --set batch.micro=2
  --set: sched-gpipe has no key batch.micro
    with --scheduler, --set can set its keys in [schedule]: none
  [2]

Two chunks for a scheduler of one:

  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --chunks 2
  --chunks = 2: sched-1f1b gives each pipeline rank one chunk
    use --chunks 1, or sched-interleaved
  [2]

Flags stand for keys, also in the next step; the default of a flag has no position:

  $ triax schedule --scheduler sched-zb-v --pipeline 2 --microbatches 1
  --chunks = 1: sched-zb-v gives each pipeline rank two chunks
    --chunks = 1 is the default
    use --chunks 2, or sched-zb-h1
  [2]
  $ triax schedule --scheduler sched-interleaved --pipeline 4 --microbatches 6 --chunks 2
  --microbatches: m = 6 microbatches are not divisible by p = 4 pipeline ranks, as sched-interleaved requires
    set --microbatches to 4 or 8, or use --set schedule.group=6, or sched-1f1b with --chunks 1
  [2]
  $ triax schedule --scheduler sched-interleaved --pipeline 2 --microbatches 6 --chunks 2 --set schedule.group=7
  --set: schedule.group must be in [2, 6], got 7: from p = 2 pipeline ranks to m = 6 microbatches
    use --set schedule.group=6
  [2]
  $ triax simulate --scheduler sched-interleaved --pipeline 4 --microbatches 6 --json 2> /dev/null \
  >   --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0
  {"errors":[{"code":"not-divisible","keys":["--microbatches","--pipeline"],"file":"--microbatches","line":null,"column":null,"message":"m = 6 microbatches are not divisible by p = 4 pipeline ranks, as sched-interleaved requires","hint":"set --microbatches to 4 or 8, or use --set schedule.group=6, or sched-1f1b with --chunks 1"},{"code":"unsupported","keys":["--chunks"],"file":null,"line":null,"column":null,"message":"--chunks = 1: sched-interleaved needs two or more chunks on each pipeline rank","hint":"use --chunks 2, or sched-1f1b"}]}
  [2]

One chunk for a scheduler of several:

  $ triax schedule interleaved.toml --set parallel.chunks=1
  interleaved.toml:5:10: m = 6 microbatches are not divisible by p = 4 pipeline ranks, as sched-interleaved requires
    batch.micro is set at base.toml:10:9
    parallel.data = 1 is derived
    parallel.pipeline is set at interleaved.toml:7:12
    set batch.global / (parallel.data x batch.micro) to 4 or 8, or use schedule.group 6, or sched-1f1b with parallel.chunks 1
  --set: parallel.chunks = 1: sched-interleaved needs two or more chunks on each pipeline rank
    use parallel.chunks 2, or sched-1f1b
  [2]

Microbatches that a scheduler refuses:

  $ triax schedule interleaved.toml
  interleaved.toml:5:10: m = 6 microbatches are not divisible by p = 4 pipeline ranks, as sched-interleaved requires
    batch.micro is set at base.toml:10:9
    parallel.data = 1 is derived
    parallel.pipeline is set at interleaved.toml:7:12
    set batch.global / (parallel.data x batch.micro) to 4 or 8, or use schedule.group 6, or sched-1f1b with parallel.chunks 1
  [2]

A run, and a shape beside it:

  $ triax schedule run.toml --pipeline 4
  triax: --pipeline cannot be combined with RUN.toml; use --set parallel.pipeline=...
    see: triax schedule --help
  [2]

## Files

A file that does not exist:

  $ triax schedule --file rows.csv
  rows.csv: does not exist
    name a CSV file of a schedule
  [2]

A file and a run:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > END
  $ triax schedule interleaved.toml --file rows.csv
  triax: RUN.toml cannot be combined with --file
    see: triax schedule --help
  [2]

A file and a scheduler:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > END
  $ triax schedule --file rows.csv --scheduler sched-1f1b
  triax: --scheduler cannot be combined with --file
    see: triax schedule --help
  [2]

A file has no keys:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > END
  $ triax schedule --file rows.csv --set schedule.group=3
  triax: --set cannot be combined with --file
    see: triax schedule --help
  [2]

A file of another shape:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > 1F0,1B0
  > END
  $ triax schedule --file rows.csv --pipeline 4 --microbatches 1 --chunks 2
  --pipeline 4 does not match rows.csv, which has 2 pipeline ranks
    if the file is right, remove --pipeline
  --chunks 2 does not match rows.csv, which has 1 chunk per rank
    if the file is right, remove --chunks
  [2]
