# SPDX-License-Identifier: Apache-2.0

# The fastest layout of a run

  $ cluster=$SOURCE/clusters/a100-dgx.toml

  $ cat > run.toml <<'END'
  > [model]
  > plugin = "model-gpt"
  > layers = 4
  > hidden = 32
  > heads = 4
  > sequence = 16
  > vocab = 257
  > [batch]
  > global = 8
  > [schedule]
  > plugin = "sched-1f1b"
  > [comm]
  > plugin = "comm-local"
  > [kernels]
  > plugin = "kernels-reference"
  > [optimizer]
  > plugin = "optim-adamw"
  > lr = 1e-3
  > [train]
  > steps = 2
  > [data]
  > path = "tokens"
  > END
  $ triax plan run.toml --cluster $cluster --gpus 4 --top 3 --tokens 1e9 > planned
  $ sed -n '/^  plan/,$p' planned | head -5
    plan       step  tokens/s   days   memory  p  t  d  v  b  schedule     recompute  sequence  shard  split
       1  0.03282 s     3.9 k  2.968  1.21 MB  4  1  1  1  8  sched-zb-h1  none       false     none   even
       2  0.03282 s     3.9 k  2.968  1.21 MB  4  1  1  1  8  sched-zb-h2  none       false     none   even
       3  0.03288 s    3.89 k  2.973  1.31 MB  4  1  1  1  8  sched-zb-h1  cheap      false     none   even
  p, t, d: pipeline, tensor and data ranks; v: chunks; b: microbatch

What the ranks of the first plan send; four of them are on one node:

  $ sed -n '/^bytes that/,/^$/p' planned
  bytes that the ranks of the first plan send in a step
    axis      largest rank, NVLink  all ranks, NVLink  largest rank, InfiniBand  all ranks, InfiniBand
    pipeline               57.9 kB             183 kB                       0 B                    0 B
  

The plan is a run that the engine accepts and trains:

  $ sed -n '/^include/,$p' planned > plan.toml; sed "s|$PWD|{folder}|" plan.toml
  include = ["{folder}/run.toml"]
  
  [parallel]
  pipeline = 4
  tensor = 1
  data = 1
  chunks = 1
  sequence = false
  
  [batch]
  micro = 8
  
  [memory]
  recompute = "none"
  
  [schedule]
  plugin = "sched-zb-h1"
  
  [optimizer]
  shard = "none"
  $ printf 'The cat sat on the mat. %.0s' $(seq 100) > text.txt; triax data prepare --input text.txt --tokenizer byte --output tokens > prepared 2>&1; echo $?
  0
  $ triax check plan.toml > checked; echo $?
  0
  $ triax train plan.toml --set run.dir=planned-run > /dev/null 2>&1; echo $?
  0

Saved in another folder, and with the keys of --set; a file may have any name:

  $ mkdir elsewhere; cp run.toml 'a "run".toml'; for file in tokens.*; do cp $file other-$file; done
  $ triax plan 'a "run".toml' --cluster $cluster --gpus 4 --top 1 --set data.path=other-tokens --set optimizer.lr=5e-4 --set batch.micro=4 --set batch.global=16 > planned; sed -n '/^include/,$p' planned > elsewhere/plan.toml; sed "s|$PWD|{folder}|" elsewhere/plan.toml
  include = ["{folder}/a \"run\".toml"]
  
  [parallel]
  pipeline = 4
  tensor = 1
  data = 1
  chunks = 1
  sequence = false
  
  [batch]
  micro = 16
  global = 16
  
  [memory]
  recompute = "none"
  
  [schedule]
  plugin = "sched-zb-h1"
  
  [optimizer]
  shard = "none"
  lr = 5e-04
  
  [data]
  path = "{folder}/other-tokens"
  $ (cd elsewhere; triax check plan.toml > checked; echo $?; triax check plan.toml | grep -c other-tokens)
  0
  2

