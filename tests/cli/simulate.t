# SPDX-License-Identifier: Apache-2.0

# triax simulate

  $ . "$TESTDIR/setup"

## Refused arguments

Nothing given:

  $ triax simulate
  triax: --forward-ms, --input-ms, --weight-ms and --link-ms are required; --scheduler, --pipeline and --microbatches are required unless RUN.toml or --file is given
    see: triax simulate --help
  [2]

Times alone:

  $ triax simulate --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0
  triax: --scheduler, --pipeline and --microbatches are required unless RUN.toml or --file is given
    see: triax simulate --help
  [2]

A time is missing:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --link-ms 0
  triax: --weight-ms is required
    see: triax simulate --help
  [2]

A negative time:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms -1 --input-ms 1 --weight-ms 1 --link-ms 0
  triax: --forward-ms must be a time in ms in [0, 1e+12], got "-1"
    see: triax simulate --help
  [2]

An infinite time:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms inf --link-ms 0
  triax: --weight-ms must be a time in ms in [0, 1e+12], got "inf"
    see: triax simulate --help
  [2]

A time that is NaN:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms nan --weight-ms 1 --link-ms 0
  triax: --input-ms must be a time in ms in [0, 1e+12], got "nan"
    see: triax simulate --help
  [2]

A time with a unit:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 2ms --link-ms 0
  triax: --weight-ms must be a time in ms in [0, 1e+12], got "2ms"
    see: triax simulate --help
  [2]

Times that are all zero:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 0 --input-ms 0 --weight-ms 0 --link-ms 5
  triax: --forward-ms, --input-ms, --weight-ms are all 0: there is nothing to simulate
    see: triax simulate --help
  [2]

A time that is nearly zero:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 1e-310 | grep -o '^makespan'
  makespan

Some of the links only:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 1,2
  triax: --link-ms: has 2 values, but 4 stages have 3 links; give one value, or one for each link
    see: triax simulate --help
  [2]

A link that is not a time:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 1,x,1
  triax: --link-ms must be a time in ms in [0, 1e+12], got "x"
    see: triax simulate --help
  [2]

An empty link:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 1,,1
  triax: --link-ms must be a time in ms in [0, 1e+12], got ""
    see: triax simulate --help
  [2]

## Refused schedules

One chunk for a scheduler of two:

  $ triax simulate --scheduler sched-zb-v --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0
  --chunks = 1: sched-zb-v gives each pipeline rank two chunks
    --chunks = 1 is the default
    use --chunks 2, or sched-zb-h1
  [2]

A group that leaves too few microbatches:

  $ triax simulate --scheduler sched-interleaved --pipeline 4 --microbatches 12 --chunks 2 --set schedule.group=5 --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0
  --set: schedule.group = 5 leaves 2 of m = 12 microbatches to the last group, which needs at least p = 4
    use --set schedule.group=12, or a group after which 0 or at least 4 microbatches are left
  [2]

A file with two mistakes:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > 1F0,1B,1C0
  > END
  $ triax simulate --file rows.csv --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0
  rows.csv:2:2: "1B" has no microbatch
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  rows.csv:2:3: "1C0" has unknown kind C; known: F, B, I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, GATHER_F, GATHER_B, REDUCE_GRAD, REDUCE_TIED, NORM, OPT_STEP, GATHER_PARAM, UNSHARD, RESHARD
  [2]

With `--json`, the refusal is one object on stdout:

  $ times="--forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0"
  $ triax simulate --scheduler sched-zb-v --pipeline 4 --microbatches 8 $times --json 2> /dev/null
  {"errors":[{"code":"unsupported","keys":["--chunks"],"file":null,"line":null,"column":null,"message":"--chunks = 1: sched-zb-v gives each pipeline rank two chunks","hint":"use --chunks 2, or sched-zb-h1"}]}
  [2]
  $ triax simulate --scheduler sched-zb-v --forward-ms nan --json 2> /dev/null
  {"errors":[{"code":"invalid-value","keys":["--forward-ms"],"file":null,"line":null,"column":null,"message":"--forward-ms must be a time in ms in [0, 1e+12], got \"nan\"","hint":"see: triax simulate --help"}]}
  [2]

A schedule with violations is a failure:

  $ [ -d "$BUILD/tests/schedule/fixtures" ] || exit 80
  $ triax simulate --scheduler sched-faulty --path "$BUILD/tests/schedule/fixtures" --pipeline 2 --microbatches 2 \
  >   --set schedule.fault=deadlock $times
  --scheduler: sched-faulty: rank 0, action 2, 0B0: it waits for 1B0 at action 3 of rank 1, which is never reached
  --scheduler: sched-faulty: rank 1, action 2, 1F1: it waits for 0F1 at action 3 of rank 0, which is never reached
  [1]

