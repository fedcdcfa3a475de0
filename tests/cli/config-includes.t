# SPDX-License-Identifier: Apache-2.0

# Files that include others

Each message names the file in which the mistake is.

  $ . "$TESTDIR/setup"

A file that does not exist:

  $ cat > run.toml << 'END'
  > include = ["bsae.toml"]
  > END
  $ triax check run.toml
  run.toml:1:12: include "bsae.toml" does not exist
    did you mean base.toml?
  [2]

Files that include each other:

  $ cat > a.toml << 'END'
  > include = ["b.toml"]
  > END
  $ cat > b.toml << 'END'
  > include = ["a.toml"]
  > [train]
  > seed = 2
  > END
  $ cat > run.toml << 'END'
  > include = ["base.toml", "a.toml"]
  > END
  $ triax check run.toml
  b.toml:1:12: includes form a cycle: a.toml includes b.toml includes a.toml
  [2]

One file instead of a list:

  $ cat > run.toml << 'END'
  > include = "base.toml"
  > END
  $ triax check run.toml
  run.toml:1:11: include = "base.toml" is not a list of files
    write include = ["base.toml"]
  [2]

Mistakes in included files:

  $ cat > broken.toml << 'END'
  > [train]
  > seed = 1
  > [eval]
  > every =
  > END
  $ cat > middle.toml << 'END'
  > include = ["base.toml", "broken.toml", "gone.toml", "borken.toml", ""]
  > [train]
  > stpes = 4
  > END
  $ cat > run.toml << 'END'
  > include = ["middle.toml"]
  > [train]
  > steps = "many"
  > END
  $ triax check run.toml
  broken.toml:4:8: not valid TOML: every has no value
    write every = VALUE, or remove the line
  middle.toml:1:40: include "gone.toml" does not exist
    correct the path
  middle.toml:1:53: include "borken.toml" does not exist
    did you mean broken.toml?
  middle.toml:1:68: include has an empty name
    name a file, or leave it out
  [2]

Values of several files:

  $ mkdir runs
  $ cat > runs/more.toml << 'END'
  > include = ["../base.toml"]
  > [batch]
  > micro = 3
  > [lr]
  > decya = 1
  > END
  $ cat > runs/run.toml << 'END'
  > include = ["more.toml"]
  > [train]
  > steps = -3
  > END
  $ (cd runs && triax check run.toml)
  ../base.toml:9:10: batch.global = 4 is not divisible by parallel.data = 1 x batch.micro = 3: each data rank runs whole microbatches
    parallel.data = 1 is derived
    batch.micro is set at more.toml:3:9
    use batch.global 3 or 6, or batch.micro 2
  more.toml:5:1: [lr] has no key "decya"; did you mean "decay"?
    keys of [lr]: decay, warmup_steps, min
  run.toml:3:9: train.steps must be at least 1, got -3
  [2]

All mistakes are reported at once, in the order of files and lines:

  $ cat > log.toml << 'END'
  > [log]
  > every = 0
  > END
  $ cat > run.toml << 'END'
  > include = ["base.toml", "log.toml"]
  > [model]
  > heads = 5
  > [batch]
  > global = 5
  > [train]
  > precison = "fp32"
  > [data]
  > path = "txet"
  > [lr]
  > warmup_steps = 60
  > [eval]
  > every = 5
  > END
  $ triax check run.toml --set optimizer.beta2=2 --set lr.min=1 --set lr.decay=linear
  base.toml:23:6: lr.min must be at most optimizer.lr = 0.003, got 1: the learning rate would rise
    lr.min is set by --set
  log.toml:2:9: log.every must be at least 1, got 0
  run.toml:5:10: batch.global = 5 is not divisible by parallel.data = 1 x batch.micro = 2: each data rank runs whole microbatches
    parallel.data = 1 is derived
    batch.micro is set at base.toml:10:9
    use batch.global 4 or 6, or batch.micro 1
  run.toml:7:1: [train] has no key "precison"; did you mean "precision"?
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  run.toml:9:8: data.path: {folder}/txet.bin does not exist
    prepare it with: triax data prepare --input FILE... --output {folder}/txet --tokenizer byte
  run.toml:13:9: eval.batches is required with eval.every = 5 (number of global batches per evaluation)
    eval.batches = 0 is the default
    write eval.batches = 8, or eval.every = 0
  run.toml:13:9: data.validation is required with eval.every = 5 (token files to evaluate on)
    data.validation = "" is the default
    name them, or write eval.every = 0
  --set: optimizer.beta2 must be in [0, 0.999999], got 2
  [2]
