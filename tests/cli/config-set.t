# SPDX-License-Identifier: Apache-2.0

# Values set on the command line with --set

  $ . "$TESTDIR/setup"

A key without a value:

  $ triax check base.toml --set train.steps
  triax: --set must be TABLE.KEY=VALUE, got "train.steps"
    see: triax check --help
  [2]

Nothing:

  $ triax check base.toml --set
  triax: --set needs a value: TABLE.KEY=VALUE
    see: triax check --help
  [2]

Half of a key:

  $ triax check base.toml --set train.=5
  triax: --set must be TABLE.KEY=VALUE, got "train.=5"
    see: triax check --help
  [2]

Unknown keys:

  $ triax check base.toml --set model.lyers=3 --set trian.steps=3 --set train.stpes=3 --set include=base.toml --set a.b.c=5
  --set: [model] model-gpt has no key "lyers"; did you mean "layers"?
    keys of [model]: vocab; keys of model-gpt: layers, hidden, heads, sequence, inner, norm_eps, dropout (triax plugins describe model-gpt)
  --set: unknown table [trian]; did you mean [train]?
    tables: run, model, parallel, batch, schedule, comm, comm.tensor, comm.pipeline, comm.data, kernels, memory, optimizer, lr, train, loss_scale, data, eval, checkpoint, log, launch, plugins
  --set: [train] has no key "stpes"; did you mean "steps"?
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  --set: include cannot be set with --set
    write it in a TOML file
  --set: unknown table [a.b]
    tables: run, model, parallel, batch, schedule, comm, comm.tensor, comm.pipeline, comm.data, kernels, memory, optimizer, lr, train, loss_scale, data, eval, checkpoint, log, launch, plugins
  [2]

Tables as keys:

  $ triax check base.toml --set 'comm.tensor={plugin="comm-local"}' --set 'model={}' --set comm.data=comm-local --set 'train={steps=3}'
  --set: comm.tensor is a table, not a key
    write one --set for each key: --set comm.tensor.plugin=NAME, --set comm.tensor.KEY=VALUE
  --set: model is a table, not a key
    write one --set for each key: --set model.plugin=NAME, --set model.KEY=VALUE
  --set: comm.data is a table, not a key
    write --set comm.data.plugin=comm-local
  --set: train is a table, not a key
    write --set train.KEY=VALUE; keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  [2]

Unknown keys and values of the wrong type:

  $ triax check base.toml --set train.steps=ten --set model.head=4 --set steps=5 --set heads=3
  --set: train.steps = ten is not an integer
    write an integer (1 and more)
  --set: [model] model-gpt has no key "head"; did you mean "heads"?
    keys of [model]: vocab; keys of model-gpt: layers, hidden, heads, sequence, inner, norm_eps, dropout (triax plugins describe model-gpt)
  --set: "steps" needs a table; did you mean train.steps?
  --set: "heads" needs a table; did you mean model.heads?
  [2]

Lists and numbers:

  $ triax check base.toml --set parallel.split=1,2 --set 'plugins.path=[1' --set optimizer.lr=1e999 --set optimizer.weight_decay=0,5 --set train.steps= --set lr.decay=cos
  --set: parallel.split = 1,2 is not a list of integers
    write [1,2], or "auto"
  --set: plugins.path = [1 is not a list of paths
    write --set 'plugins.path=["1"]'
  --set: optimizer.lr = 1e999 is not a number
    write a number (0..1e+30)
  --set: optimizer.weight_decay = 0,5 is not a number
    write a number (0..1e+30), such as 0.1
  --set: train.steps = "" is not an integer
    write an integer (1 and more)
  --set: lr.decay must be one of constant, cosine or linear, got "cos"
    did you mean "cosine"?
  [2]

Plugins:

  $ triax check base.toml --set schedule.plugin=sched-1f1p --set comm.data.plugin=model-gpt
  --set: schedule.plugin "sched-1f1p" was not found; did you mean "sched-1f1b"?
    looked in: {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  --set: comm.data.plugin "model-gpt" is a model, not a communicator
    installed communicators: {names}
  [2]
