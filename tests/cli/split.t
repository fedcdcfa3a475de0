# SPDX-License-Identifier: Apache-2.0

# Stages that take about the same time

  $ . "$TESTDIR/setup"

  $ auto="--set model.layers=9 --set model.vocab=4000 --set parallel.pipeline=3 --set parallel.split=auto"
  $ triax check base.toml --no-device $auto | grep -E 'split|even'
    split                  = [2, 7, 0]            # auto, --set
    split_cluster          = ""                   # default
  parallel.split = "auto" is [2, 7, 0]: the slowest stage takes 55.6 % more than the mean of all stages, and with an even split 103.6 % more (estimated by the cost model)
  uneven stages: the step is 12.4 % longer than with equal stages (mean bubble 55.5 % instead of 50.0 %; estimated from FLOPs, without transfers)
  $ triax check base.toml --no-device $auto --json | grep -A3 automatic_split
      "automatic_split": {
        "slowest_above_mean": 0.5563016569007126,
        "slowest_above_mean_if_even": 1.0358850945313085
      },
  $ triax train base.toml $auto --set train.steps=1 --set run.dir=balanced 2>&1 | grep -o 'parallel.split = .*'
  parallel.split = "auto" is [2, 7, 0]: the slowest stage takes 55.6 % more than the mean of all stages, and with an even split 103.6 % more (estimated by the cost model)
  $ grep -E '^ *split' balanced/resolved.toml
  split = [2, 7, 0]                                             # auto, --set
  split_cluster = ""                                            # default
  $ triax check base.toml $auto --set parallel.split_cluster=none.toml
  --set: parallel.split_cluster: {folder}/none.toml: does not exist
    correct the path; examples are in clusters/
  [2]
  $ triax check base.toml $auto --set model.heads=5
  base.toml:4:10: model.hidden = 32 is not divisible by model.heads = 5: each head has hidden / heads columns
    model.heads is set by --set
    use hidden 30 or 35, or heads 4 or 8
  [2]
  $ triax check base.toml $auto --set 'memory.recompute=["full", "none", "none"]'
  --set: parallel.split = "auto" needs one value of memory.recompute for all stages
    memory.recompute is set by --set
    write one value, or list the blocks of each stage in parallel.split
  [2]
  $ printf '[cluster]\nname = 3\n' > wrong.toml
  $ triax check base.toml $auto --set parallel.split_cluster=wrong.toml 2>&1 | head -2
  --set: parallel.split_cluster: {folder}/wrong.toml:2:1: cluster.name must be a string
    write a name in quotes

Sizes that are too large are refused before a schedule is made:

  $ triax check base.toml $auto --set parallel.chunks=2 --set schedule.plugin=sched-interleaved --set batch.global=16777216
  base.toml:10:9: batch.global = 16777216 makes 8388608 microbatches of batch.micro = 2 on each of 6 stages: more than 262144 actions in a step
    batch.global is set by --set
    use a larger batch.micro or a smaller batch.global
  [2]

Where "auto" cannot help, the next step is another one:

  $ uneven="--no-device --set model.layers=9 --set model.vocab=4000 --set parallel.pipeline=3"
  $ triax check base.toml $uneven | grep uneven
  uneven stages: the step is 24.9 % longer than with equal stages (mean bubble 60.0 % instead of 50.0 %; estimated from FLOPs, without transfers); try parallel.split = "auto"
  $ triax check base.toml $uneven --set 'parallel.split=[3, 3, 3]' | grep uneven
  uneven stages: the step is 24.9 % longer than with equal stages (mean bubble 60.0 % instead of 50.0 %; estimated from FLOPs, without transfers); move layers with parallel.split
  $ triax check base.toml $uneven --set 'memory.recompute=["full", "none", "none"]' | grep uneven
  uneven stages: the step is 21.5 % longer than with equal stages (mean bubble 58.7 % instead of 49.8 %; estimated from FLOPs, without transfers); move layers with parallel.split

A cluster file without "auto" has no effect; resolved.toml has the numbers, and says nothing:

  $ cluster="--set parallel.split_cluster=$SOURCE/clusters/a100-dgx.toml"
  $ triax train base.toml --set train.steps=1 --set run.dir=numbers $cluster 2>&1 | grep -o 'parallel.split_cluster = .*' | sed "s|$SOURCE|{source}|"
  parallel.split_cluster = "{source}/clusters/a100-dgx.toml" has no effect without parallel.split = "auto" or memory.recompute = "optimal"
  $ triax train base.toml $auto --set train.steps=1 --set run.dir=numbered $cluster > /dev/null 2>&1
  $ triax train numbered/resolved.toml --set run.dir=again 2>&1 | grep -c 'parallel.split_cluster = .*'
  0
  [1]

The other commands have the numbers too. `triax plan` has its own:

  $ triax fit base.toml $auto --memory 1GB | tail -1
  base.toml fits as it is written
  $ triax evaluate base.toml $auto --set train.steps=1 --set run.dir=balanced --set data.validation=text --set eval.batches=1 2>&1 | grep -o 'parallel.split = [^:]*'
  parallel.split = "auto" is [2, 7, 0]
  $ triax generate balanced --prompt xx --max-tokens 2 2> /dev/null
  xx
  $ triax plan base.toml $auto --cluster "$SOURCE/clusters/a100-dgx.toml" --gpus 2 --fix pipeline=2 --fix split=auto --top 1 2>&1 | grep -E '^ *split'
  split = [3, 2, 2, 2]
