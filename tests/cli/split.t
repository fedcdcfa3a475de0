# SPDX-License-Identifier: Apache-2.0

# Stages that take about the same time

  $ . "$TESTDIR/setup"

  $ auto="--set model.layers=9 --set model.vocab=4000 --set parallel.pipeline=3 --set parallel.split=auto"
  $ triax check base.toml --no-device $auto | grep -E 'split|even'
    split                 = [2, 7, 0]            # auto, --set
    split_cluster         = ""                   # default
  parallel.split = "auto" is [2, 7, 0]: the slowest stage takes 55.6 % more than the mean of all stages, and with an even split 103.6 % more (estimated by the cost model)
  uneven stages: the step is 12.4 % longer than with equal stages (idle 55.5 % instead of 50.0 %; estimated from FLOPs, without transfers)
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
  {folder}/none.toml: does not exist
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
