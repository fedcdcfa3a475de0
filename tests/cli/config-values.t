# SPDX-License-Identifier: Apache-2.0

# Values of the wrong type, or out of range

  $ . "$TESTDIR/setup"

Wrong types:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [batch]
  > global = 4.0
  > [optimizer]
  > lr = nan
  > [train]
  > steps = "50"
  > [data]
  > path = 7
  > END
  $ triax check run.toml
  run.toml:3:10: batch.global = 4.0 is not an integer
    write 4
  run.toml:5:6: optimizer.lr = nan is not a finite number
  run.toml:7:9: train.steps = "50" is not an integer
    write 50
  run.toml:9:8: data.path = 7 is not a path
    write "7"
  [2]

Wrong types in every table:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [run]
  > dir = 5
  > [model]
  > layers = "2"
  > dropout = "none"
  > [parallel]
  > pipeline = 2.5
  > tensor = [2]
  > data = true
  > split = 2
  > [batch]
  > micro = "1"
  > [schedule]
  > plugin = 1
  > [comm]
  > plugin = ["comm-local"]
  > [kernels]
  > plugin = true
  > [optimizer]
  > lr = "3e-3"
  > beta1 = false
  > [lr]
  > decay = 1
  > warmup_steps = 2.0
  > [train]
  > seed = 2026-11-22
  > clip_grad = "off"
  > precision = 32
  > [eval]
  > every = []
  > [log]
  > metrics = false
  > END
  $ triax check run.toml
  run.toml:3:7: run.dir = 5 is not a path
    write "5"
  run.toml:5:10: model.layers = "2" is not an integer
    write 2
  run.toml:6:11: model.dropout = "none" is not a number
    write a number (0..0.99), such as 0.0
  run.toml:8:12: parallel.pipeline = 2.5 is not an integer
    write an integer (1..65536), such as 1
  run.toml:9:10: parallel.tensor = [2] is not an integer
    write an integer (1..65536), such as 1
  run.toml:10:8: parallel.data = true is not an integer
    write an integer (1..65536)
  run.toml:11:9: parallel.split = 2 is not a list of integers
    write [2], or "auto"
  run.toml:13:9: batch.micro = "1" is not an integer
    write 1
  run.toml:15:10: schedule.plugin = 1 is not a string
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
  run.toml:17:10: comm.plugin = ["comm-local"] is not a string
    installed communicators: {names}
  run.toml:19:10: kernels.plugin = true is not a string
    installed kernel sets: {names}
  run.toml:21:6: optimizer.lr = "3e-3" is not a number
    write 3e-3
  run.toml:22:9: optimizer.beta1 = false is not a number
    write a number (0..0.999999), such as 0.9
  run.toml:24:9: lr.decay = 1 is not a string
    write one of constant|cosine|linear, in quotes
  run.toml:25:16: lr.warmup_steps = 2.0 is not an integer
    write 2
  run.toml:27:8: train.seed = 2026-11-22 is not an integer
    write an integer (0 and more), such as 1
  run.toml:28:13: train.clip_grad = "off" is not a number
    write a number (0 and more), such as 1.0
  run.toml:29:13: train.precision = 32 is not a string
    write one of fp32|bf16|fp16|fp64, in quotes
  run.toml:31:9: eval.every = [] is not an integer
    write an integer (0 and more), such as 0
  run.toml:33:11: log.metrics = false is not a path
    write "false"
  [2]

Wrong types in other tables:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [log]
  > level = 2
  > [launch]
  > interface = 0
  > port = "80"
  > token_file = 1
  > [plugins]
  > path = "mine"
  > END
  $ triax check run.toml
  run.toml:3:9: log.level = 2 is not a string
    write one of trace|debug|info|warn|error, in quotes
  run.toml:5:13: launch.interface = 0 is not a string
    write "0"
  run.toml:6:8: launch.port = "80" is not an integer
    write 80
  run.toml:7:14: launch.token_file = 1 is not a path
    write "1"
  run.toml:9:8: plugins.path = "mine" is not a list of paths
    write ["mine"]
  [2]

Values out of range:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > dropout = 1.5
  > [batch]
  > micro = 0
  > [lr]
  > decay = "cosin"
  > END
  $ triax check run.toml
  run.toml:3:11: model.dropout must be in [0, 0.99], got 1.5
  run.toml:5:9: batch.micro must be in [1, 16777216], got 0
  run.toml:7:9: lr.decay must be one of constant, cosine or linear, got "cosin"
    did you mean "cosine"?
  [2]