Restricted searches, another planner, reasons and JSON:

  $ triax plan run.toml --cluster $cluster --gpus 4 --top 2 --fix pipeline=2 --fix schedule=gpipe --fix recompute=full --explain | sed -n '/^  plan/,/^$/p;/^the best/,/^$/p'
    plan       step  tokens/s  memory  p  t  d  v  b  schedule     recompute  sequence  shard      split
       1  0.03457 s     3.7 k  968 kB  2  1  2  1  4  sched-gpipe  full       false     none       even
       2  0.03461 s     3.7 k  818 kB  2  1  2  1  4  sched-gpipe  full       false     gradients  even
  p, t, d: pipeline, tensor and data ranks; v: chunks; b: microbatch
  
    plan       step  compute  imbalance  bubble  tensor  pipeline   data  optimizer   fixed
       1  0.03457 s   12.8 %      0.2 %  11.4 %   0.0 %     0.1 %  0.3 %      0.0 %  75.3 %
       2  0.03461 s   12.8 %      0.2 %  11.4 %   0.0 %     0.1 %  0.4 %      0.0 %  75.2 %
  
  the best plan with another value of a setting
    parallel.tensor: 0.03565 s, 3.1 % longer: tensor takes 0.0006361 s more; with parallel.tensor = 2, parallel.data = 1, batch.micro = 8
    parallel.data: 0.03565 s, 3.1 % longer: tensor takes 0.0006361 s more; with parallel.tensor = 2, parallel.data = 1, batch.micro = 8
    parallel.chunks: plan-sweep finds no plan with another value
    parallel.sequence: 0.03694 s, 6.9 % longer: tensor takes 0.001321 s more; with parallel.tensor = 2, parallel.data = 1, parallel.sequence = true, batch.micro = 8
    batch.micro: 0.03565 s, 3.1 % longer: tensor takes 0.0006361 s more; with parallel.tensor = 2, parallel.data = 1, batch.micro = 8
    optimizer.shard: 0.03461 s, 0.1 % longer: data takes 3.976e-05 s more; with optimizer.shard = "gradients"
    parallel.split: plan-sweep finds no plan with another value
  
  $ triax plan run.toml --cluster $cluster --gpus 4 --planner sc21 --fix tensor=2 --json | grep -v '_s"\|error\|days'
  {
    "cluster": "DGX A100",
    "gpus": 4,
    "memory_limit_bytes": 83000000000,
    "planner": "plan-sc21",
    "timed": 3,
    "stopped": false,
    "plans": [
      {
        "settings": {
          "parallel.pipeline": 1,
          "parallel.tensor": 2,
          "parallel.data": 2,
          "parallel.chunks": 1,
          "parallel.sequence": false,
          "batch.micro": 4,
          "memory.recompute": "full",
          "schedule.plugin": "sched-1f1b",
          "optimizer.shard": "none"
        },
        "parts": {
        },
        "bytes": 804352,
      },
      {
        "settings": {
          "parallel.pipeline": 1,
          "parallel.tensor": 2,
          "parallel.data": 2,
          "parallel.chunks": 1,
          "parallel.sequence": false,
          "batch.micro": 2,
          "memory.recompute": "full",
          "schedule.plugin": "sched-1f1b",
          "optimizer.shard": "none"
        },
        "parts": {
        },
        "bytes": 679424,
      },
      {
        "settings": {
          "parallel.pipeline": 1,
          "parallel.tensor": 2,
          "parallel.data": 2,
          "parallel.chunks": 1,
          "parallel.sequence": false,
          "batch.micro": 1,
          "memory.recompute": "full",
          "schedule.plugin": "sched-1f1b",
          "optimizer.shard": "none"
        },
        "parts": {
        },
        "bytes": 619008,
      }
    ],
    "traffic": {
      "tensor": {
        "rank_bytes": 181416,
        "bytes": 725664,
        "links": [
          {
            "link": "NVLink",
            "kind": "node",
            "rank_bytes": 181416,
            "bytes": 725664
          },
          {
            "link": "InfiniBand",
            "kind": "network",
            "rank_bytes": 0,
            "bytes": 0
          }
        ]
      },
      "data": {
        "rank_bytes": 158024,
        "bytes": 632096,
        "links": [
          {
            "link": "NVLink",
            "kind": "node",
            "rank_bytes": 158024,
            "bytes": 632096
          },
          {
            "link": "InfiniBand",
            "kind": "network",
            "rank_bytes": 0,
            "bytes": 0
          }
        ]
      }
    },
    "toml": "include = [\"{folder}/run.toml\"]\n\n[parallel]\npipeline = 1\ntensor = 2\ndata = 2\nchunks = 1\nsequence = false\n\n[batch]\nmicro = 4\n\n[memory]\nrecompute = \"full\"\n\n[schedule]\nplugin = \"sched-1f1b\"\n\n[optimizer]\nshard = \"none\"\n"
  }

