# SPDX-License-Identifier: Apache-2.0

# triax compare

  $ . "$TESTDIR/setup"
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 2
  > data = 1
  > [train]
  > steps = 27
  > END

Equal sides, sides that compute something else, and keys that a comparison sets:

  $ triax compare run.toml
  configurations A and B are equal
    give a difference, such as --b comm.plugin=comm-mpi; or --same to see what a comparison of equal sides shows on this machine
  [2]
  $ triax compare run.toml --a schedule.plugin=sched-1f1b --b schedule.plugin=sched-zb-h1 --same
  --same: the sides differ in schedule.plugin
    leave out --same, or the difference
  [2]
  $ triax compare run.toml --b model.hidden=64 --b optimizer.plugin=optim-sgd
  the sides differ in model.hidden, optimizer.plugin: they train different models, so their losses cannot agree
    --different-models compares their times only
  [2]
  $ triax compare run.toml --b run.dir=other --set checkpoint.every=3
  --set: checkpoint.every cannot be set: triax compare sets it
    leave it out
  --b: run.dir cannot be set: triax compare sets it
    --dir names the folder of the comparison
  [2]
  $ triax compare run.toml --b train.steps=ten
  --b: train.steps cannot differ: both sides run the same steps
    use --set train.steps
  [2]
  $ triax compare run.toml --b train.steps=ten --json 2> /dev/null
  {"errors":[{"code":"conflict","keys":["train.steps"],"file":"--b","line":null,"column":null,"message":"train.steps cannot differ: both sides run the same steps","hint":"use --set train.steps"}]}
  [2]
  $ triax compare run.toml --set log.every=2 --a log.every=5 --json
  --set: log.every cannot be set: triax compare sets it
    leave it out
  --a: log.every cannot be set: triax compare sets it
    leave it out
  {"errors":[{"code":"conflict","keys":["log.every"],"file":"--set","line":null,"column":null,"message":"log.every cannot be set: triax compare sets it","hint":"leave it out"},{"code":"conflict","keys":["log.every"],"file":"--a","line":null,"column":null,"message":"log.every cannot be set: triax compare sets it","hint":"leave it out"}]}
  [2]

A communicator that is not installed:

  $ triax compare run.toml --b comm.tensor.plugin=comm-processes
  --b: comm.tensor.plugin "comm-processes" was not found
    looked in: {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]

Too few steps or rounds, and flags that are not well formed:

  $ triax compare run.toml --b schedule.plugin=sched-1f1b
  train.steps must be at least 123 for 20 rounds, got 27
    --set train.steps=123, or 323 for five more steps in each turn; or fewer --rounds (at least 4)
  [2]
  $ triax compare run.toml --b schedule.plugin=sched-1f1b --rounds 3
  triax: --rounds must be an integer in [4, 100000], got "3"
    see: triax compare --help
  [2]
  $ triax compare run.toml --b schedule.plugin=sched-1f1b --turn-ms soon
  triax: --turn-ms must be a number in [0, 1e+06], got "soon"
    see: triax compare --help
  [2]
  $ triax compare run.toml --b schedule.plugin=sched-1f1b --env-b =1
  triax: --env-b must be NAME=VALUE, got "=1"
    see: triax compare --help
  [2]
  $ triax compare run.toml --b schedule.plugin=sched-1f1b --env-b UCX_TLS
  triax: --env-b must be NAME=VALUE, got "UCX_TLS"
    see: triax compare --help
  [2]
  $ triax compare run.toml --b other.toml --rounds 4
  --b: "other.toml" does not exist
    give a TOML file, or a key as TABLE.KEY=VALUE
  [2]
  $ triax compare run.toml --b .
  --b: "." is a folder, not a regular file
    give a TOML file, or a key as TABLE.KEY=VALUE
  [2]
  $ triax compare run.toml --same --dir /proc/compare
  --dir: /proc/compare cannot be written: /proc is part of a kernel file system, where files cannot be created
    choose another folder with --dir
  [2]
  $ triax compare run.toml --b schedule.plugin=sched-1f2b
  --b: schedule.plugin "sched-1f2b" was not found; did you mean "sched-1f1b"?
    looked in: {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]
  $ triax compare <(cat run.toml) --b schedule.plugin=sched-1f1b
  /dev/fd/63: is standard input or a pipe, but each side reads the TOML
    write it to a file
  [2]
  $ RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=localhost triax compare run.toml --b schedule.plugin=sched-1f1b
  a launcher has started this process as one rank of a job
    start triax compare itself: it starts the ranks of both sides on this machine
  [2]

An overlay with an unknown key, and a side that its own checks refuse:

  $ echo '[schedule]' > overlay.toml; echo 'order = 1' >> overlay.toml
  $ triax compare run.toml --b overlay.toml
  {folder}/overlay.toml:2:1: [schedule] sched-gpipe has no key "order"
    sched-gpipe has no keys
  [2]
  $ triax compare run.toml --b batch.micro=3 --rounds 4
  base.toml:9:10: batch.global = 4 is not divisible by parallel.data = 1 x batch.micro = 3: each data rank runs whole microbatches
    parallel.data is set at run.toml:4:8
    batch.micro is set by --b
    use batch.global 3 or 6, or batch.micro 2
  [2]

The result, without its figures:

  $ triax compare run.toml --b schedule.plugin=sched-1f1b --rounds 4 --html compare.html > out.txt 2> /dev/null
  $ sed -E -e 's/[0-9.]+( [kM])? tokens/# tokens/' -e 's/[0-9.]+ (ms|kB)/# \1/g' -e 's/ +/ /g' out.txt | grep -E '^(A:|B:|losses|gradient|4 rounds| A pipe| B pipe)'
  A: schedule.plugin = "sched-gpipe"
  B: schedule.plugin = "sched-1f1b"
  4 rounds A B B A or B A A B; measured steps in each turn: 1
  A: # tokens/s; 8 measured steps, 5th percentile # ms, 95th # ms
  B: # tokens/s; 8 measured steps, 5th percentile # ms, 95th # ms
  losses: bit-equal in 27 steps
  gradient norms: bit-equal in 27 steps
   A pipeline comm-local 14 # kB
   B pipeline comm-local 14 # kB
  $ grep -cE '^note: train.steps = [0-9]+ allows 1 measured steps per turn; --turn-ms 200 needs [0-9]+$' out.txt
  1
  $ tail -1 out.txt | grep -cE '^(No difference shown: a step of B takes|B is (faster|slower): its step takes) .* 4 rounds\)'
  1
  $ python3 "$SOURCE/tests/page/check-page" compare.html
  5 sections, 7 figures, 3 tables
  $ triax compare run.toml --b schedule.plugin=sched-1f1b --html nowhere/compare.html
  triax: --html: folder "nowhere" does not exist
    see: triax compare --help
  [2]
  $ ls runs/run-compare runs/run-compare/a
  runs/run-compare:
  a
  b
  compare.json
  
  runs/run-compare/a:
  memory.json
  metrics.jsonl
  output.log
  rank-0.log
  rank-1.log
  resolved.toml
  side.toml
  timeline-rank-0.json
  timeline-rank-1.json

A comparison is not a run:

  $ triax report runs/run-compare
  runs/run-compare: is the folder of a comparison
    compare.json has its result; the runs of its sides are runs/run-compare/a and runs/run-compare/b
  [2]
