# SPDX-License-Identifier: Apache-2.0

# Runs planned on a machine that cannot train them

The run of `examples/gpt3-175b.toml`, and files in place of the plugins of GPUs, as in a build without CUDA:

  $ . "$TESTDIR/setup"
  $ plan_gpt3

A model of a paper is sized without data, GPUs and their plugins:

  $ triax check run.toml --no-device
  
  layout: pipeline 12 x data 16 x tensor 8 = 1536 ranks as processes
  
  model: 174,615,846,912 parameters, 698 GB of weights in fp32
  step: 1536 sequences = 16 data ranks x 96 microbatches of 1 sequence
  
  peak memory: rank 0 and 127 other ranks, 61.8 GB each
  activations of rank 0: 27 GB = 12 microbatches x (8 blocks x 277 MB) + 245 MB of workspace + 3 x 50.3 MB of transfers
  communication of a step: a rank sends at most 283 GB over tensor (rank 1415), 14.4 GB over data (rank 24), 1.21 GB over pipeline (rank 128); all ranks send 453 TB
  per rank: parameters 1.92 G (stage 0) to 1.81 G (stage 1), FLOPs of a microbatch 23.8 T (stage 11) to 22.9 T (stage 0)
  uneven stages: the step is 3.4 % longer than with equal stages (mean bubble 13.3 % instead of 10.3 %; estimated from FLOPs, without transfers); try parallel.split = "auto"
  
    ranks  first rank  pipeline  layers               weights  working weights  gradients  optimizer state  activations  batches  batches (host)  checkpoint staging (host)    total
      128           0         0  embedding, 8 blocks  7.67 GB          3.83 GB    7.98 GB          15.3 GB        27 GB  1.07 MB         3.39 MB                    1.44 GB  61.8 GB
      128         128         1  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      24.9 GB   287 kB          248 kB                    1.36 GB  57.5 GB
      128         256         2  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      22.7 GB   287 kB          248 kB                    1.36 GB  55.3 GB
      128         384         3  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      20.5 GB   287 kB          248 kB                    1.36 GB  53.1 GB
      128         512         4  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      18.3 GB   287 kB          248 kB                    1.36 GB  50.9 GB
      128         640         5  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      16.1 GB   287 kB          248 kB                    1.36 GB  48.7 GB
      128         768         6  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      13.8 GB   287 kB          248 kB                    1.36 GB  46.5 GB
      128         896         7  8 blocks             7.25 GB          3.63 GB    7.25 GB          14.5 GB      11.6 GB   287 kB          248 kB                    1.36 GB  44.3 GB
    ... and 4 more groups, with less or equal memory
  
  --all prints every value, the plugins, the data, and the memory of all 1536 ranks
  
  not checked, because this machine lacks the device, the plugin or the data
    comm.plugin "comm-nccl" cannot be loaded here (is not a shared library (no ELF header)). Not checked: its keys and whether it supports the run. The schedule is verified for the weakest guarantees.
    kernels.plugin "kernels-fused" cannot be loaded here (is not a shared library (no ELF header)). Not checked: its keys and whether it supports the run, and what the communicators support on its device. Its scratch memory is not counted.
    data: data.path is not given
  
  run.toml: configuration is valid; the devices and memory of this machine were not checked

Memory of the host is not in the total, and is not a reason why a run does not fit:

  $ triax check run.toml --no-device --all | sed -n '/^memory of each rank/,/^$/p' | sed -n 3p | grep -o '[^ ]* GB$'
  61.8 GB
  $ triax check run.toml --no-device --set parallel.data=1 --memory 1GiB 2>&1 |
  >   grep -oE 'largest: [a-z]+|optimizer state|checkpoint staging'
  largest: activations
  optimizer state

Sizes whose product has more than 63 bits are sized:

  $ triax check run.toml --no-device --set model.vocab=2147483647 --set model.sequence=1000000000 | grep '^peak memory'
  peak memory: rank 1408 and 111 other ranks, 538 PB each

To be trained, it needs all of them:

  $ triax check run.toml
  {source}/examples/gpt3-175b.toml:31:10: comm.plugin "comm-nccl" cannot be used: {folder}/comm-nccl.so: is not a shared library (no ELF header)
    a plugin is the shared library that triax_add_plugin() builds
  {source}/examples/gpt3-175b.toml:34:10: kernels.plugin "kernels-fused" cannot be used: {folder}/kernels-fused.so: is not a shared library (no ELF header)
    a plugin is the shared library that triax_add_plugin() builds
  run.toml: data.path is missing (token files to train on; data.paths: several)
    set data.path to the prefix of token files; triax data prepare makes them
  [2]

A misspelled plugin is an error, not a plugin of another machine:

  $ set -o pipefail
  $ triax check run.toml --no-device --set comm.plugin=comm-ncll --set kernels.plugin=comm-nccl 2>&1 |
  >   sed 's/did you mean .*/did you mean .../'
  --set: comm.plugin "comm-ncll" was not found; did you mean ...
    looked in: {folder} (plugins.path, run.toml:3), {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH
  --set: kernels.plugin "comm-nccl" cannot be used: {folder}/comm-nccl.so: is not a shared library (no ELF header)
    a plugin is the shared library that triax_add_plugin() builds
  [2]

Data that are not here are left out where the vocabulary is given, and a part of them is an error:

  $ elsewhere="--no-device --set parallel.data=1 --set data.path=elsewhere"
  $ triax check run.toml $elsewhere | grep -E 'elsewhere|^data'
    data: data.path names {folder}/elsewhere, but {folder}/elsewhere.bin and .idx do not exist
  $ > elsewhere.idx
  $ triax check run.toml $elsewhere
  --set: data.path: {folder}/elsewhere.bin does not exist
    prepare the dataset again with its tokenizer: triax data prepare --input FILE... --output {folder}/elsewhere --tokenizer NAME --force
  [2]

The schedule needs the scheduler alone:

  $ for plugin in model-gpt optim-adamw; do echo "not a library" > $plugin.so; done
  $ times="--forward-ms 10 --input-ms 10 --weight-ms 10 --link-ms 1"
  $ triax simulate run.toml $times
  sched-1f1b: p = 12, m = 96, v = 1; F 10 ms, I 10 ms, W 10 ms, link 1 ms
  makespan 3406 ms, from the first start to the last end
  active time 3406 ms, the longest of a rank; work 2880 ms
  bubble / active time 0.1544; bubble / work 0.1826
  peak of microbatches in flight, by rank: 12 11 10 9 8 7 6 5 4 3 2 1
  $ triax schedule run.toml --format csv | wc -l
  12
  $ echo "not a library" > sched-1f1b.so
  $ triax simulate run.toml $times
  {source}/examples/gpt3-175b.toml:28:10: schedule.plugin "sched-1f1b" cannot be used: {folder}/sched-1f1b.so: is not a shared library (no ELF header)
    a plugin is the shared library that triax_add_plugin() builds
  [2]
