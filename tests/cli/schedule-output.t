# SPDX-License-Identifier: Apache-2.0

# What triax schedule writes, and where

  $ . "$TESTDIR/setup"
  $ shape="--scheduler sched-gpipe --pipeline 1 --microbatches 1"

## Files

A file is written instead of stdout, whatever it had:

  $ echo "what was there before, and longer than what comes" > rows.csv
  $ triax schedule $shape --format csv --output rows.csv
  $ cat rows.csv
  0F0,0B0

A symlink stays, and its file is written:

  $ ln -s rows.csv link.csv
  $ triax schedule --scheduler sched-gpipe --pipeline 1 --microbatches 2 --format csv --output link.csv
  $ readlink link.csv
  rows.csv
  $ cat rows.csv
  0F0,0F1,0B0,0B1

A full disk is a failure:

  $ triax schedule $shape --format csv --output /dev/full
  /dev/full: cannot be written: No space left on device
  [1]

A folder that does not exist is found before anything is made:

  $ triax schedule $shape --format csv --output none/rows.csv
  triax: --output: folder "none" does not exist
    see: triax schedule --help
  [2]

The input is not replaced:

  $ triax schedule --file rows.csv --output ./rows.csv
  triax: --output: ./rows.csv is an input and would be overwritten; name another file
    see: triax schedule --help
  [2]
  $ cat rows.csv
  0F0,0F1,0B0,0B1

A name that is too long:

  $ triax schedule $shape --format svg --output "$(printf '%0300d' 0).svg"
  triax: --output: 000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000.svg cannot be written: File name too long
    see: triax schedule --help
  [2]

A program that runs:

  $ triax schedule $shape --format svg --output "$TRIAX"
  triax: --output: {build}/bin/triax cannot be written: Text file busy
    see: triax schedule --help
  [2]

If the new file cannot be completed, the old one remains:

  $ mkdir -p "rows.csv.partial/in the way"
  $ triax schedule $shape --format csv --output rows.csv
  {folder}/rows.csv.partial: cannot be created: File exists
    free space there, or name a file in another folder
  [1]
  $ cat rows.csv
  0F0,0F1,0B0,0B1

## Schedule of a run

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 8
  > [parallel]
  > pipeline = 2
  > chunks = 2
  > [schedule]
  > plugin = "sched-interleaved"
  > END
  $ triax schedule run.toml --format csv
  0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1
  1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1

With other values:

  $ other="--set parallel.chunks=1 --set parallel.pipeline=1 --set schedule.plugin=sched-1f1b"
  $ triax schedule run.toml $other --format csv
  0F0,0B0,0F1,0B1

With tensor ranks that send a part of each boundary, receivers gather the parts:

  $ scattered="--set parallel.tensor=2 --set parallel.scatter_gather=true"
  $ triax schedule run.toml $scattered --lowered --format csv | tee program.csv
  0F0,0SEND_F0,0F1,2RECV_F0,0SEND_F1,2GATHER_F0,2F0,2SEND_F0,2RECV_F1,2GATHER_F1,2F1,2SEND_F1,2RECV_B0,2GATHER_B0,2B0,2SEND_B0,2RECV_B1,2GATHER_B1,2B1,0RECV_B0,2SEND_B1,2REDUCE_GRAD,0GATHER_B0,0B0,0RECV_B1,0GATHER_B1,0B1,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP,2OPT_STEP
  1RECV_F0,1GATHER_F0,1F0,1SEND_F0,1RECV_F1,1GATHER_F1,1F1,3RECV_F0,1SEND_F1,3GATHER_F0,3F0,3RECV_F1,3B0,3SEND_B0,3GATHER_F1,3F1,1RECV_B0,3B1,3SEND_B1,3REDUCE_GRAD,1GATHER_B0,1B0,1SEND_B0,1RECV_B1,1GATHER_B1,1B1,1SEND_B1,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP,3OPT_STEP
  $ triax schedule --file program.csv > /dev/null

Without a gather, the program is refused:

  $ sed -i 's/1GATHER_F0,//' program.csv
  $ triax schedule --file program.csv
  program.csv:2:2: 1F0: it needs 1GATHER_F0, which is not in the program
    add 1GATHER_F0 before 1F0
  [1]

## Options of the scheduler

A title names those that are set:

  $ interleaved="--scheduler sched-interleaved --pipeline 2 --microbatches 5 --chunks 2"
  $ triax schedule $interleaved --set schedule.group=3 | head -1
  sched-interleaved: p = 2, m = 5, v = 2, group = 3; F takes one unit of time, B two
  $ triax schedule $interleaved --set schedule.group=3 --format svg | grep -o 'sched-interleaved: [^<]*' | head -1
  sched-interleaved: p = 2, m = 5, v = 2, group = 3
  $ triax schedule --scheduler sched-interleaved --pipeline 2 --microbatches 4 --chunks 2 | head -1
  sched-interleaved: p = 2, m = 4, v = 2; F takes one unit of time, B two

Options of a scheduler for tests, which makes faults:

  $ fixtures="$BUILD/tests/schedule/fixtures"; [ -d "$fixtures" ] || exit 80
  $ faulty="--scheduler sched-faulty --path $fixtures --pipeline 2 --microbatches 2"
  $ triax schedule $faulty --set schedule.fault=none --format csv
  0F0,0B0,0F1,0B1
  1F0,1B0,1F1,1B1
  $ triax schedule $faulty --set schedule.fault=none --set schedule.limit=7 --set schedule.limit=1
  --scheduler "sched-faulty": sched-faulty supports at most m = 1, got 2
    use --set schedule.limit=2
  [2]
  $ triax schedule $faulty --set schedule.limit=0 --set schedule.limits=3
  --set: sched-faulty has no key schedule.limits
    with --scheduler, --set can set its keys in [schedule]: fault, limit
  --scheduler: schedule.fault is missing (what is wrong with it)
    add --set schedule.fault=...
  --set: schedule.limit must be in [1, 1000], got 0
  [2]

