# SPDX-License-Identifier: Apache-2.0

# The settings under which a run fits into memory

The run of `examples/gpt3-175b.toml`, and files in place of the plugins of GPUs, as in a build without CUDA:

  $ . "$TESTDIR/setup"
  $ plan_gpt3

It fits as it is written, or with larger microbatches:

  $ triax fit run.toml --memory 80GiB
  as written: parallel.sequence = false, optimizer.shard = "none", memory.recompute = "none", batch.micro = 1; peak: rank 0, 61.8 GB
  
  the largest batch.micro in --memory 80GiB; bubble: mean of the ranks, estimated from FLOPs without transfers
    parallel.sequence  optimizer.shard  memory.recompute  batch.micro    needs     free  bubble
    false              none             none                        1  61.8 GB  24.1 GB  13.3 %
    true               none             none                        4  75.1 GB  10.8 GB  33.1 %
    false              states           none                        2  67.2 GB  18.7 GB  21.1 %
    true               states           none                        6  73.6 GB  12.3 GB  42.0 %
    false              none             cheap                       3  79.9 GB     6 GB  27.6 %
    true               none             cheap                       6  73.7 GB  12.2 GB  42.0 %
    false              states           cheap                       4  73.4 GB  12.5 GB  33.1 %
    true               states           cheap                      48  82.2 GB  3.73 GB  84.7 %
    false              none             full                       16  84.2 GB  1.66 GB  64.3 %
    true               none             full                       48  73.7 GB  12.2 GB  84.2 %
    false              states           full                       32  75.7 GB  10.2 GB  78.1 %
    true               states           full                       48  52.4 GB  33.5 GB  84.2 %
    false              none             full, auto                 32  85.6 GB   315 MB  77.6 %
    false              states           full, auto                 48    82 GB  3.89 GB  83.8 %
  
  run.toml fits as it is written

It fits with another setting. `triax check` accepts the run with it:

  $ triax fit run.toml --memory 35GB
  as written: parallel.sequence = false, optimizer.shard = "none", memory.recompute = "none", batch.micro = 1; peak: rank 0, 61.8 GB
  
  the largest batch.micro in --memory 35GB; bubble: mean of the ranks, estimated from FLOPs without transfers
    parallel.sequence  optimizer.shard  memory.recompute  batch.micro    needs  free          bubble
    false              none             none                        1  61.8 GB  does not fit  13.3 %
    true               none             none                        1  44.9 GB  does not fit  13.3 %
    false              states           none                        1  40.2 GB  does not fit  13.3 %
    true               states           none                        2  33.4 GB  1.64 GB       21.1 %
    false              none             cheap                       1  49.8 GB  does not fit  13.3 %
    true               none             cheap                       1  41.3 GB  does not fit  13.3 %
    false              states           cheap                       1  28.3 GB  6.72 GB       13.3 %
    true               states           cheap                       3  32.7 GB  2.33 GB       27.6 %
    false              none             full                        1  40.3 GB  does not fit  12.3 %
    true               none             full                        1  36.1 GB  does not fit  12.3 %
    false              states           full                        3  29.8 GB  5.23 GB       26.5 %
    true               states           full                       24  34.7 GB  321 MB        72.9 %
    false              none             full, auto                  1  37.5 GB  does not fit  11.6 %
    true               none             full, auto                  1  35.9 GB  does not fit  12.1 %
    false              states           full, auto                  8  34.9 GB  51.3 MB       45.9 %
  
  to fit, set in run.toml; peak: rank 0, 23.3 GB
  
  [parallel]
  sequence = true
  scatter_gather = false
  
  [optimizer]
  shard = "states"
  $ triax check run.toml --no-device --memory 35GB > out.txt 2>&1; echo $?
  2
  $ triax check run.toml --no-device --memory 35GB --set parallel.sequence=true --set parallel.scatter_gather=false --set optimizer.shard=states > out.txt; echo $?
  0

With several, and a smaller microbatch, if no others suffice:

  $ triax fit run.toml --memory 60GB --set batch.micro=4 --set memory.recompute=full --set parallel.sequence=true --set parallel.scatter_gather=false | tail -5
    true               states           cheap                       6  52.1 GB   7.9 GB  42.0 %
    true               none             full                       24  56.3 GB  3.74 GB  72.9 %
    true               states           full                       48  52.4 GB   7.6 GB  84.2 %
  
  run.toml fits as it is written
  $ triax fit base.toml --memory 1100kB --set batch.micro=4 | tail -7
  to fit, set in base.toml; peak: rank 0, 1.1 MB
  
  [memory]
  recompute = "full"
  
  [batch]
  micro = 2
  $ triax check base.toml --memory 1100kB --set batch.micro=4 --set memory.recompute=full 2>&1 | grep -c 'rank 0 needs'
  1

