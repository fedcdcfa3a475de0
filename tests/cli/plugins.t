# SPDX-License-Identifier: Apache-2.0

# Plugins

  $ . "$TESTDIR/setup"

## Plugins of a run

A misspelled plugin, and a folder of plugins that does not exist:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [schedule]
  > plugin = "sched-gpiep"
  > [plugins]
  > path = ["plugins-of-mine"]
  > END
  $ triax check run.toml
  run.toml:3:10: schedule.plugin "sched-gpiep" was not found; did you mean "sched-gpipe"?
    looked in: {folder}/plugins-of-mine (plugins.path, run.toml:5; no such folder), {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  run.toml:5:8: plugins.path: {folder}/plugins-of-mine is not a folder
    name folders that hold plugins
  [2]

Plugins that do not exist:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > plugin = "model-gtp"
  > [schedule]
  > plugin = "1f1b"
  > [comm]
  > plugin = "comm-infiniband"
  > [kernels]
  > plugin = "kernels/mine.so"
  > [optimizer]
  > plugin = "optim-lion"
  > END
  $ triax check run.toml
  run.toml:3:10: model.plugin "model-gtp" was not found; did you mean "model-gpt"?
    looked in: {plugins}
    installed models: model-gpt, model-llama
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  run.toml:5:10: schedule.plugin "1f1b" was not found; did you mean "sched-1f1b"?
    looked in: {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  run.toml:7:10: comm.plugin "comm-infiniband" was not found
    looked in: {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  run.toml:9:10: kernels.plugin "kernels/mine.so" is not a valid name
    write only the name, such as sched-gpipe; folders to search belong in plugins.path
  run.toml:11:10: optimizer.plugin "optim-lion" was not found; did you mean "optim-muon" or "optim-lamb"?
    looked in: {plugins}
    installed optimizers: optim-adamw, optim-lamb, optim-muon, optim-sgd
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]

Plugins of other kinds:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > plugin = "optim-adamw"
  > [comm]
  > plugin = "kernels-reference"
  > [comm.data]
  > plugin = "sched-1f1b"
  > [kernels]
  > plugin = "comm-local"
  > [optimizer]
  > plugin = "model-gpt"
  > END
  $ triax check run.toml
  run.toml:3:10: model.plugin "optim-adamw" is an optimizer, not a model
    installed models: model-gpt, model-llama
  run.toml:5:10: comm.plugin "kernels-reference" is a kernel set, not a communicator
    installed communicators: {names}
  run.toml:7:10: comm.data.plugin "sched-1f1b" is a scheduler, not a communicator
    installed communicators: {names}
  run.toml:9:10: kernels.plugin "comm-local" is a communicator, not a kernel set
    installed kernel sets: {names}
  run.toml:11:10: optimizer.plugin "model-gpt" is a model, not an optimizer
    installed optimizers: optim-adamw, optim-lamb, optim-muon, optim-sgd
  [2]

A model as scheduler:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [schedule]
  > plugin = "model-gpt"
  > END
  $ triax check run.toml
  run.toml:3:10: schedule.plugin "model-gpt" is a model, not a scheduler
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
  [2]

## triax plugins

A plugin that is not installed:

  $ triax plugins describe sched-1f1p
  plugin "sched-1f1p" was not found; did you mean "sched-1f1b"?
    looked in: {plugins}
    installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v
    correct the name, or name the plugin's folder with --path or TRIAX_PLUGIN_PATH
  [2]

A file that does not exist:

  $ triax plugins describe ./mine.so
  ./mine.so: no such file
    triax plugins list shows the plugins that are found by name
  [2]

A folder that does not exist:

  $ triax plugins list --path nothing
  triax: --path must be a folder that exists, got "nothing"
    see: triax plugins list --help
  [2]

A folder of the environment that does not exist:

  $ TRIAX_PLUGIN_PATH=/no/such/folder triax plugins list --json
  TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder
    create it, or remove it from the variable
  {"errors":[{"code":"not-found","keys":[],"file":null,"line":null,"column":null,"message":"TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder","hint":"create it, or remove it from the variable"}]}
  [2]
  $ TRIAX_PLUGIN_PATH=/no/such/folder triax plugins describe sched-gpipe --json
  TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder
    create it, or remove it from the variable
  {"errors":[{"code":"not-found","keys":[],"file":null,"line":null,"column":null,"message":"TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder","hint":"create it, or remove it from the variable"}]}
  [2]

Long names and long lists are shortened:

  $ long=/no/$(printf '%05000d' 0)
  $ TRIAX_PLUGIN_PATH=$long triax check base.toml
  TRIAX_PLUGIN_PATH names /no/0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000..., which is not a folder
    create it, or remove it from the variable
  [2]
  $ TRIAX_PLUGIN_PATH=$(printf '/no/%s:' {1..500}) triax check base.toml --set model.plugin=model-none
  TRIAX_PLUGIN_PATH names /no/1, which is not a folder
    create it, or remove it from the variable
  --set: model.plugin "model-none" was not found
    looked in: /no/1 (TRIAX_PLUGIN_PATH; no such folder), /no/2 (TRIAX_PLUGIN_PATH; no such folder), /no/3 (TRIAX_PLUGIN_PATH; no such folder), /no/4 (TRIAX_PLUGIN_PATH; no such folder), /no/5 (TRIAX_PLUGIN_PATH; no such folder), /no/6 (TRIAX_PLUGIN_PATH; no such folder), /no/7 (TRIAX_PLUGIN_PATH; no such folder), 493 more, {plugins}
    installed models: model-gpt, model-llama
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  [2]

With `--json`, a refusal is one object on stdout:

  $ triax plugins describe sched-nowhere --json 2> /dev/null
  {"errors":[{"code":"unknown-plugin","keys":["plugin"],"file":null,"line":null,"column":null,"message":"plugin \"sched-nowhere\" was not found","hint":"looked in: {plugins}\n  installed schedulers: sched-1f1b, sched-breadth-first, sched-file, sched-gpipe, sched-interleaved, sched-zb-h1, sched-zb-h2, sched-zb-v\n  correct the name, or name the plugin's folder with --path or TRIAX_PLUGIN_PATH"}]}
  [2]
  $ triax plugins describe ./nowhere.so --json 2> /dev/null
  {"errors":[{"code":"not-found","keys":["plugin"],"file":"./nowhere.so","line":null,"column":null,"message":"no such file","hint":"triax plugins list shows the plugins that are found by name"}]}
  [2]

A broken plugin is a failure:

  $ fixtures="$BUILD/tests/plugin/fixtures"; [ -d "$fixtures" ] || exit 80
  $ triax plugins describe "$fixtures/bad-magic.so" --json 2> /dev/null | grep problem
    "problem": "{fixtures}/bad-magic.so: its descriptor does not begin with the magic number of the plugin ABI\n  fill it with TRIAX_PLUGIN"
  $ triax plugins describe "$fixtures/bad-magic.so" --json > /dev/null
  {fixtures}/bad-magic.so: its descriptor does not begin with the magic number of the plugin ABI
    fill it with TRIAX_PLUGIN
  [1]

## What triax plugins shows

A plugin, by its name and by its file:

  $ build='s/sanitizer=[a-z]*/{sanitizer}/; s/release=[0-9]*/{release}/'
  $ triax plugins describe sched-gpipe | sed "$build"
  sched-gpipe: every forward, then every backward (GPipe)
  kind         scheduler, interface version 2
  version      {version}
  file         {plugins}/sched-gpipe.so
  note         triax={version};abi=1.1;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
  toolchain    libstdc++-cxx11abi1;{sanitizer};c++20;{release}
  plugin ABI   1.1
  this triax   {version}; plugin ABI 1.1; libstdc++-cxx11abi1;{sanitizer};c++20;{release}
  options      none
  $ triax plugins describe "$BUILD/lib/triax/plugins/sched-gpipe.so" | diff - <(triax plugins describe sched-gpipe)

Its options:

  $ triax plugins describe described --path "$fixtures" | sed "$build"
  described: a fixture with "quotes"
  kind         scheduler, interface version 2
  version      1.2.3
  file         {fixtures}/described.so
  note         triax={version};abi=1.1;libstdc++-cxx11abi1;{sanitizer};c++20;{release}
  toolchain    libstdc++-cxx11abi1;{sanitizer};c++20;{release}
  plugin ABI   1.1
  this triax   {version}; plugin ABI 1.1; libstdc++-cxx11abi1;{sanitizer};c++20;{release}
  
  options
    key    default     type         allowed        meaning
    eager  true        bool                        early
    steps  (required)  int          1..1000000000  how many
    share  0.5         float        0..1           how much
    wait   "yield"     string       spin|yield     how to wait
    table  ""          path                        a file
    sizes  [1, 2]      list of int  1..8           each size

Another folder is searched first, and what it hides is named:

  $ mkdir mine
  $ cp "$BUILD/lib/triax/plugins/sched-gpipe.so" mine
  $ triax plugins describe sched-gpipe --path mine | grep -E '^(file|shadows) '
  file         {folder}/mine/sched-gpipe.so
  shadows      {plugins}/sched-gpipe.so
  $ triax plugins list --path mine | grep sched-gpipe | tr -s ' '
   sched-gpipe scheduler {version} every forward, then every backward (GPipe) {folder}/mine (shadows {plugins}/sched-gpipe.so)
   sched-gpipe scheduler {version} every forward, then every backward (GPipe) {plugins} (shadowed by {folder}/mine/sched-gpipe.so)

Broken plugins are listed too:

  $ cp "$fixtures"/{bad-magic,crashing-create,killed,throwing-int}.so mine
  $ triax plugins list --path mine | grep mine | tr -s ' '
   bad-magic broken its descriptor does not begin with the magic number of the plugin ABI {folder}/mine
   crashing-create broken its constructor crashed with SIGSEGV (Segmentation fault) {folder}/mine
   killed broken its library initializer was killed by SIGKILL (Killed) {folder}/mine
   sched-gpipe scheduler {version} every forward, then every backward (GPipe) {folder}/mine (shadows {plugins}/sched-gpipe.so)
   throwing-int broken throwing-int could not be created: an unknown exception (not derived from std::exception) {folder}/mine
   sched-gpipe scheduler {version} every forward, then every backward (GPipe) {plugins} (shadowed by {folder}/mine/sched-gpipe.so)

A plugin that crashes while it is asked:

  $ triax plugins describe mine/crashing-create.so > /dev/null
  {folder}/mine/crashing-create.so: its constructor crashed with SIGSEGV (Segmentation fault)
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {folder}/mine/crashing-create.so
  [1]

## A plugin that fails in the check of a run

An exception of its constructor, and one of another type:

  $ for plugin in throwing-create throwing-int; do
  >   printf 'include = ["base.toml"]\n[schedule]\nplugin = "%s"\n[plugins]\npath = ["%s"]\n' $plugin "$fixtures" > run.toml
  >   triax check run.toml
  > done
  run.toml:3:10: schedule.plugin "throwing-create": {fixtures}/throwing-create.so: throwing-create could not be created: the fixture: no schedule today
    come back tomorrow
  run.toml:3:10: schedule.plugin "throwing-int": {fixtures}/throwing-int.so: throwing-int could not be created: an unknown exception (not derived from std::exception)
    change its options, which triax plugins describe throwing-int lists, or report this to its author
  [2]

A refusal that names no key:

  $ printf 'include = ["base.toml"]\n[schedule]\nplugin = "described"\nsteps = 3\n[plugins]\npath = ["%s"]\n' "$fixtures" > run.toml
  $ triax check run.toml
  run.toml:3:10: schedule.plugin "described": rank 0 of 1, steps 3, log true
    change the run as the message says, or choose another schedule.plugin
  [2]
  $ triax check run.toml --json 2> /dev/null | sed -n '/"errors"/,/^  ]/p'
    "errors": [
      {
        "code": "unsupported",
        "keys": [
          "schedule.plugin"
        ],
        "file": "run.toml",
        "line": 3,
        "column": 10,
        "message": "schedule.plugin \"described\": rank 0 of 1, steps 3, log true",
        "hint": "change the run as the message says, or choose another schedule.plugin"
      }
    ],
