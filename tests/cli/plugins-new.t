# SPDX-License-Identifier: Apache-2.0

# New plugins

Each kind has a template, which is copied with the name of the plugin:

  $ triax plugins new scheduler sched-mine | sed -E 's#^cmake .*(-B|--prefix)#cmake ... \1#'
  sched-mine: wrote sched-mine: CMakeLists.txt README.md run.toml src/scheduler.cpp
  
  This triax is not installed: install it first. PREFIX is the absolute path of a folder for it.
  
  cmake ... --prefix PREFIX
  cmake ... -B sched-mine/build -DCMAKE_PREFIX_PATH=PREFIX
  cmake --build sched-mine/build
  ctest --test-dir sched-mine/build
  
  sched-mine/README.md has the next steps.
  $ grep -rn template sched-mine
  [1]
  $ grep -hn 'sched-mine' sched-mine/CMakeLists.txt sched-mine/run.toml
  3:project(sched-mine CXX)
  8:triax_add_plugin(sched-mine SOURCES src/scheduler.cpp)
  12:triax_add_run_test(sched-mine RUN run.toml TEXT README.md SAME_LOSSES schedule.plugin=sched-gpipe)
  1:# Trains a small GPT with sched-mine in seconds: two pipeline ranks, which are threads of one process.
  25:plugin = "sched-mine"
  $ triax check sched-mine/run.toml 2>&1 | head -1
  sched-mine/run.toml:8:8: plugins.path: {folder}/sched-mine/build is not a folder

As CSV, for sched-file:

  $ triax plugins new scheduler sched-drawn --csv --dir planned/drawn/ | sed -E 's#^cmake .*(-B|--prefix)#cmake ... \1#'
  sched-drawn: wrote planned/drawn: CMakeLists.txt README.md baseline.toml run.toml schedule.csv
  
  This triax is not installed: install it first. PREFIX is the absolute path of a folder for it.
  
  cmake ... --prefix PREFIX
  cmake ... -B planned/drawn/build -DCMAKE_PREFIX_PATH=PREFIX
  ctest --test-dir planned/drawn/build
  
  planned/drawn/README.md has the next steps.
  $ triax schedule --file planned/drawn/schedule.csv | tail -1
  peak of microbatches in flight, by rank: 2 1

The other kinds:

  $ for kind in communicator:comm kernels:kernels model:model optimizer:optim planner:plan; do
  >   triax plugins new ${kind%:*} ${kind#*:}-mine --dir "new/${kind%:*}" | head -1
  > done
  comm-mine: wrote new/communicator: CMakeLists.txt README.md run.toml src/plugin.cpp src/unix_messages.cpp src/unix_transport.cpp src/unix_transport.hpp
  kernels-mine: wrote new/kernels: CMakeLists.txt README.md run.toml src/kernels.cpp
  model-mine: wrote new/model: CMakeLists.txt README.md run.toml src/layers.cpp src/layers.hpp src/model.cpp
  optim-mine: wrote new/optimizer: CMakeLists.txt README.md run.toml src/optimizer.cpp
  plan-mine: wrote new/planner: CMakeLists.txt README.md run.toml src/planner.cpp
  $ triax plugins new kernels kernels-mine --cuda --dir new/cuda | head -1
  kernels-mine: wrote new/cuda: CMakeLists.txt README.md run.toml src/add.cu src/kernels.hpp src/plugin.cpp
  $ grep -rn 'template_\|-template\|_template' new
  [1]
  $ grep -n 'namespace.*{' new/communicator/src/plugin.cpp
  10:namespace triax::comm_mine {
  12:namespace {

## What is refused

A folder that exists is never changed:

  $ triax plugins new scheduler sched-mine
  sched-mine: already exists; no file was written
    choose another folder with --dir
  [2]
  $ touch a-file && triax plugins new scheduler sched-mine --dir a-file
  a-file: already exists; no file was written
    choose another folder with --dir
  [2]
  $ ln -s nowhere a-link && triax plugins new scheduler sched-mine --dir a-link
  a-link: already exists; no file was written
    choose another folder with --dir
  [2]

Names:

  $ triax plugins new scheduler waves
  "waves": the names of plugins of the kind scheduler begin with sched-
    use sched-waves
  [2]
  $ triax plugins new optimizer 'Lion 2'
  "Lion 2": a name has letters, digits and single dashes between them
    use optim-Lion-2
  [2]
  $ triax plugins new kernels kernels-my_own-
  "kernels-my_own-": a name has letters, digits and single dashes between them
    use kernels-my-own
  [2]
  $ triax plugins new model ''
  "": the names of plugins of the kind model begin with model-
    use model-mine
  [2]
  $ triax plugins new model model
  "model": a name has letters, digits and single dashes between them
    use model-mine
  [2]
  $ triax plugins new scheduler sched-template
  "sched-template": is the name of the template
    use sched-mine
  [2]
  $ triax plugins new scheduler sched-gpipe
  "sched-gpipe": there is a plugin of this name: {plugins}/sched-gpipe.so
    use another name
  [2]
  $ TRIAX_PLUGIN_PATH=$PWD; export TRIAX_PLUGIN_PATH; touch sched-taken.so
  $ triax plugins new scheduler sched-taken
  "sched-taken": there is a plugin of this name: {folder}/sched-taken.so
    use another name
  [2]
  $ unset TRIAX_PLUGIN_PATH

Kinds and flags:

  $ triax plugins new scheduler
  triax: NAME is required
    see: triax plugins new --help
  [2]
  $ triax plugins new model model-mine --csv
  --csv: a plugin of the kind model cannot be written as CSV
    use it with the kind scheduler
  [2]
  $ triax plugins new communicator comm-mine --cuda
  --cuda: the template of a communicator moves GPU memory without CUDA code, through pinned buffers
    leave --cuda out; plugins/comm-nccl of the source tree works on GPU memory itself
  [2]
  $ triax plugins new optimizer optim-mine --cuda
  --cuda: a plugin of the kind optimizer has no CUDA code: it uses the operations of a kernel set
    use it with the kind kernels
  [2]
  $ triax plugins new scheduler sched-other --csv --cuda
  triax: --cuda cannot be combined with --csv
    see: triax plugins new --help
  [2]
  $ triax plugins new scheduler sched-$(printf 'x%.0s' $(seq 60))
  a name has at most 64 characters, got 66
    use a name such as sched-mine
  [2]

Nothing is left of what cannot be written:

  $ triax plugins new scheduler sched-other --dir a-file/sched-other
  a-file/sched-other: cannot be created: a-file is a file, not a folder
    choose another folder with --dir
  [1]
  $ ls -A | sort
  a-file
  a-link
  new
  planned
  sched-mine
  sched-taken.so
