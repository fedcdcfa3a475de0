# SPDX-License-Identifier: Apache-2.0

# The settings under which a run fits into memory

The run of `examples/gpt3-175b.toml`, and files in place of the plugins of GPUs, as in a build without CUDA:

  $ . "$TESTDIR/setup"
  $ for plugin in comm-nccl kernels-fused; do echo "not a library" > $plugin.so; done
  $ cat > run.toml << END
  > include = ["$SOURCE/examples/gpt3-175b.toml"]
  > [plugins]
  > path = ["."]
  > END

It fits as it is written, or with larger microbatches:

  $ triax fit run.toml --memory 80GiB
  as written: batch.micro = 1, parallel.sequence = false, memory.recompute = "none": rank 0 needs most, 61.8 GB
  
  the largest batch.micro in --memory 80GiB; idle is the mean of the ranks by FLOPs, without transfers
    parallel.sequence  memory.recompute  batch.micro    needs     free    idle
    false              none                        1  61.8 GB  24.1 GB  13.3 %
    true               none                        4  75.1 GB  10.8 GB  33.1 %
    false              full                       16  84.2 GB  1.66 GB  65.0 %
    true               full                       48  73.7 GB  12.2 GB  84.6 %
  
  run.toml fits as it is written

It fits with another setting. `triax check` accepts the run with it:

  $ triax fit run.toml --memory 55GB
  as written: batch.micro = 1, parallel.sequence = false, memory.recompute = "none": rank 0 needs most, 61.8 GB
  
  the largest batch.micro in --memory 55GB; idle is the mean of the ranks by FLOPs, without transfers
    parallel.sequence  memory.recompute  batch.micro    needs  free            idle
    false              none                        1  61.8 GB  does not fit  13.3 %
    true               none                        2  54.9 GB  58.2 MB       21.1 %
    false              full                        3  51.3 GB  3.67 GB       27.1 %
    true               full                       16  50.7 GB  4.28 GB       65.0 %
  
  to fit, set in run.toml:
  
  [parallel]
  sequence = true
  scatter_gather = false
  $ triax check run.toml --no-device --memory 55GB > out.txt 2>&1; echo $?
  2
  $ triax check run.toml --no-device --memory 55GB --set parallel.sequence=true --set parallel.scatter_gather=false > out.txt; echo $?
  0

With several, and a smaller microbatch, if no others suffice:

  $ triax fit run.toml --memory 60GB --set batch.micro=4 --set memory.recompute=full --set parallel.sequence=true --set parallel.scatter_gather=false | tail -5
    parallel.sequence  memory.recompute  batch.micro    needs     free    idle
    true               none                        2  54.9 GB  5.06 GB  21.1 %
    true               full                       24  56.3 GB  3.74 GB  73.5 %
  
  run.toml fits as it is written
  $ triax fit base.toml --memory 1100kB --set batch.micro=4 | tail -7
  to fit, set in base.toml:
  
  [memory]
  recompute = "full"
  
  [batch]
  micro = 2
  $ triax check base.toml --memory 1100kB --set batch.micro=4 --set memory.recompute=full 2>&1 | grep -c 'rank 0 needs'
  1

A schedule that restricts the number of microbatches leaves some out:

  $ triax fit base.toml --memory 1GB --set schedule.plugin=sched-interleaved --set parallel.chunks=2 --set parallel.pipeline=2 --set model.layers=4 --set batch.global=12 | sed -n '3,6p'
  the largest batch.micro in --memory 1GB; idle is the mean of the ranks by FLOPs, without transfers
    parallel.sequence  memory.recompute  batch.micro    needs    free    idle
    false              none                        6  2.69 MB  997 MB  25.6 %
    false              full                        6  1.83 MB  998 MB  24.4 %

As JSON:

  $ triax fit base.toml --memory 1100kB --set batch.micro=4 --json
  {
    "file": "base.toml",
    "memory_bytes": 1100000,
    "errors": [],
    "written": {
      "settings": {
        "parallel.sequence": false,
        "memory.recompute": "none",
        "batch.micro": 4
      },
      "bytes": 1554176,
      "rank": 0,
      "fits": false,
      "idle": null
    },
    "plans": [
      {
        "settings": {
          "parallel.sequence": false,
          "memory.recompute": "none",
          "batch.micro": 1
        },
        "bytes": 1424384,
        "rank": 0,
        "fits": false,
        "idle": null
      },
      {
        "settings": {
          "parallel.sequence": false,
          "memory.recompute": "full",
          "batch.micro": 2
        },
        "bytes": 1098496,
        "rank": 0,
        "fits": true,
        "idle": null
      }
    ],
    "changes": {
      "memory.recompute": "full",
      "batch.micro": 2
    }
  }

Nothing fits:

  $ triax fit run.toml --memory 10GiB
  --memory 10GiB (10.7 GB): no setting fits: rank 0 needs 36.1 GB with batch.micro = 1, parallel.sequence = true and memory.recompute = "full"
    use a larger parallel.tensor or parallel.pipeline: they divide weights, gradients and optimizer state
  [1]
  $ triax fit base.toml --memory 1B --json 2> out.txt | grep changes
    "changes": null

Errors:

  $ triax fit base.toml
  triax: --memory is required
    more: triax fit --help
  [2]
  $ triax fit base.toml --memory 80
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "80"
    more: triax fit --help
  [2]
  $ triax fit base.toml --memory 1GB --set model.heads=5
  base.toml:4:10: model.hidden = 32 is not divisible by model.heads = 5: each head has hidden / heads columns
    model.heads is set by --set
    use hidden 30 or 35, or heads 4 or 8
  [2]
  $ triax fit base.toml --memory 1GB --set train.steps=ten
  --set: train.steps = ten is not an integer
  [2]
  $ triax fit base.toml --memory 1GB --set "plugins.path=[\"$BUILD/tests/conformance/plugins\"]" --set model.plugin=model-planted --set model.layers=2 --set model.hidden=32 --set model.heads=2 --set model.sequence=32 --set model.fault=crash 2>&1 | grep -o 'model-planted.*crashed'
  model-planted": supports() crashed
