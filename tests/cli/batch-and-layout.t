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
  run.toml:3:10: batch.global = 7 does not divide by parallel.data = 1 (derived) x batch.micro = 2 (base.toml:10:9): each data rank takes whole microbatches
    use batch.global 6 or 8, or batch.micro 1
  [2]

Heads and the hidden size:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > heads = 3
  > END
  $ triax check run.toml
  base.toml:4:10: model.hidden = 32 does not divide by model.heads = 3 (run.toml:3:9): each head takes hidden / heads columns
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
  run.toml:3:9: model.heads = 4 does not divide by parallel.tensor = 3 (run.toml:5:10): each tensor rank takes whole heads
    use tensor 2 or 4
  [2]

More stages than layers:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 4
  > END
  $ triax check run.toml
  base.toml:3:10: model.layers = 2 is too few for 4 stages (parallel.pipeline (run.toml:3:12) x parallel.chunks (default)): stage 2 would have no layer
    use more layers, or fewer stages
  [2]

A split with another number of stages:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > pipeline = 2
  > split = [2]
  > END
  $ triax check run.toml
  run.toml:4:9: parallel.split lists 1 stages, but parallel.pipeline = 2 (run.toml:3:12) x parallel.chunks = 1 (default) makes 2
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
  run.toml:4:9: parallel.split counts 3 blocks, but model.layers (base.toml:3:10) is 2
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
  run.toml:5:12: parallel.pipeline = 2 x parallel.tensor = 65536 (run.toml:6:10) x parallel.data = 64 (run.toml:7:8) is more than 1048576 ranks
    use smaller sizes
  [2]