## Times of a step

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 $times
  sched-1f1b: p = 4, m = 8, v = 1; F 1 ms, I 1 ms, W 1 ms, link 0 ms
  makespan 33 ms, from the first start to the last end
  active time 33 ms, the longest of a rank; work 24 ms
  bubble / active time 0.2727; bubble / work 0.375
  peak of microbatches in flight, by rank: 4 3 2 1

With recomputation before the gradients arrive:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --recompute-ms 1 $times
  sched-1f1b: p = 4, m = 8, v = 1; F 1 ms, I 1 ms, W 1 ms, R 1 ms, link 0 ms
  makespan 41 ms, from the first start to the last end
  active time 41 ms, the longest of a rank; work 32 ms
  bubble / active time 0.2195; bubble / work 0.2813
  peak of microbatches in flight, by rank: 4 3 2 1

With a slower link between two of the ranks, and the end of the step:

  $ triax simulate --scheduler sched-1f1b --pipeline 4 --microbatches 8 --forward-ms 1 --input-ms 1 --weight-ms 1 \
  >   --link-ms 0.1,2,0.1 --reduce-ms 4 --optimizer-ms 0.5
  sched-1f1b: p = 4, m = 8, v = 1; F 1 ms, I 1 ms, W 1 ms, links 0.1 ms, 2 ms, 0.1 ms
  makespan 49.6 ms, from the first start to the last end
  step 54.1 ms; per stage: gradient reduction 4 ms, optimizer step 0.5 ms
  active time 49.6 ms, the longest of a rank; work 24 ms
  bubble / active time 0.5161; bubble / work 1.0667
  peak of microbatches in flight, by rank: 4 3 2 1

With gathers of sharded weights (passes hide all but the first):

  $ sharded="base.toml --set parallel.data=2 --set optimizer.shard=parameters --set parallel.chunks=2 --set schedule.plugin=sched-breadth-first"
  $ triax simulate $sharded --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0 --gather-ms 0.5
  sched-breadth-first: p = 1, m = 1, v = 2; F 1 ms, I 1 ms, W 1 ms, link 0 ms
  makespan 6 ms, from the first start to the last end
  step 6.5 ms; per stage: gradient reduction 0 ms, optimizer step 0 ms, parameter gather 0.5 ms
  active time 6 ms, the longest of a rank; work 6 ms
  bubble / active time 0; bubble / work 0
  peak of microbatch chunks in flight, by rank: 2

Nothing to gather:

  $ triax simulate base.toml --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0 --gather-ms 0.5
  triax: --gather-ms needs a run whose optimizer.shard is not "none"; leave it out
    see: triax simulate --help
  [2]

Without a bubble (the last rank starts three forwards later):

  $ triax simulate --scheduler sched-zb-v --pipeline 4 --chunks 2 --microbatches 8 $times --json
  {"makespan_ms":51.0,"step_ms":51.0,"active_ms":48.0,"bubble_rate":0.0,"bubble_over_ideal":0.0,"peak_in_flight":[8,8,8,8]}

With an option of the scheduler:

  $ interleaved="--scheduler sched-interleaved --pipeline 2 --chunks 2 --microbatches 6"
  $ triax simulate $interleaved $times --json
  {"makespan_ms":39.0,"step_ms":39.0,"active_ms":39.0,"bubble_rate":0.07692307692307693,"bubble_over_ideal":0.08333333333333333,"peak_in_flight":[5,3]}
  $ triax simulate $interleaved $times --json --set schedule.group=3
  {"makespan_ms":39.0,"step_ms":39.0,"active_ms":39.0,"bubble_rate":0.07692307692307693,"bubble_over_ideal":0.08333333333333333,"peak_in_flight":[6,4]}

The schedule of a run:

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
  $ triax simulate run.toml $times --json
  {"makespan_ms":15.0,"step_ms":15.0,"active_ms":15.0,"bubble_rate":0.2,"bubble_over_ideal":0.25,"peak_in_flight":[4,3]}

A schedule file has the simulated times of the scheduler that wrote it:

  $ scheduler="--scheduler sched-interleaved --pipeline 4 --microbatches 8 --chunks 2"
  $ times="--forward-ms 3 --input-ms 2 --weight-ms 1.5 --link-ms 0.3"
  $ triax simulate $scheduler $times --json > wanted
  $ grep -o '"peak_in_flight.*' wanted
  "peak_in_flight":[11,9,7,5]}
  $ for form in "" --lowered; do
  >   triax schedule $scheduler --format csv --output rows.csv $form
  >   triax simulate --file rows.csv $times --json | cmp - wanted
  > done
