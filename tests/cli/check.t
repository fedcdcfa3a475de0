# SPDX-License-Identifier: Apache-2.0

# triax check

  $ . "$TESTDIR/setup"

Values with where they come from, plugins, layout, memory, data and model of a run:

  $ triax check base.toml --set train.steps=7 | tr -s ' '
  [run]
   dir = "{folder}/runs/base" # default
  [model]
   plugin = "model-gpt" # base.toml:2:10
   vocab = 257 # derived: from data.path's tokenizer file (.json)
   layers = 2 # base.toml:3:10
   hidden = 32 # base.toml:4:10
   heads = 2 # base.toml:5:9
   sequence = 32 # base.toml:6:12
   inner = 0 # default
   norm_eps = 1e-05 # default
   dropout = 0.0 # default
  [parallel]
   pipeline = 1 # default
   tensor = 1 # default
   data = 1 # derived: 1; if torchrun, mpirun or srun starts the ranks: their number / (pipeline x tensor)
   chunks = 1 # default
   split = [] # default
   split_cluster = "" # default
   scatter_gather = false # default
   sequence = false # default
  [batch]
   global = 4 # base.toml:9:10
   micro = 2 # base.toml:10:9
  [schedule]
   plugin = "sched-gpipe" # base.toml:13:10
  [comm]
   plugin = "comm-local" # base.toml:16:10
  [kernels]
   plugin = "kernels-reference" # base.toml:19:10
  [memory]
   recompute = "none" # default
   activation_budget = "" # default
   recompute_layers = 1 # default
   partition_activations = false # default
   offload_activations = false # default
   offload = "none" # default
   offload_path = "" # default
   offload_buffer_bytes = 8388608 # default
   offload_gradients = "fp32" # default
   offload_kernels = "kernels-cpu" # default
   offload_delayed_update = false # default
   offload_warmup_steps = 40 # default
  [optimizer]
   plugin = "optim-adamw" # base.toml:22:10
   lr = 0.003 # base.toml:23:6
   weight_decay = 0.1 # default
   shard = "none" # default
   prefetch = 1 # default
   beta1 = 0.9 # default
   beta2 = 0.95 # default
   eps = 1e-08 # default
  [lr]
   decay = "constant" # default
   warmup_steps = 0 # default
   min = 0.0 # default
  [train]
   steps = 7 # --set
   stop_at = 0 # default
   time_limit = "" # default
   seed = 1 # default
   clip_grad = 1.0 # default
   nonfinite = "stop" # default
   max_rewinds = 3 # default
   precision = "fp32" # default
   cuda_graph = false # default
   stall_timeout_s = 600.0 # default
  [data]
   path = "{folder}/text" # base.toml:29:8
   paths = [] # default
   weights = [] # default
   validation = "" # default
   validation_paths = [] # default
   validation_weights = [] # default
  [eval]
   every = 0 # default
   batches = 0 # default
   sample = "" # default
   sample_tokens = 64 # default
   sample_temperature = 0.8 # default
  [checkpoint]
   every = 0 # default
   keep = 2 # default
   keep_every = 0 # default
   async = true # default
   resume = "auto" # default
   from = "" # default
   load = "all" # default
   changed_data = "refuse" # default
  [log]
   metrics = "{folder}/runs/base/metrics.jsonl" # default
   every = 1 # default
   level = "info" # default
   timeline = 0 # default
   tensorboard = false # default
  [launch]
   interface = "" # default
   port = 0 # default
   start_timeout_s = 300.0 # default
   token_file = "" # default
  [plugins]
   path = [] # default
  
  plugins
   table plugin version file
   model model-gpt {version} {plugins}/model-gpt.so
   schedule sched-gpipe {version} {plugins}/sched-gpipe.so
   comm comm-local {version} {plugins}/comm-local.so
   kernels kernels-reference {version} {plugins}/kernels-reference.so
   optimizer optim-adamw {version} {plugins}/optim-adamw.so
  
  layout: pipeline 1 x data 1 x tensor 1 = 1 rank, 1 CPU thread
   rank pipeline data tensor layers
   0 0 0 0 embedding, block 0-1, head
  
  memory of each rank
   rank weights gradients optimizer state activations batches scratch total
   0 149 kB 190 kB 282 kB 819 kB 6.4 kB 16.9 kB 1.46 MB
  
  peak memory: rank 0, 1.46 MB
  activations of rank 0: 819 kB = 2 microbatches x (2 blocks x 133 kB + 1 head x 99.3 kB) + 90.1 kB of workspace
  
  data
   corpus for share tokens epochs
   {folder}/text training 100.00 % 1,001 0.93
  
  model: 34,720 parameters, 139 kB of weights in fp32
  step: 4 sequences = 1 data rank x 2 microbatches of 2 sequences
  
  base.toml: ready to train