Negative sizes:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = -2
  > hidden = 0
  > heads = -1
  > sequence = 0
  > dropout = -0.1
  > [parallel]
  > pipeline = 0
  > tensor = -1
  > chunks = 0
  > split = [1, -1]
  > [batch]
  > global = 0
  > [optimizer]
  > lr = -1
  > weight_decay = -0.1
  > [lr]
  > warmup_steps = -1
  > min = -1
  > [train]
  > steps = 0
  > seed = -1
  > clip_grad = -1
  > stall_timeout_s = 0
  > [eval]
  > every = -1
  > [log]
  > every = 0
  > END
  $ triax check run.toml
  run.toml:3:10: model.layers must be in [1, 4096], got -2
  run.toml:4:10: model.hidden must be in [1, 1000000], got 0
  run.toml:5:9: model.heads must be in [1, 1000000], got -1
  run.toml:6:12: model.sequence must be in [1, 1000000000], got 0
  run.toml:7:11: model.dropout must be in [0, 0.99], got -0.1
  run.toml:9:12: parallel.pipeline must be in [1, 65536], got 0
  run.toml:10:10: parallel.tensor must be in [1, 65536], got -1
  run.toml:11:10: parallel.chunks must be in [1, 65536], got 0
  run.toml:12:9: parallel.split must be in [0, 65536], got -1
  run.toml:14:10: batch.global must be in [1, 16777216], got 0
  run.toml:16:6: optimizer.lr must be in [0, 1e+30], got -1
  run.toml:17:16: optimizer.weight_decay must be in [0, 1e+30], got -0.1
  run.toml:19:16: lr.warmup_steps must be at least 0, got -1
  run.toml:20:7: lr.min must be in [0, 1e+30], got -1
  run.toml:22:9: train.steps must be at least 1, got 0
  run.toml:23:8: train.seed must be at least 0, got -1
  run.toml:24:13: train.clip_grad must be at least 0, got -1
  run.toml:25:19: train.stall_timeout_s must be in [1, 1e+08], got 0
  run.toml:27:9: eval.every must be at least 0, got -1
  run.toml:29:9: log.every must be at least 1, got 0
  [2]

Values of [log] and [launch] out of range:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [log]
  > level = "verbose"
  > [launch]
  > port = 70000
  > start_timeout_s = 0
  > END
  $ triax check run.toml
  run.toml:3:9: log.level must be one of trace, debug, info, warn or error, got "verbose"
  run.toml:5:8: launch.port must be in [0, 65535], got 70000
  run.toml:6:19: launch.start_timeout_s must be in [1, 1e+08], got 0
  [2]

A level by another name:

  $ triax check base.toml --set log.level=warning
  --set: log.level must be one of trace, debug, info, warn or error, got "warning"
    did you mean "warn"?
  [2]
  $ triax check base.toml --set log.level=err
  --set: log.level must be one of trace, debug, info, warn or error, got "err"
    did you mean "error"?
  [2]

Huge sizes:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 1000000000000000000
  > hidden = 1000000000000000000
  > heads = 1000000000000000000
  > sequence = 1000000000000000000
  > vocab = 1000000000000000000
  > [parallel]
  > pipeline = 1000000000000000000
  > tensor = 1000000000000000000
  > data = 1000000000000000000
  > chunks = 1000000000000000000
  > [batch]
  > global = 1000000000000000000
  > micro = 1000000000000000000
  > END
  $ triax check run.toml
  run.toml:3:10: model.layers must be in [1, 4096], got 1000000000000000000
  run.toml:4:10: model.hidden must be in [1, 1000000], got 1000000000000000000
  run.toml:5:9: model.heads must be in [1, 1000000], got 1000000000000000000
  run.toml:6:12: model.sequence must be in [1, 1000000000], got 1000000000000000000
  run.toml:7:9: model.vocab must be in [1, 2147483647], got 1000000000000000000
  run.toml:9:12: parallel.pipeline must be in [1, 65536], got 1000000000000000000
  run.toml:10:10: parallel.tensor must be in [1, 65536], got 1000000000000000000
  run.toml:11:8: parallel.data must be in [1, 65536], got 1000000000000000000
  run.toml:12:10: parallel.chunks must be in [1, 65536], got 1000000000000000000
  run.toml:14:10: batch.global must be in [1, 16777216], got 1000000000000000000
  run.toml:15:9: batch.micro must be in [1, 16777216], got 1000000000000000000
  [2]

Numbers that are not finite:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > dropout = nan
  > [optimizer]
  > lr = inf
  > weight_decay = nan
  > [lr]
  > min = -inf
  > [train]
  > clip_grad = +inf
  > stall_timeout_s = inf
  > END
  $ triax check run.toml
  run.toml:3:11: model.dropout = nan is not a finite number
  run.toml:5:6: optimizer.lr = inf is not a finite number
  run.toml:6:16: optimizer.weight_decay = nan is not a finite number
  run.toml:8:7: lr.min = -inf is not a finite number
  run.toml:10:13: train.clip_grad = inf is not a finite number
  run.toml:11:19: train.stall_timeout_s = inf is not a finite number
  [2]

Loss scales out of range:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > precision = "fp16"
  > [loss_scale]
  > initial = 0
  > window_steps = 0
  > hysteresis = 1.5
  > END
  $ triax check run.toml
  run.toml:5:11: loss_scale.initial must be in [1e-09, 1e+30], got 0
  run.toml:6:16: loss_scale.window_steps must be in [1, 2147483647], got 0
  run.toml:7:14: loss_scale.hysteresis = 1.5 is not an integer
    write an integer (1..2147483647)
  [2]

A minimum above the first value:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > precision = "fp16"
  > [loss_scale]
  > initial = 64
  > min = 128
  > END
  $ triax check run.toml
  run.toml:6:7: loss_scale.min must be at most loss_scale.initial = 64, got 128
    loss_scale.initial is set at run.toml:5:11
    use a smaller min, or a larger initial
  [2]

A precision that the kernels do not have:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > precision = "fp16"
  > END
  $ triax check run.toml
  run.toml:3:13: kernels-reference computes in fp32 or fp64 throughout; fp16 with master weights in fp32 was requested
    use train.precision fp32 or fp64
  [2]