With cheap recomputation, if that suffices:

  $ triax fit base.toml --memory 1500kB --set batch.micro=4 | tail -4
  to fit, set in base.toml; peak: rank 0, 1.46 MB
  
  [memory]
  recompute = "cheap"

A schedule that restricts the number of microbatches leaves some out:

  $ triax fit base.toml --memory 1GB --set schedule.plugin=sched-interleaved --set parallel.chunks=2 --set parallel.pipeline=2 --set model.layers=4 --set batch.global=12 | sed -n '3,7p'
  the largest batch.micro in --memory 1GB; bubble: mean of the ranks, estimated from FLOPs without transfers
    parallel.sequence  optimizer.shard  memory.recompute  batch.micro    needs    free  bubble
    false              none             none                        6  2.69 MB  997 MB  25.6 %
    false              none             cheap                       6  2.26 MB  998 MB  25.6 %
    false              none             full                        6  1.83 MB  998 MB  21.0 %

Where some stages recompute, the list has a row, beside all stages and none:

  $ stages='--set parallel.pipeline=4 --set schedule.plugin=sched-1f1b --set model.layers=8 --set batch.global=16 --set batch.micro=4'
  $ triax fit base.toml --memory 1800kB $stages --set 'memory.recompute=["full", "full", "none", "none"]'
  as written: parallel.sequence = false, optimizer.shard = "none", memory.recompute = ["full", "full", "none", "none"], batch.micro = 4; peak: rank 2, 1.76 MB
  
  the largest batch.micro in --memory 1800kB; bubble: mean of the ranks, estimated from FLOPs without transfers
    parallel.sequence  optimizer.shard  memory.recompute                  batch.micro    needs    free  bubble
    false              none             none                                        1  1.24 MB  555 kB  27.3 %
    false              none             cheap                                       2  1.48 MB  315 kB  35.5 %
    false              none             ["full", "full", "none", "none"]            4  1.76 MB   39 kB  41.6 %
    false              none             full                                        4  1.35 MB  451 kB  43.7 %
  
  base.toml fits as it is written
  $ triax fit base.toml --memory 1500kB $stages --set 'memory.recompute=["full", "full", "none", "none"]' --set 'memory.recompute_layers=[1, 2, 1, 1]' | sed -n '7p;$p'
    false              none             ["full", "full", "none", "none"], [1, 2, 1, 1] blocks            2  1.11 MB   390 kB  26.4 %
  recompute = "full"
  $ triax fit base.toml --memory 1800kB $stages --set 'memory.recompute=["full", "full", "none", "none"]' --json | sed -n '/"written"/,/micro/p'
    "written": {
      "settings": {
        "parallel.sequence": false,
        "optimizer.shard": "none",
        "memory.recompute": [
          "full",
          "full",
          "none",
          "none"
        ],
        "memory.recompute_layers": 1,
        "batch.micro": 4

With sched-breadth-first and many chunks, `gradients` saves memory:

  $ triax fit base.toml --memory 1GB --set schedule.plugin=sched-breadth-first --set parallel.chunks=8 --set parallel.data=4 --set model.layers=16 --set batch.micro=1
  as written: parallel.sequence = false, optimizer.shard = "none", memory.recompute = "none", batch.micro = 1; peak: rank 0, 4.74 MB
  
  the largest batch.micro in --memory 1GB; bubble: mean of the ranks, estimated from FLOPs without transfers
    parallel.sequence  optimizer.shard  memory.recompute  batch.micro    needs    free  bubble
    false              none             none                        1  4.74 MB  995 MB       -
    false              states           none                        1  3.46 MB  997 MB       -
    false              gradients        none                        1  3.08 MB  997 MB       -
    false              parameters       none                        1  2.71 MB  997 MB       -
    false              none             cheap                       1  4.37 MB  996 MB       -
    false              states           cheap                       1  3.09 MB  997 MB       -
    false              gradients        cheap                       1  2.71 MB  997 MB       -
    false              parameters       cheap                       1  2.34 MB  998 MB       -
    false              none             full                        1   3.8 MB  996 MB       -
    false              states           full                        1  2.52 MB  997 MB       -
    false              gradients        full                        1  2.14 MB  998 MB       -
    false              parameters       full                        1  1.78 MB  998 MB       -
  
  base.toml fits as it is written

As JSON:

  $ triax fit base.toml --memory 1kB --json 2> /dev/null | tr -d ' \n' | grep -o '"keys":\[[^]]*]'
  "keys":["--memory"]
  $ triax fit base.toml --memory 1100kB --set batch.micro=4 --json
  {
    "file": "base.toml",
    "memory_bytes": 1100000,
    "errors": [],
    "written": {
      "settings": {
        "parallel.sequence": false,
        "optimizer.shard": "none",
        "memory.recompute": "none",
        "memory.recompute_layers": 1,
        "batch.micro": 4
      },
      "bytes": 1554176,
      "rank": 0,
      "fits": false,
      "mean_bubble": null
    },
    "plans": [
      {
        "settings": {
          "parallel.sequence": false,
          "optimizer.shard": "none",
          "memory.recompute": "none",
          "memory.recompute_layers": 1,
          "batch.micro": 1
        },
        "bytes": 1424384,
        "rank": 0,
        "fits": false,
        "mean_bubble": null
      },
      {
        "settings": {
          "parallel.sequence": false,
          "optimizer.shard": "none",
          "memory.recompute": "cheap",
          "memory.recompute_layers": 1,
          "batch.micro": 1
        },
        "bytes": 1252352,
        "rank": 0,
        "fits": false,
        "mean_bubble": null
      },
      {
        "settings": {
          "parallel.sequence": false,
          "optimizer.shard": "none",
          "memory.recompute": "full",
          "memory.recompute_layers": 1,
          "batch.micro": 2
        },
        "bytes": 1098496,
        "rank": 0,
        "fits": true,
        "mean_bubble": null
      }
    ],
    "left_out": [],
    "changes": {
      "memory.recompute": "full",
      "batch.micro": 2
    }
  }

Nothing fits:

  $ triax fit run.toml --memory 10GiB --set parallel.sequence=true --set optimizer.shard=states
  --memory 10GiB (10.7 GB): no setting fits: rank 0 needs 14.3 GB with parallel.sequence = true, optimizer.shard = "states", memory.recompute = "full", memory.recompute_layers = 0, batch.micro = 1
    use a larger parallel.tensor or parallel.pipeline: they divide weights, gradients and optimizer state
  [1]
  $ triax fit base.toml --memory 1B --json 2> out.txt | grep changes
    "changes": null

Errors:

  $ triax fit base.toml
  triax: --memory is required
    see: triax fit --help
  [2]
  $ triax fit base.toml --memory 80
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "80"
    see: triax fit --help
  [2]
  $ triax fit base.toml --memory 1GB --set model.heads=5
  base.toml:4:10: model.hidden = 32 is not divisible by model.heads = 5: each head has hidden / heads columns
    model.heads is set by --set
    use hidden 30 or 35, or heads 4 or 8
  [2]
  $ triax fit base.toml --memory 1GB --set train.steps=ten
  --set: train.steps = ten is not an integer
    write an integer (1 and more)
  [2]
  $ triax fit base.toml --memory 1GB --set "plugins.path=[\"$BUILD/tests/conformance/plugins\"]" --set model.plugin=model-planted --set model.layers=2 --set model.hidden=32 --set model.heads=2 --set model.sequence=32 --set model.fault=crash 2>&1 | grep -o 'model-planted.*crashed'
  model-planted": supports() crashed

A model whose cheap recomputation fails has no row of it, if the run does not have it:

  $ fit_planted() { triax fit base.toml --memory 1GB --set "plugins.path=[\"$BUILD/tests/conformance/plugins\"]" --set model.plugin=model-planted --set model.layers=2 --set model.hidden=32 --set model.heads=2 --set model.sequence=32 --set "model.fault=$1" > out.txt 2> /dev/null; echo "$1: status $?, $(grep -c ' cheap ' out.txt) of cheap"; grep -o 'left out, because a plugin failed: model.plugin "model-planted"' out.txt; }
  $ fit_planted none; fit_planted recompute_throws; fit_planted recompute_aborts
  none: status 0, 1 of cheap
  recompute_throws: status 0, 0 of cheap
  left out, because a plugin failed: model.plugin "model-planted"
  recompute_aborts: status 0, 0 of cheap
  left out, because a plugin failed: model.plugin "model-planted"