The threads are those that the kernel set uses, also in the header of a run:

  $ threads="--set kernels.plugin=kernels-cpu --set kernels.threads=65"
  $ triax check base.toml $threads | grep -o '65 CPU threads'
  65 CPU threads
  $ triax train base.toml $threads --set train.steps=1 --set run.dir=threads 2>&1 | grep -o '65 CPU threads'
  65 CPU threads

Data that are not here, without the vocabulary:

  $ triax check base.toml --no-device --set data.path=elsewhere
  --set: data.path: {folder}/elsewhere.bin does not exist
    prepare it with: triax data prepare --input FILE... --output {folder}/elsewhere --tokenizer byte
    or set model.vocab, which otherwise comes from the tokenizer file, to check the run without data
  [2]

## Many ranks

Of many ranks, the summary comes first:

  $ many="--no-device --set model.layers=24 --set parallel.pipeline=24 --set batch.global=48 --set batch.micro=1"
  $ cores='s/ranks as threads of this process.*/ranks .../'
  $ triax check base.toml $many | sed "$cores"
  
  layout: pipeline 24 x data 1 x tensor 1 = 24 ranks ...
  
  model: 314,208 parameters, 1.26 MB of weights in fp32
  step: 48 sequences = 1 data rank x 48 microbatches of 1 sequence
  
  peak memory: rank 23, 6.14 MB
  activations of rank 23: 5.66 MB = 48 microbatches x (1 block x 66.8 kB + 1 head x 50.2 kB) + 41 kB of workspace + 2 x 4.1 kB of transfers
  communication of a step: a rank sends at most 405 kB over pipeline (rank 1); all ranks send 9.41 MB
  per rank: parameters 24 k (stage 0) to 12.7 k (stage 1), FLOPs of a microbatch 4.33 M (stage 23) to 2.75 M (stage 0)
  uneven stages: the step is 35.5 % longer than with equal stages (mean bubble 50.1 % instead of 32.4 %; estimated from FLOPs, without transfers); try parallel.split = "auto"
  
    ranks  first rank  pipeline     layers            weights  gradients  optimizer state  activations  batches  scratch    total
        1          23  23           block, head       93.2 kB     134 kB           170 kB      5.66 MB  61.7 kB  16.6 kB  6.14 MB
        1           0  0            embedding, block  96.8 kB     138 kB           178 kB      3.26 MB  61.7 kB  16.6 kB  3.75 MB
       22           1  1, 2 ... 22  block             51.7 kB    51.7 kB           103 kB      3.26 MB    31 kB  16.6 kB  3.52 MB
  
  --all prints every value, the plugins, the data, and the memory of all 24 ranks
  
  base.toml: configuration is valid; the devices and memory of this machine were not checked
  $ triax check base.toml $many --set memory.recompute=full | grep '^uneven'
  uneven stages: the step is 28.7 % longer than with equal stages (mean bubble 43.1 % instead of 26.8 %; estimated from FLOPs, without transfers); try parallel.split = "auto"
  $ triax check base.toml $many --all | sed "$cores" | grep -E '^\[model\]|^peak memory:|  block 11$'
  [model]
      11        11     0       0  block 11
  peak memory: rank 23, 6.14 MB

Of data and tensor ranks, those with the same layers share a line:

  $ triax check base.toml --set parallel.data=2 --set parallel.tensor=2 | sed -n "$cores; /^layout/,/^memory of/p"
  layout: pipeline 1 x data 2 x tensor 2 = 4 ranks ...
    rank  pipeline  data  tensor  layers
    0, 2         0   0-1       0  embedding, block 0-1, head
    1, 3         0   0-1       1  embedding, block 0-1, head
  
  memory of each rank; all 4 ranks: 2.59 MB

## Threads

  $ triax check base.toml --set kernels.plugin=kernels-cpu --set kernels.threads=65 | grep -o '^layout.* CPU threads'
  layout: pipeline 1 x data 1 x tensor 1 = 1 rank, 65 CPU threads

Kernels that do not compute on the CPU have no CPU threads:

  $ fixtures="$BUILD/tests/train/plugins"; [ -d "$fixtures" ] || exit 80
  $ triax check base.toml --no-device --set kernels.plugin=kernels-elsewhere --set "plugins.path=[\"$fixtures\"]" |
  >   grep '^layout'
  layout: pipeline 1 x data 1 x tensor 1 = 1 rank, computing on a GPU

## Notes

A run that ends in its warm-up:

  $ triax check base.toml --set lr.warmup_steps=51 | sed -n '/^note/,$p'
  note: lr.warmup_steps = 51 is more than train.steps = 50: the run ends during the warm-up, below optimizer.lr = 0.003
  
  base.toml: ready to train
  $ triax check base.toml --set lr.warmup_steps=50 | grep '^note'
  [1]

