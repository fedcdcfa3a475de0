# SPDX-License-Identifier: Apache-2.0

# triax check: memory of a device

  $ . "$TESTDIR/setup"

  $ triax check base.toml --no-device --set parallel.data=2 --memory 1GiB | grep '^peak memory:'
  peak memory: rank 0 and 1 other rank, 1.1 MB each; each fits in --memory 1GiB, 1.07 GB free
  $ triax check base.toml --no-device --set parallel.data=2 --memory 100KiB
  --memory 100KiB: rank 0 needs 1.1 MB, 996 kB too much; largest: activations 455 kB, optimizer state 282 kB, gradients 190 kB; 2 ranks do not fit
    use memory.recompute = "full", a smaller batch.micro, optimizer.shard = "states", or a larger parallel.tensor or parallel.pipeline; "triax fit RUN.toml --memory 100KiB", with the same --set, lists what fits
  [2]
  $ triax check base.toml --no-device --memory 100KiB --json 2> /dev/null | tr -d ' \n' | grep -o '"keys":\[[^]]*]'
  "keys":["--memory"]
  $ triax check base.toml --no-device --set parallel.data=4 --set batch.micro=1 --memory 100KiB
  --memory 100KiB: rank 0 needs 872 kB, 770 kB too much; largest: optimizer state 282 kB, activations 229 kB, gradients 190 kB; 4 ranks do not fit
    use optimizer.shard = "states", which shards optimizer state over the data ranks, or a larger parallel.tensor or parallel.pipeline, which divide weights and gradients too; "triax fit RUN.toml --memory 100KiB", with the same --set, lists what fits
  [2]

Data ranks that shard the optimizer's state, and gradients that no schedule with one stage per rank can shard:

  $ triax check base.toml --no-device --set parallel.data=2 --set optimizer.shard=states --memory 1GiB | grep '^peak memory:'
  peak memory: rank 0 and 1 other rank, 965 kB each; each fits in --memory 1GiB, 1.07 GB free
  $ triax check base.toml --no-device --set parallel.data=2 --set optimizer.shard=gradients | grep '^note:'
  note: optimizer.shard = "gradients" needs as much memory as "states", because each rank accumulates gradients of all its layers until the end of a step; it sends less. A schedule whose stages accumulate one after another needs less: sched-breadth-first with parallel.chunks of 3 or more
  $ triax check base.toml --no-device --set parallel.data=2 --set optimizer.shard=parameters | grep '^note:'
  note: optimizer.shard = "parameters" needs as much memory for weights as "gradients", or more, because each rank has memory for the gathered weights of its only stage (optimizer.prefetch = 1), and for its part of the weights of all its stages. More stages per rank need less: parallel.chunks, best with sched-breadth-first
  $ triax check base.toml --no-device --set parallel.data=2 --set optimizer.shard=parameters --set model.layers=8 \
  >   --set parallel.chunks=4 --set optimizer.prefetch=0 --set schedule.plugin=sched-breadth-first | grep '^note:'
  [1]
  $ triax check base.toml --no-device --set optimizer.shard=states | grep '^note:'
  note: optimizer.shard = "states" has no effect with parallel.data = 1
  $ triax check base.toml --no-device --set memory.recompute_layers=2 | grep '^note:'
  note: memory.recompute_layers = 2 has no effect with memory.recompute = "none"

Recomputation of one of two stages, and a list that has not one value for each stage:

  $ triax check base.toml --no-device --set parallel.pipeline=2 --set 'memory.recompute=["full", "none"]' --set 'memory.recompute_layers=[1, 2]' | grep -E ' recompute|^activations'
    recompute              = ["full", "none"]     # --set
    recompute_layers       = [1, 2]               # --set
  activations of rank 1: 562 kB = 2 microbatches x (1 block x 133 kB + 1 head x 99.3 kB) + 81.9 kB of workspace + 2 x 8.19 kB of transfers
  $ triax check base.toml --no-device --set memory.recompute=full --set 'memory.recompute_layers=[1, 1]'
  --set: memory.recompute_layers lists values for 2 stages, but parallel.pipeline = 1 x parallel.chunks = 1 makes 1
    parallel.pipeline = 1 is the default
    parallel.chunks = 1 is the default
    list one value for each stage, or write one value for all
  [2]
  $ triax check base.toml --no-device --set memory.recompute=selective
  --set: memory.recompute must be one of none, cheap, full or optimal, got "selective"
    attention scores are always recomputed: write none, cheap or optimal
  [2]
  $ triax check base.toml --no-device --set parallel.pipeline=2 --set 'memory.recompute=["full", "some"]'
  --set: memory.recompute must be one of none, cheap, full or optimal, got "some"
  [2]

Boundaries that the tensor ranks have divided already:

  $ triax check base.toml --no-device --set parallel.pipeline=2 --set parallel.tensor=2 --set parallel.sequence=true --set parallel.scatter_gather=true
  --set: parallel.scatter_gather cannot be combined with parallel.sequence: the boundaries are already divided
    parallel.sequence is set by --set
    set parallel.scatter_gather = false
  [2]

