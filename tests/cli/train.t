# SPDX-License-Identifier: Apache-2.0

# triax train

  $ . "$TESTDIR/setup"
  $ set -o pipefail

Times, rates, losses and progress lines are left out, because they depend on the machine:

  $ steady() {
  >   sed -E -e '/^step /d' -e 's/^[0-9-]+ [0-9:.]+ //' -e 's/[0-9]\.[0-9]{4}/{loss}/g' \
  >     -e 's/[0-9.]+ k? ?tokens/{rate} tokens/' -e 's/, [0-9]+ CPU threads? each[^;]*;/, ...;/'
  > }

Four ranks as threads of one process. Standard output is the result, and standard error is the log:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > data = 2
  > tensor = 2
  > [batch]
  > micro = 1
  > [train]
  > steps = 2
  > [data]
  > validation = "text"
  > [eval]
  > every = 2
  > batches = 1
  > [run]
  > dir = "run"
  > END
  $ triax train run.toml 2> /dev/null | steady
  trained 2 steps: loss {loss} to {loss}, held-out loss {loss}, {rate} tokens/s, metrics in run/metrics.jsonl

Each step communicates what `triax check` plans. The evaluation after step 2 is not part of it:

  $ comm() { python3 -c 'import json, sys; print(json.dumps(eval(sys.argv[1]), sort_keys=True))' "$1"; }
  $ triax check run.toml --json | comm 'json.load(sys.stdin)["ranks"][0]["comm"]' > planned
  $ for step in 1 2; do sed -n ${step}p run/metrics.jsonl | comm 'json.load(sys.stdin)["comm"]' | diff planned -; done

  $ triax train run.toml --fresh 2>&1 > /dev/null | steady
  info rank 0: run.toml: 34.7 k parameters, pipeline 1 x tensor 2 x data 2; model-gpt, kernels-reference, optim-adamw, sched-gpipe, comm-local; 4 ranks as threads of this process, ...; folder run
  info rank 0: {folder}/run: files of the earlier run were moved: metrics.jsonl to metrics-1.jsonl, checkpoints to checkpoints-1, resolved.toml to resolved-1.toml
  info rank 0: step 2 is saved in {folder}/run/checkpoints/step-00000002
  sent between ranks, sum over all ranks:
    tensor  comm-local  300 calls  830 kB
    data    comm-local  76 calls   855 kB
  next: to train longer, from this step: {build}/bin/triax train run.toml --set train.steps=4
  $ ls run
  checkpoints
  checkpoints-1
  memory.json
  metrics-1.jsonl
  metrics.jsonl
  rank-0.log
  rank-1.log
  rank-2.log
  rank-3.log
  resolved-1.toml
  resolved.toml

## Notes

A run that ends in its warm-up says so once:

  $ triax train run.toml --fresh --set lr.warmup_steps=3 2>&1 | grep -c 'lr.warmup_steps = 3 is more than train.steps = 2'
  1

A copy of a run's folder trains in the copy, and the original stays as it is:

  $ triax train run.toml --set run.dir=first > /dev/null 2>&1
  $ cp -r first copy
  $ triax train copy/resolved.toml --fresh 2>&1 > /dev/null | grep -o 'files of the earlier run.*'
  files of the earlier run were moved: metrics.jsonl to metrics-1.jsonl, checkpoints to checkpoints-1, resolved.toml to resolved-1.toml
  $ cmp first/metrics.jsonl copy/metrics-1.jsonl
  $ ls first copy | grep -E ':|metrics'
  copy:
  metrics-1.jsonl
  metrics.jsonl
  first:
  metrics.jsonl
  $ wc -l < copy/metrics.jsonl
  2

## Failures

The rank that fails is named, and no other:

  $ fixtures="$BUILD/tests/launch/plugins"; [ -d "$fixtures" ] || exit 80
  $ faulty="--set plugins.path=[\"$fixtures\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2"
  $ triax train run.toml --fresh $faulty --set optimizer.rank=3 --set optimizer.where=step --set log.level=warn 2>&1 | steady
  error rank 3: pipeline 0, data 1, tensor 1, step 2, 0OPT_STEP, in step() of plugin "optim-faulty": out of luck
    try again
  [1]
  $ grep -c 'out of luck' run/rank-3.log
  1

Records that cannot be written are reported once:

  $ triax train run.toml --fresh --set log.metrics=/dev/full 2>&1 | steady | grep -v '^next'
  info rank 0: run.toml: 34.7 k parameters, pipeline 1 x tensor 2 x data 2; model-gpt, kernels-reference, optim-adamw, sched-gpipe, comm-local; 4 ranks as threads of this process, ...; folder run
  info rank 0: {folder}/run: files of the earlier run were moved: metrics.jsonl to metrics-4.jsonl, resolved.toml to resolved-4.toml
  error rank 0: /dev/full: the record of step 1 cannot be written: No space left on device
    free space there: the run continues, and writes later lines as soon as it can
  info rank 0: step 2 is saved in {folder}/run/checkpoints/step-00000002
  sent between ranks, sum over all ranks:
    tensor  comm-local  300 calls  830 kB
    data    comm-local  76 calls   855 kB
  trained 2 steps: loss {loss} to {loss}, held-out loss {loss}, {rate} tokens/s, no metrics; missing: 2 of 2 records
  [1]

A log that cannot be opened is refused:

  $ rm run/rank-2.log
  $ mkdir run/rank-2.log
  $ triax train run.toml
  {folder}/run/rank-2.log: the log cannot be opened: Is a directory
    choose another folder with run.dir
  [2]

Variables of a job of several ranks, without the number of this one:

  $ WORLD_SIZE=4 MASTER_ADDR=node0 triax train base.toml
  environment: WORLD_SIZE = 4 and MASTER_ADDR = node0 are set, but RANK is missing
    set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or unset all of them to start the ranks here
  [2]
  $ PMI_RANK=1 PMI_SIZE=4 triax train base.toml
  environment: PMI_RANK = 1 and PMI_SIZE = 4: this process was started by an mpiexec other than Open MPI's
    start the ranks with Open MPI's mpirun, with srun or with torchrun, or unset PMI_RANK and PMI_SIZE to start the ranks here
  [2]

The next step leaves out flags of the first part, and repeats keys of the TOML:

  $ next() { triax train "$@" 2>&1 > /dev/null | grep '^next'; }
  $ next run.toml --fresh --set train.stop_at=1 --set run.dir=part
  next: to continue: {build}/bin/triax train run.toml --set run.dir=part
  $ sed 's/^steps = 2/&\nstop_at = 2/' run.toml > stopping.toml
  $ next stopping.toml --set train.stop_at=1 --set run.dir=stopping
  next: to continue: {build}/bin/triax train stopping.toml --set run.dir=stopping --set train.stop_at=0