## Refused searches

A scheduler whose rows are wrong (rank 1 begins with a backward):

  $ printf '0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n' > rows.csv
  $ triax plan run.toml --cluster $cluster --gpus 2 --set batch.global=2 --set batch.micro=1 --set parallel.pipeline=2 --set schedule.plugin=sched-file --set schedule.file=rows.csv --fix schedule=file
  plan-sweep, search(), sched-file: its schedule of p = 2, v = 1, m = 2 is invalid: rank 1, action 1, 1B0: it needs 1F0, which comes later, at action 2
    name another scheduler with --fix schedule=NAME
  [1]
  $ triax plan run.toml --cluster $cluster --gpus 2 --set batch.global=2 --set batch.micro=1 --set parallel.pipeline=2 --set schedule.plugin=sched-file --set schedule.file=rows.csv --fix schedule=1f1b > planned; echo $?
  0

  $ triax plan run.toml --cluster $cluster --gpus 4 --fix recompute=selective
  --fix recompute=selective: memory.recompute must be none, cheap or full, got "selective"
    write an allowed value, or leave --fix out
  [2]
  $ triax plan run.toml --cluster $cluster --gpus 4 --fix tensor=two --fix colour=red --fix schedule=none
  --fix tensor=two: parallel.tensor must be one of 1, 2, 4, got "two"
    write an allowed value, or leave --fix out
  --fix colour=red: "colour" is not a setting of a plan
    settings: parallel.chunks, parallel.data, batch.micro, parallel.pipeline, memory.recompute, schedule.plugin, parallel.sequence, optimizer.shard, parallel.split, parallel.tensor
  --fix schedule=none: schedule.plugin must be one of sched-1f1b, sched-breadth-first, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v, got "none"
    write an allowed value, or leave --fix out
  [2]
  $ triax plan run.toml --cluster $cluster --gpus 4 --reserve 84.9999GB
  no plan on 4 GPUs fits in 100 kB per GPU; the smallest needs 367 kB: parallel.pipeline = 1, parallel.tensor = 4, parallel.data = 1, parallel.chunks = 1, parallel.sequence = false, batch.micro = 1, memory.recompute = "full", schedule.plugin = "sched-1f1b", optimizer.shard = "none"
    use more --gpus, a cluster with more memory per device or a smaller model
  [1]
  $ triax plan run.toml --cluster $cluster --gpus 4 --reserve 85GB
  --reserve 85GB must be less than device.memory_bytes = 85 GB ({source}/clusters/a100-dgx.toml)
    use a smaller --reserve, such as 0
  [2]
  $ triax plan run.toml --cluster $cluster --gpus 1 --reserve 0 --top 1 | head -1
  1 GPU of DGX A100, batch.global = 8, 85 GB usable per GPU (--reserve 0); plan-sweep timed 12 plans
  $ triax plan run.toml --cluster $cluster --gpus 4 --fix micro=4611686018427387904 --fix chunks=2147483647 --fix data=3 --fix tensor=2 --fix parallel.tensor=4
  --fix micro=4611686018427387904: batch.micro must be one of 1, 2, 4, 8, got "4611686018427387904"
    write an allowed value, or leave --fix out
  --fix chunks=2147483647: parallel.chunks must be at most the 4 blocks of the model, got "2147483647"
    write an allowed value, or leave --fix out
  --fix data=3: parallel.data must be one of 1, 2, 4, got "3"
    write an allowed value, or leave --fix out
  --fix parallel.tensor=4: parallel.tensor is fixed already
    write --fix once for each setting
  [2]
  $ cat run.toml | triax plan /dev/stdin --cluster $cluster --gpus 4
  RUN.toml must be a file, got the pipe /dev/stdin: the printed plan includes it by path
    write the run to a file
  [2]
  $ triax plan run.toml --cluster $cluster --gpus 5 --fix data=5
  no layout of 5 GPUs fits batch.global = 8: pipeline x tensor x data must be 5, and data must divide 8
    use another --gpus, or another batch.global, or fewer --fix
  [2]
  $ triax plan run.toml --cluster $cluster --gpus 7
  the plugins of the run refuse every plan on 7 GPUs; the first is pipeline 1 x tensor 7 x data 1
    use --gpus 6 or 8, or another batch.global
  run.toml:5:9: model.heads = 4 is not divisible by parallel.tensor = 7: each tensor rank has whole heads
    parallel.tensor is set by the plan
  [1]
  $ triax plan run.toml --cluster $cluster --gpus 1000
  the plugins of the run refuse every plan on 1000 GPUs; the first is pipeline 1 x tensor 1000 x data 1
    use --gpus 128, or another batch.global
  run.toml:5:9: model.heads = 4 is not divisible by parallel.tensor = 1000: each tensor rank has whole heads
    parallel.tensor is set by the plan
  run.toml:7:9: model.vocab = 257 over parallel.tensor = 1000 leaves a tensor rank without tokens
    parallel.tensor is set by the plan
  [1]
  $ triax plan run.toml --cluster nope.toml --json 2> /dev/null
  {"errors":[{"code":"not-found","keys":["--cluster"],"file":"nope.toml","line":null,"column":null,"message":"does not exist","hint":"correct the path; examples are in clusters/"}]}
  [2]
  $ echo '[cluster' > broken.toml
  $ triax plan run.toml --cluster broken.toml --json 2> /dev/null
  {"errors":[{"code":"malformed","keys":[],"file":"broken.toml","line":1,"column":1,"message":"not valid TOML: the name of a table is not closed","hint":"write [cluster]"}]}
  [2]
  $ triax plan run.toml --cluster $cluster --gpus 1048573
  no layout of 1048573 GPUs fits batch.global = 8: pipeline x tensor x data must be 1048573, and data must divide 8
    use --gpus 1048568 or 1048576, or another batch.global
  [2]
  $ triax plan run.toml --cluster $cluster --planner sched-1f1b --gpus 2
  --planner sched-1f1b: plugin "plan-sched-1f1b" was not found
    looked in: {plugins}
    installed planners: plan-sc21, plan-sweep
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]
  $ triax plan run.toml --cluster $cluster --set parallel.data=65536 --set parallel.pipeline=65536 --set batch.global=65536
  the run's layout has 4294967296 ranks; the limit is 1048576
    name a number of GPUs with --gpus
  [2]
  $ triax plan run.toml --cluster $cluster --planner nobody --gpus 2
  --planner nobody: plugin "plan-nobody" was not found
    looked in: {plugins}
    installed planners: plan-sc21, plan-sweep
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]
  $ triax plan run.toml --cluster $cluster --predict runs.csv
  triax: RUN.toml cannot be combined with --predict
    see: triax plan --help
  [2]
  $ triax plan --cluster $cluster --predict runs.csv --set batch.micro=2
  triax: --predict cannot be combined with --set
    see: triax plan --help
  [2]

