# SPDX-License-Identifier: Apache-2.0

# Batch, layout and model that do not fit together

A divisor that does not divide is named with where both numbers come from, and the nearest that do.

  $ . "$TESTDIR/setup"

The global batch and the microbatches:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [batch]
  > global = 7
  > END
  $ triax check run.toml
  run.toml:3:10: batch.global = 7 is not divisible by parallel.data = 1 x batch.micro = 2: each data rank runs whole microbatches
    parallel.data = 1 is derived
    batch.micro is set at base.toml:10:9
    use batch.global 6 or 8, or batch.micro 1
  [2]

Heads and the hidden size:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > heads = 3
  > END
  $ triax check run.toml
  base.toml:4:10: model.hidden = 32 is not divisible by model.heads = 3: each head has hidden / heads columns
    model.heads is set at run.toml:3:9
    use hidden 30 or 33, or heads 2 or 4
  [2]

Heads and tensor ranks:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > heads = 4
  > [parallel]
  > tensor = 3
  > END
  $ triax check run.toml
  run.toml:3:9: model.heads = 4 is not divisible by parallel.tensor = 3: each tensor rank has whole heads
    parallel.tensor is set at run.toml:5:10
    use tensor 2 or 4
  [2]
  $ triax check base.toml --set model.inner=33 --set parallel.tensor=2
  --set: model.inner = 33 is not divisible by parallel.tensor = 2: each tensor rank has as many columns of the MLP
    parallel.tensor is set by --set
    use inner 32 or 34, or tensor 1
  [2]

More stages than layers:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 4
  > END
  $ triax check run.toml
  base.toml:3:10: model.layers = 2 is too few for 4 stages (parallel.pipeline x parallel.chunks): stage 2 would have no layer
    parallel.pipeline is set at run.toml:3:12
    parallel.chunks = 1 is the default
    use fewer stages, or a model with more layers
  [2]

A split with another number of stages:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 2
  > split = [2]
  > END
  $ triax check run.toml
  run.toml:4:9: parallel.split lists 1 stages, but parallel.pipeline = 2 x parallel.chunks = 1 makes 2
    parallel.pipeline is set at run.toml:3:12
    parallel.chunks = 1 is the default
    list one number of blocks for each stage, or leave split out
  [2]

A split that does not add up:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 2
  > split = [2, 1]
  > END
  $ triax check run.toml
  run.toml:4:9: parallel.split counts 3 blocks, but model.layers is 2
    model.layers is set at base.toml:3:10
    list one number of blocks for each stage; together 2
  [2]

Too many ranks:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [batch]
  > global = 128
  > [parallel]
  > pipeline = 2
  > tensor = 65536
  > data = 64
  > END
  $ triax check run.toml
  run.toml:5:12: parallel.pipeline = 2 x parallel.tensor = 65536 x parallel.data = 64 is more than 1048576 ranks
    parallel.tensor is set at run.toml:6:10
    parallel.data is set at run.toml:7:8
    use smaller sizes
  [2]