A scheduler that throws, at its creation and later:

  $ triax schedule $faulty --set schedule.fault=refuse
  --scheduler "sched-faulty": {fixtures}/sched-faulty.so: sched-faulty could not be created: it does not want to be made
    change its options, which triax plugins describe sched-faulty lists, or report this to its author
  [2]
  $ triax schedule $faulty --set schedule.fault=throw
  --scheduler "sched-faulty": rows(): it lost its rows
    report this to the author of the plugin, or choose another --scheduler
  [2]

## Violations

A schedule that the verifier refuses is a failure, and nothing is drawn:

  $ triax schedule $faulty --set schedule.fault=deadlock --output drawn
  --scheduler: sched-faulty: rank 0, action 2, 0B0: it waits for 1B0 at action 3 of rank 1, which is never reached
  --scheduler: sched-faulty: rank 1, action 2, 1F1: it waits for 0F1 at action 3 of rank 0, which is never reached
  [1]
  $ test -e drawn
  [1]
  $ triax schedule $faulty --set schedule.fault=deadlock 2> /dev/null
  [1]

Of many violations, the first are listed:

  $ triax schedule --scheduler sched-faulty --path $fixtures --pipeline 6 --microbatches 8 \
  >   --set schedule.fault=missing
  --scheduler: sched-faulty: rank 0: 0B0 is missing, the backward of stage 0, microbatch 0
  --scheduler: sched-faulty: rank 0: 0B1 is missing, the backward of stage 0, microbatch 1
  --scheduler: sched-faulty: rank 0: 0B2 is missing, the backward of stage 0, microbatch 2
  --scheduler: sched-faulty: rank 0: 0B3 is missing, the backward of stage 0, microbatch 3
  --scheduler: sched-faulty: rank 0: 0B4 is missing, the backward of stage 0, microbatch 4
  --scheduler: sched-faulty: rank 0: 0B5 is missing, the backward of stage 0, microbatch 5
  --scheduler: sched-faulty: rank 0: 0B6 is missing, the backward of stage 0, microbatch 6
  --scheduler: sched-faulty: rank 0: 0B7 is missing, the backward of stage 0, microbatch 7
  --scheduler: sched-faulty: rank 1: 1B0 is missing, the backward of stage 1, microbatch 0
  --scheduler: sched-faulty: rank 1: 1B1 is missing, the backward of stage 1, microbatch 1
  --scheduler: sched-faulty: rank 1: 1B2 is missing, the backward of stage 1, microbatch 2
  --scheduler: sched-faulty: rank 1: 1B3 is missing, the backward of stage 1, microbatch 3
  --scheduler: sched-faulty: rank 1: 1B4 is missing, the backward of stage 1, microbatch 4
  --scheduler: sched-faulty: rank 1: 1B5 is missing, the backward of stage 1, microbatch 5
  --scheduler: sched-faulty: rank 1: 1B6 is missing, the backward of stage 1, microbatch 6
  --scheduler: sched-faulty: rank 1: 1B7 is missing, the backward of stage 1, microbatch 7
  --scheduler: sched-faulty: rank 2: 2B0 is missing, the backward of stage 2, microbatch 0
  --scheduler: sched-faulty: rank 2: 2B1 is missing, the backward of stage 2, microbatch 1
  --scheduler: sched-faulty: rank 2: 2B2 is missing, the backward of stage 2, microbatch 2
  --scheduler: sched-faulty: rank 2: 2B3 is missing, the backward of stage 2, microbatch 3
  ... and 28 more
  [1]

A limit of the microbatches in flight:

  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --cap 4 > /dev/null
  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --cap 3
  --scheduler: sched-1f1b: rank 0, action 7, 0F3: more than 3 microbatch chunks are in flight on its rank
  --scheduler: sched-1f1b: rank 0, action 11, 0F4: more than 3 microbatch chunks are in flight on its rank
  --scheduler: sched-1f1b: rank 0, action 15, 0F5: more than 3 microbatch chunks are in flight on its rank
  --scheduler: sched-1f1b: rank 0, action 19, 0F6: more than 3 microbatch chunks are in flight on its rank
  --scheduler: sched-1f1b: rank 0, action 23, 0F7: more than 3 microbatch chunks are in flight on its rank
    use --cap 4, or another schedule
  [1]

## Sizes

What is too large is refused before it fills the memory:

  $ triax schedule --scheduler sched-gpipe --pipeline 4096 --microbatches 65536
  --pipeline: p = 4096 x v = 1 x m = 65536 is more than 262144 actions of each kind
    use smaller sizes
  [2]
  $ triax schedule --scheduler sched-gpipe --pipeline 2400 --microbatches 1
  a table of 2400 ranks and 7200 units of time is too large to read
    use --format csv, or smaller sizes
  [2]
  $ triax schedule --scheduler sched-gpipe --pipeline 300 --microbatches 1 --format svg
  a picture of 300 ranks is too large to read; 256 can be drawn
    use --format json or trace, or smaller sizes
  [2]
  $ triax schedule --scheduler sched-gpipe --pipeline 200 --microbatches 100 --format svg
  a picture of 40000 passes is too large to read; 32768 can be drawn
    use --format json or trace, or smaller sizes
  [2]
