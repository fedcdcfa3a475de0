# SPDX-License-Identifier: Apache-2.0

# Files that are not TOML

A run is a TOML file. If it cannot be read or parsed, the message says where, and how to write it.

  $ . "$TESTDIR/setup"

## Files

A file that does not exist:

  $ triax check bsae.toml
  bsae.toml: does not exist
    did you mean base.toml?
  [2]

The same for another verb:

  $ triax train bsae.toml
  bsae.toml: does not exist
    did you mean base.toml?
  [2]

A name without its ending:

  $ triax check base
  base: does not exist
    did you mean base.toml?
  [2]

An empty name:

  $ triax check ''
  the name of the run's file is empty
    name a TOML file
  [2]

A folder:

  $ mkdir folder
  $ triax check folder
  folder: is a folder, not a TOML file
    name a file
  [2]

A symlink to itself:

  $ ln -s loop.toml loop.toml
  $ triax check loop.toml
  loop.toml: cannot be read: Too many levels of symbolic links
  [2]

An empty file lacks everything:

  $ > run.toml
  $ triax check run.toml
  run.toml: model.plugin is missing
    installed models: model-gpt, model-llama; write plugin = "..." below [model]
  run.toml: batch.global is missing (B: sequences per step, over all ranks)
    add it below [batch]
  run.toml: schedule.plugin is missing
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v; write plugin = "..." below [schedule]
  run.toml: comm.plugin is missing
    installed communicators: {names}; write plugin = "..." below [comm]
  run.toml: kernels.plugin is missing
    installed kernel sets: {names}; write plugin = "..." below [kernels]
  run.toml: optimizer.plugin is missing
    installed optimizers: optim-adamw, optim-lamb, optim-muon, optim-sgd; write plugin = "..." below [optimizer]
  run.toml: optimizer.lr is missing (learning rate after the warm-up)
    add it below [optimizer]
  run.toml: train.steps is missing (optimizer steps)
    add it below [train]
  run.toml: data.path is missing (token files to train on; data.paths: several)
    set data.path to the prefix of token files; triax data prepare makes them
  [2]

## Encodings

Latin-1:

  $ printf 'include = ["base.toml"]\n# Gr\374\337e\n[train]\nsteps = 50\n' > run.toml
  $ triax check run.toml
  run.toml:2:5: not valid TOML: invalid UTF-8
    save the file as UTF-8
  [2]

UTF-16:

  $ printf '[t]\n' | iconv -t UTF-16LE | cat <(printf '\377\376') - > run.toml
  $ triax check run.toml
  run.toml:1:1: not valid TOML: the file is UTF-16, but TOML is UTF-8
    save the file as UTF-8
  [2]

A byte order mark is skipped, and the rest is read:

  $ printf '\357\273\277include = ["base.toml"]\n[train]\nstep = 5\n' > run.toml
  $ triax check run.toml
  run.toml:3:1: [train] has no key "step"; did you mean "steps"?
    keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, precision, cuda_graph, stall_timeout_s
  [2]

## Syntax

A key without a value:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > heads =
  > sequence = 32
  > END
  $ triax check run.toml
  run.toml:3:8: not valid TOML: heads has no value
    write heads = VALUE, or remove the line
  [2]

A key that is set twice:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > heads = 2
  > hidden = 32
  > heads = 4
  > END
  $ triax check run.toml
  run.toml:5:1: not valid TOML: heads is written twice, first in line 3
    remove one of the two
  [2]

A table that is opened twice:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > steps = 50
  > [log]
  > every = 10
  > [train]
  > seed = 2
  > END
  $ triax check run.toml
  run.toml:6:1: not valid TOML: [train] is written twice, first in line 2
    write its keys below line 2
  [2]

A path with backslashes:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "C:\data\text"
  > END
  $ triax check run.toml
  run.toml:3:8: not valid TOML: invalid escape in the string of path
    write path = 'C:\data\text', where a \ is a \
  [2]

A number with a unit:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > steps = 50k
  > END
  $ triax check run.toml
  run.toml:3:9: not valid TOML: invalid number: 50k
    write numbers as 50, 1_000, 0.001, 1e-3
  [2]

A number that is too large:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > seed = 99999999999999999999
  > END
  $ triax check run.toml
  run.toml:3:8: not valid TOML: 99999999999999999999 does not fit into 64 bits
    the largest integer is 9223372036854775807
  [2]

A colon, as in YAML:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > steps: 50  # as in YAML
  > END
  $ triax check run.toml
  run.toml:3:6: not valid TOML: steps needs = before its value, not :
    write steps = 50
  [2]

A comment as in C++:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > steps = 50 // not many
  > END
  $ triax check run.toml
  run.toml:3:12: not valid TOML: the value 50 is followed by // not many
    a line has one key and one value; a comment begins with #
  [2]

None, as in Python:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [launch]
  > interface = None
  > END
  $ triax check run.toml
  run.toml:3:13: not valid TOML: invalid value: None
    leave interface out
  [2]

A string without quotes:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [schedule]
  > plugin = sched-1f1b
  > END
  $ triax check run.toml
  run.toml:3:10: not valid TOML: invalid value: sched-1f1b
    a string has quotes: plugin = "sched-1f1b"
  [2]

A string that is not closed:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [schedule]
  > plugin = "sched-1f1b
  > END
  $ triax check run.toml
  run.toml:3:10: not valid TOML: the string of plugin is not closed
    write plugin = "sched-1f1b"
  [2]

A list that is not closed:

  $ cat > run.toml << 'END'
  > include = [
  >   "base.toml",
  > [train]
  > steps = 50
  > END
  $ triax check run.toml
  run.toml:1:11: not valid TOML: the list of include is not closed
    write ] after its last item
  [2]

A table name that is not closed:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train
  > steps = 50
  > END
  $ triax check run.toml
  run.toml:2:1: not valid TOML: the name of a table is not closed
    write [train]
  [2]

Columns count characters, not bytes:

  $ printf 'include = ["base.toml"]  # gr\303\274\303\237e\n[train]\n\tsteps = 50\t# "\303\274" is one column\n\tseed = "\303\274" 3\n' > run.toml
  $ triax check run.toml
  run.toml:4:13: not valid TOML: the value "\xc3\xbc" is followed by 3 (esc)
    a line has one key and one value; a comment begins with #
  [2]