Keys of a plugin that an including file replaces:

  $ cat > first.toml << 'END'
  > include = ["base.toml"]
  > [optimizer]
  > beta1 = 0.8
  > END
  $ cat > next.toml << 'END'
  > include = ["first.toml"]
  > [optimizer]
  > plugin = "optim-sgd"
  > END
  $ triax check next.toml | grep -B1 beta1
  ignored, because a later file or flag chose another plugin for the table of the key
    optimizer.beta1 = 0.8 (first.toml:3:1), a key of optim-adamw

A plugin that hides one of Triax:

  $ mkdir mine
  $ cp "$BUILD/lib/triax/plugins/sched-gpipe.so" mine
  $ mine="--set schedule.plugin=sched-gpipe --set plugins.path=[\"mine\"]"
  $ triax check base.toml $mine | grep '^note'
  note: schedule.plugin "sched-gpipe" is {folder}/mine/sched-gpipe.so, which shadows {plugins}/sched-gpipe.so
  $ triax train base.toml --set train.steps=1 $mine 2>&1 | grep -o 'schedule.plugin.*\|sched-gpipe (.*),'
  sched-gpipe (mine/sched-gpipe.so),
  schedule.plugin "sched-gpipe" is {folder}/mine/sched-gpipe.so, which shadows {plugins}/sched-gpipe.so
  schedule.plugin=sched-gpipe --set 'plugins.path=["mine"]' --set train.steps=2
  $ triax simulate base.toml --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0 $mine > /dev/null
  note: schedule.plugin "sched-gpipe" is {folder}/mine/sched-gpipe.so, which shadows {plugins}/sched-gpipe.so

## Plugins that crash

  $ crashing="--set schedule.plugin=sched-crashing --set schedule.where=create --set plugins.path=[\"$fixtures\"]"
  $ triax check base.toml $crashing > /dev/null
  --set: schedule.plugin "sched-crashing": its constructor crashed with SIGSEGV (Segmentation fault), file {fixtures}/sched-crashing.so
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/sched-crashing.so
  [2]
  $ triax train base.toml $crashing
  --set: schedule.plugin "sched-crashing": its constructor crashed with SIGSEGV (Segmentation fault), file {fixtures}/sched-crashing.so
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/sched-crashing.so
  [2]
  $ triax schedule base.toml $crashing
  --set: schedule.plugin "sched-crashing": its constructor crashed with SIGSEGV (Segmentation fault), file {fixtures}/sched-crashing.so
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {fixtures}/sched-crashing.so
  [2]

In a call after the constructor:

  $ triax schedule base.toml ${crashing/create/rows}
  --set: schedule.plugin "sched-crashing": rows() crashed with SIGSEGV (Segmentation fault), file {fixtures}/sched-crashing.so
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: docs/plugins/writing.md has the gdb command for calls in a child process
  [2]

## Text that is not for a terminal

Control characters of a file are escaped:

  $ cat > odd.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > "a\u001B[2J\nb" = 1
  > [schedule]
  > plugin = "x\r"
  > END
  $ triax check odd.toml
  odd.toml:3:1: [train] has no key "a\u001B[2J\u000Ab"
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  odd.toml:5:10: schedule.plugin "x\u000D" was not found
    looked in: {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]

With --json, an error has its code, its keys, and the file, line and column of the first key:

  $ sed 's/^heads = .*/heads = 3/' base.toml > run.toml
  $ triax check run.toml --json 2> /dev/null | sed -n '/"errors"/,/^  ]/p'
    "errors": [
      {
        "code": "not-divisible",
        "keys": [
          "model.hidden",
          "model.heads"
        ],
        "file": "run.toml",
        "line": 4,
        "column": 10,
        "message": "model.hidden = 32 is not divisible by model.heads = 3: each head has hidden / heads columns",
        "hint": "use hidden 30 or 33, or heads 2 or 4"
      }
    ],

## Input and output

A run can come through a pipe:

  $ triax check /dev/stdin < <(cat base.toml) | grep -E 'layers  |runs/pipe"|ready'
    dir                    = "{folder}/runs/pipe"  # default
    layers                 = 2                    # /dev/stdin:3:10
    recompute_layers       = 1                    # default
  /dev/stdin: ready to train
  $ triax simulate /dev/stdin --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0 < <(cat base.toml) > /dev/null
  $ triax train /dev/stdin --set train.steps=1 < <(cat base.toml) 2>&1 | grep -o 'triax train runs/pipe.*'
  triax train runs/pipe/resolved.toml --set train.steps=2

A run whose ranks are processes cannot come through a pipe, because each reads the file:

  $ triax train /dev/stdin --set parallel.data=2 --set comm.plugin=comm-processes --set "plugins.path=[\"$fixtures\"]" \
  >   < <(cat base.toml)
  /dev/stdin: is standard input or a pipe, but each of the 2 rank processes reads the TOML itself
    write it to a file, or use comm-local, whose ranks are threads of this process
  [2]

A result that cannot be written is a failure:

  $ triax check base.toml > /dev/full
  standard output could not be written
  [1]
  $ triax check base.toml --json 2> /dev/null > /dev/full
  [1]