What the plugins refuse in every plan is reported before a search:

  $ triax plan run.toml --cluster $cluster --gpus 4 --set train.cuda_graph=true
  run.toml:15:10: train.cuda_graph: kernels.plugin "kernels-reference" computes on a host device, which has no CUDA graphs
    train.cuda_graph is set by --set
    leave train.cuda_graph out, or use a kernel set for GPUs
  run.toml:13:10: train.cuda_graph: comm.plugin "comm-local" for the data axis: the host advances its calls, so a CUDA graph cannot contain them
    train.cuda_graph is set by --set
    leave train.cuda_graph out, or use a communicator whose calls run on the GPU's streams
  [2]

A communicator for processes, with a run of one rank, whose plans have several:

  $ triax plan run.toml --cluster $cluster --gpus 4 --set "plugins.path=[\"$BUILD/tests/train/plugins\"]" --set comm.plugin=comm-processes --top 1 | sed -n 3,4p
    plan       step  tokens/s   memory  p  t  d  v  b  schedule     recompute  sequence  shard  split
       1  0.03282 s     3.9 k  1.21 MB  4  1  1  1  8  sched-zb-h1  none       false     none   even

Ctrl-C ends the search (this planner sends it): the best plans so far are printed, if there are any.

  $ wrong="--gpus 4 --planner $BUILD/tests/cost/plugins/plan-wrong.so --top 1"
  $ export TRIAX_TEST_PLAN_WRONG=interrupted; triax plan run.toml --cluster $cluster $wrong | head -4
  note: the search was interrupted; the plans are the best of those that it timed
  4 GPUs of DGX A100, batch.global = 8, 83 GB usable per GPU (--reserve 2GB); plan-wrong timed 1 plan
  
    plan       step  tokens/s   memory  p  t  d  v  b  schedule    recompute  sequence  shard  split
       1  0.04045 s    3.16 k  1.23 MB  1  1  4  1  1  sched-1f1b  none       false     none   even
  $ triax plan run.toml --cluster $cluster $wrong > planned; echo $?
  note: the search was interrupted; the plans are the best of those that it timed
  0
  $ export TRIAX_TEST_PLAN_WRONG="interrupted before"; triax plan run.toml --cluster $cluster $wrong
  the search was interrupted before it found a plan; run it again, with --fix to search less
  [1]
  $ triax plan run.toml --cluster $cluster $wrong --json
  the search was interrupted before it found a plan; run it again, with --fix to search less
  {"problem":"the search was interrupted before it found a plan; run it again, with --fix to search less"}
  [1]

