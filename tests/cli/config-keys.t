# SPDX-License-Identifier: Apache-2.0

# Keys and tables that do not exist, or are missing

  $ . "$TESTDIR/setup"

A misspelled key of Triax:

  $ sed 's/steps/step/' base.toml > run.toml
  $ triax check run.toml
  run.toml:25:2: train.steps is missing (optimizer steps)
    add it below [train]
  run.toml:26:1: [train] has no key "step"; did you mean "steps"?
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  [2]

A misspelled key of a plugin:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [optimizer]
  > beta_1 = 0.8
  > END
  $ triax check run.toml
  run.toml:3:1: [optimizer] optim-adamw has no key "beta_1"; did you mean "beta1"?
    keys of [optimizer]: lr, weight_decay, shard, prefetch; keys of optim-adamw: beta1, beta2, eps (triax plugins describe optim-adamw)
  [2]

Unknown tables:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [checkpoint]
  > every = 10
  > [evla]
  > every = 10
  > END
  $ triax check run.toml
  run.toml:4:2: unknown table [evla]; did you mean [eval]?
    tables: run, model, parallel, batch, schedule, comm, comm.tensor, comm.pipeline, comm.data, kernels, memory, optimizer, lr, train, loss_scale, data, eval, checkpoint, log, launch, plugins
  [2]

Mistakes in names of tables and keys:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [modle]
  > layers = 3
  > [train]
  > stpes = 5
  > warmup_steps = 3
  > [optimizer]
  > beta_2 = 0.9
  > [paralel]
  > tensor = 2
  > [comm.tensr]
  > plugin = "comm-local"
  > [comm.data]
  > wait = "spin"
  > END
  $ triax check run.toml
  run.toml:2:2: unknown table [modle]; did you mean [model]?
    tables: run, model, parallel, batch, schedule, comm, comm.tensor, comm.pipeline, comm.data, kernels, memory, optimizer, lr, train, loss_scale, data, eval, checkpoint, log, launch, plugins
  run.toml:5:1: [train] has no key "stpes"; did you mean "steps"?
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  run.toml:6:1: [train] has no key "warmup_steps"; did you mean lr.warmup_steps?
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  run.toml:8:1: [optimizer] optim-adamw has no key "beta_2"; did you mean "beta2"?
    keys of [optimizer]: lr, weight_decay, shard, prefetch; keys of optim-adamw: beta1, beta2, eps (triax plugins describe optim-adamw)
  run.toml:9:2: unknown table [paralel]; did you mean [parallel]?
    tables: run, model, parallel, batch, schedule, comm, comm.tensor, comm.pipeline, comm.data, kernels, memory, optimizer, lr, train, loss_scale, data, eval, checkpoint, log, launch, plugins
  run.toml:11:7: unknown table [comm.tensr]; did you mean [comm.tensor]?
    tables: run, model, parallel, batch, schedule, comm, comm.tensor, comm.pipeline, comm.data, kernels, memory, optimizer, lr, train, loss_scale, data, eval, checkpoint, log, launch, plugins
  run.toml:14:1: [comm.data] comm-local has no key "wait"
    comm-local has no keys
  [2]

Keys written as tables:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train.steps]
  > value = 5
  > [lr]
  > decay = { name = "cosine" }
  > END
  $ triax check run.toml
  run.toml:2:8: train.steps is a key, not a table
    write steps = VALUE below [train]
  run.toml:5:1: lr.decay is a key, not a table
    write decay = VALUE below [lr]
  [2]

Keys and plugins that are not given:

  $ cat > run.toml << 'END'
  > [model]
  > plugin = "model-gpt"
  > layers = 2
  > [optimizer]
  > weight_decay = 0.1
  > [schedule]
  > [comm]
  > plugin = "comm-local"
  > [kernels]
  > plugin = "kernels-reference"
  > END
  $ triax check run.toml
  run.toml:1:2: model.hidden is missing (width of the residual stream, h)
    add it below [model]
  run.toml:1:2: model.heads is missing (attention heads, a; each takes h/a columns)
    add it below [model]
  run.toml:1:2: model.sequence is missing (tokens per sample, s)
    add it below [model]
  run.toml:4:2: optimizer.plugin is missing
    installed optimizers: optim-adamw, optim-lamb, optim-muon, optim-sgd; write plugin = "..." below [optimizer]
  run.toml:4:2: optimizer.lr is missing (learning rate after the warm-up)
    add it below [optimizer]
  run.toml:6:2: schedule.plugin is missing
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v; write plugin = "..." below [schedule]
  run.toml: batch.global is missing (B: sequences per step, over all ranks)
    add it below [batch]
  run.toml: train.steps is missing (optimizer steps)
    add it below [train]
  run.toml: data.path is missing (token files to train on; data.paths: several)
    set data.path to the prefix of token files; triax data prepare makes them
  [2]

## Keys that a combination of others excludes

The loss scale is for fp16 only:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > precision = "bf16"
  > [loss_scale]
  > initial = 1024.0
  > min = 2
  > window_steps = 100
  > hysteresis = 1
  > constant = false
  > END
  $ triax check run.toml
  run.toml:5:11: loss_scale.initial has no effect with train.precision = "bf16"
    train.precision is set at run.toml:3:13
    leave it out, or use train.precision fp16
  run.toml:6:7: loss_scale.min has no effect with train.precision = "bf16"
    train.precision is set at run.toml:3:13
    leave it out, or use train.precision fp16
  run.toml:7:16: loss_scale.window_steps has no effect with train.precision = "bf16"
    train.precision is set at run.toml:3:13
    leave it out, or use train.precision fp16
  run.toml:8:14: loss_scale.hysteresis has no effect with train.precision = "bf16"
    train.precision is set at run.toml:3:13
    leave it out, or use train.precision fp16
  run.toml:9:12: loss_scale.constant has no effect with train.precision = "bf16"
    train.precision is set at run.toml:3:13
    leave it out, or use train.precision fp16
  [2]

A constant loss scale does not move:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > precision = "fp16"
  > [loss_scale]
  > constant = true
  > initial = 1024
  > min = 2
  > window_steps = 100
  > hysteresis = 1
  > END
  $ triax check run.toml
  run.toml:7:7: loss_scale.min has no effect with loss_scale.constant = true
    loss_scale.constant is set at run.toml:5:12
    leave it out, or write constant = false
  run.toml:8:16: loss_scale.window_steps has no effect with loss_scale.constant = true
    loss_scale.constant is set at run.toml:5:12
    leave it out, or write constant = false
  run.toml:9:14: loss_scale.hysteresis has no effect with loss_scale.constant = true
    loss_scale.constant is set at run.toml:5:12
    leave it out, or write constant = false
  [2]

A key of the plugin that --set replaces:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [optimizer]
  > beta1 = 0.8
  > END
  $ triax check run.toml --set optimizer.plugin=optim-sgd --set optimizer.beta1=0.7
  --set: [optimizer] optim-sgd has no key "beta1"
    keys of [optimizer]: lr, weight_decay, shard, prefetch; keys of optim-sgd: momentum (triax plugins describe optim-sgd)
  [2]