Inputs of recomputed blocks that the tensor ranks divide, and where that saves nothing:

  $ parts='--no-device --set parallel.tensor=2 --set memory.recompute=full'
  $ triax check base.toml $parts | grep -E '^activations|^communication'
  activations of rank 0: 311 kB = 2 microbatches x (1 head x 66.6 kB + 2 blocks x 8.19 kB) + 145 kB of workspace
  communication of a step: a rank sends at most 198 kB over tensor (rank 0); all ranks send 397 kB
  $ triax check base.toml $parts --set memory.partition_activations=true | grep -E '^activations|^communication|^note'
  activations of rank 0: 302 kB = 2 microbatches x (1 head x 66.6 kB + 2 blocks x 4.1 kB) + 153 kB of workspace
  communication of a step: a rank sends at most 215 kB over tensor (rank 0); all ranks send 430 kB
  $ triax check base.toml $parts --set memory.partition_activations=true --set parallel.sequence=true | grep '^note:'
  note: memory.partition_activations = true saves nothing with parallel.sequence = true: each tensor rank keeps its positions only
  $ triax check base.toml $parts --set memory.partition_activations=true --set parallel.tensor=1 | grep '^note:'
  note: memory.partition_activations = true has no effect with parallel.tensor = 1
  $ triax check base.toml $parts --set memory.partition_activations=true --set memory.recompute=none | grep '^note:'
  note: memory.partition_activations = true has no effect with memory.recompute = "none"

Inputs on the host, which is no other memory where kernels compute on the CPU:

  $ triax check base.toml --no-device --set memory.recompute=full --set memory.offload_activations=true | grep '^note:'
  note: memory.offload_activations = true has no effect with kernels.plugin "kernels-reference": the inputs of recomputed blocks are in the memory of the host
  $ triax check base.toml --no-device --set memory.offload_activations=true | grep '^note:'
  note: memory.offload_activations = true has no effect with memory.recompute = "none"
  $ echo "not a library" > kernels-fused.so
  $ on_gpu="--no-device --set kernels.plugin=kernels-fused --set plugins.path=[\".\"] --set memory.recompute=full --set memory.offload_activations=true"
  $ triax check base.toml $on_gpu | grep '^note:'
  [1]
  $ triax check base.toml $on_gpu --json | sed -n '/"host_memory_bytes"/,/}/p' | grep -o '"activations": [0-9]*'
  "activations": 32768

A budget for activations, in which everything is kept, one that is too small, and the least:

  $ within() { triax check base.toml --no-device --set memory.recompute=optimal --set memory.activation_budget="$@"; }
  $ within 1GB | grep '^recomputation'
  recomputation of stage 0: 2 blocks keep all; 0.0 % of its blocks' forward by the cost model
  $ within 1B
  --set: memory.activation_budget = "1B": the activations of rank 0 need 445952 B (446 kB) at least
    use memory.activation_budget = "445952 B" or more, a smaller batch.micro, or memory.recompute = "full" with memory.recompute_layers = 0
  [2]
  $ within "445952 B" | grep -E '^activations|^recomputation'
  activations of rank 0: 446 kB = 2 microbatches x (1 head x 99.3 kB + 2 blocks x 8.19 kB) + 215 kB of workspace
  recomputation of stage 0: 2 blocks recompute attention.norm, attention.qkv, attention, attention.projection, mlp.up; 81.2 % of its blocks' forward by the cost model
  $ within "445952 B" --json | sed -n '/"recomputation"/,/^  ]/p' | grep -v forward_fraction
    "recomputation": [
      {
        "stage": 0,
        "blocks": [
          {
            "count": 2,
            "recomputed_steps": [
              "attention.norm",
              "attention.qkv",
              "attention",
              "attention.projection",
              "mlp.up"
            ]
          }
        ],
      }
    ],
  $ triax train base.toml --set train.steps=1 --set run.dir=within --set memory.recompute=optimal --set memory.activation_budget="445952 B" 2>&1 | grep -o 'recomputation of.*'
  recomputation of stage 0: 2 blocks recompute attention.norm, attention.qkv, attention, attention.projection, mlp.up; 81.2 % of its blocks' forward by the cost model
  $ within 1GB --memory 100KiB 2>&1 | grep -o 'use a smaller.*, a smaller batch.micro'
  use a smaller memory.activation_budget, memory.recompute = "full", a smaller batch.micro
  $ triax check base.toml --no-device --set memory.activation_budget=1GB | grep '^note:'
  note: memory.activation_budget = "1GB" has no effect with memory.recompute = "none"

A size that is not one:

  $ for size in 80 GiB 0GiB -1GiB 80gib nanGB 1e30GB 80GiBs ''; do
  >   triax check base.toml --no-device --memory "$size" || echo "[$?]"
  > done
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "80"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "GiB"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "0GiB"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "-1GiB"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "80gib"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "nanGB"
    see: triax check --help
  [2]
  triax: --memory must be at most 1000 PB, got "1e30GB"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got "80GiBs"
    see: triax check --help
  [2]
  triax: --memory must be a size above 0 with a unit (such as 80GiB), got ""
    see: triax check --help
  [2]

A model that is larger than the machine is refused, unless the machine is left out:

  $ huge="--set model.hidden=64000 --set model.layers=300"
  $ triax check base.toml $huge 2>&1 > /dev/null | sed 's/this machine has .*/this machine has .../'
  the run needs 236 TB of memory, but this machine has ...
    use a smaller batch.micro or model; triax check --no-device skips the checks of this machine
  $ triax check base.toml $huge --no-device > /dev/null

All ranks together have to fit the machine:

  $ large="--set model.hidden=512 --set batch.micro=1"
  $ triax check base.toml $large > /dev/null
  $ triax check base.toml $large --set batch.global=65536 --set parallel.data=65536 2>&1 > /dev/null |
  >   sed 's/this machine has .*/this machine has .../'
  the run needs 7.17 TB of memory for its 65536 ranks, but this machine has ...
    use a smaller batch.micro or model; triax check --no-device skips the checks of this machine