A planner whose answer is wrong is named.

  $ export TRIAX_TEST_PLAN_WRONG=outside; triax plan run.toml --cluster $cluster $wrong
  plan-wrong: search() returned a plan outside the space: p = 1, t = 1, d = 4, v = 1, b = 7
    report this to the author of the planner
  [1]
  $ unset TRIAX_TEST_PLAN_WRONG

Without --gpus, the run's layout says how many; sequence parallelism needs tensor ranks.

  $ triax plan run.toml --cluster $cluster --set parallel.data=2 --top 1 | head -1 | sed 's/ timed .*//'
  2 GPUs of DGX A100, batch.global = 8, 83 GB usable per GPU (--reserve 2GB); plan-sweep
  $ triax plan run.toml --cluster $cluster --gpus 4 --fix sequence=true --fix tensor=1 --top 1 | sed -n 3,4p
    plan       step  tokens/s   memory  p  t  d  v  b  schedule     recompute  sequence  shard  split
       1  0.03282 s     3.9 k  1.21 MB  4  1  1  1  8  sched-zb-h1  none       true      none   even
  $ triax plan run.toml --cluster $cluster --gpus 4 --planner sc21 --top 1 --explain | sed -n '/^the best/,/^$/p'
  the best plan with another value of a setting
    parallel.pipeline: 0.03457 s, 1.0 % shorter: bubble takes 0.003956 s more; with parallel.pipeline = 2, parallel.data = 2, batch.micro = 4
    parallel.tensor: 0.03612 s, 3.4 % longer: tensor takes 0.001271 s more; with parallel.tensor = 2, parallel.data = 2, batch.micro = 4
    parallel.data: 0.03612 s, 3.4 % longer: tensor takes 0.001271 s more; with parallel.tensor = 2, parallel.data = 2, batch.micro = 4
    parallel.chunks: plan-sc21 finds no plan with another value
    parallel.sequence: plan-sc21 finds no plan with another value
    batch.micro: 0.04376 s, 25.3 % longer: compute takes 0.008837 s more; with batch.micro = 1
    memory.recompute: plan-sc21 finds no plan with another value
    schedule.plugin: plan-sc21 finds no plan with another value
    optimizer.shard: plan-sc21 finds no plan with another value
    parallel.split: plan-sc21 finds no plan with another value
  
