# SPDX-License-Identifier: Apache-2.0

# triax bench

Figures differ from run to run: they are replaced by `#`, and columns by one space.

  $ figures() { sed -E -e 's/^machine  .*/machine  {machine}/' -e 's/[0-9]+(\.[0-9]+)?( %|e-[0-9]+)?/#/g' -e 's/ +/ /g' -e 's/(\[#, #\]) [AB-]/\1 {side}/' -e 's/, default options; .*/, default options/'; }

## A communicator

Without a subcommand, and without a plugin:

  $ triax bench
  triax: missing subcommand; use one of: comm, kernels
    see: triax bench --help
  [2]
  $ triax bench comm
  triax: --plugin is required
    see: triax bench comm --help
  [2]

One side:

  $ triax bench comm --plugin comm-local --ranks 2 --sizes 4K:16K --turn-ms 0.1 --rounds 2 | figures
  all_reduce of f#, # ranks as threads of one process
  machine {machine}
  plugin comm-local {version}, default options
  timing # turns of at least # ms; the measuring loop adds # us to a call
  
   size mean us min us p# us p# us algbw busbw calls
   #K # # # # # # #
   #K # # # # # # #
   #K # # # # # # #
  
  A call takes as long as on its slowest rank. Bandwidths are in GB/s (#^# bytes). All results were correct.

As one JSON object, which goes to a file too:

  $ triax bench comm --plugin comm-local --op reduce_scatter --dtype bf16 --sizes 64 --turn-ms 0 --rounds 1 --json --output out.json > shown.json
  $ cmp out.json shown.json
  $ python3 -c 'import json; o = json.load(open("out.json")); print(*o); print(o["op"], o["dtype"], o["ranks"], o["sides"][0]["plugin"], o["sizes"][0]["bytes"], *o["sizes"][0]["sides"][0])'
  triax machine op dtype window ranks ranks_are_threads rounds turn_ms loop_overhead_us sides sizes
  reduce_scatter bf16 2 comm-local 64 calls mean_us min_us p50_us p99_us algbw_gb_s busbw_gb_s

A measurement that is refused keeps an older file. A file that cannot be written is an error after the result:

  $ triax bench comm --plugin comm-local --sizes 4Q --output out.json 2> refused
  [2]
  $ cmp out.json shown.json
  $ triax bench comm --plugin comm-local --sizes 64 --turn-ms 0 --rounds 1 --output /dev/full > out
  --output: /dev/full: cannot be written: No space left on device
  [1]
  $ tail -n 1 out
  A call takes as long as on its slowest rank. Bandwidths are in GB/s (10^9 bytes). All results were correct.

## Refused measurements of a communicator

  $ triax bench comm --plugin comm-locla 2>&1 | sed 's/ or "comm-nccl"//' # which not every build has
  --plugin: plugin "comm-locla" was not found; did you mean "comm-local"?
    looked in: {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with TRIAX_PLUGIN_PATH
  $ triax bench comm --plugin ./mine.so
  --plugin: ./mine.so: no such file
    triax plugins list shows the plugins that are found by name
  [2]
  $ triax bench comm --plugin kernels-cpu
  --plugin kernels-cpu is a plugin of kind kernels, not communicator
    installed communicators: {names}
  [2]
  $ triax bench comm --plugin comm-local --op all_reduse
  triax: --op must be all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, exchange or send, got "all_reduse"
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --ranks 1
  triax: --ranks must be an integer in [2, 1024], got "1"
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --sizes 4Q
  --sizes: "4Q" is not a size
    write sizes as 4K,64K,1M, or a range 4K:64M whose sizes double, or 4K:64M:4
  [2]
  $ triax bench comm --plugin comm-local --sizes 64K:4K
  --sizes: the range "64K:4K" has no sizes: 64K is more than 4K
    write sizes as 4K,64K,1M, or a range 4K:64M whose sizes double, or 4K:64M:4
  [2]
  $ triax bench comm --plugin comm-local --sizes 4K,6K --ranks 5 --op all_gather
  --sizes 4K: 4096 is not divisible by 20 bytes (one f32 for each of 5 ranks)
    use sizes that are multiples of 20: --sizes 4100
  [2]
  $ triax bench comm --plugin comm-local --dtype u8
  --dtype u8: all_reduce cannot add bytes
    use --dtype f32, or --op all_gather, all_to_all, broadcast or exchange
  [2]
  $ triax bench comm --plugin comm-local --dtype bf16 --ranks 513
  --dtype bf16: sums of 513 ranks are not exact, so the result cannot be checked
    use --dtype f32, or at most 512 ranks
  [2]
  $ triax bench comm --plugin comm-local --op send --ranks 3
  --op send needs an even number of ranks, got 3: it pairs rank 0 with rank 1, and so on
    use an even number of ranks
  [2]
  $ triax bench comm --plugin comm-local --vs comm-local
  the two sides are equal: both are comm-local with the same options
    name another plugin with --vs, or give side B another option with --set-b comm.KEY=VALUE; with --same, equal sides show how much this machine varies
  [2]
  $ triax bench comm --plugin comm-local --set comm.wait=spin
  --set comm.wait: comm-local has no such option
    triax plugins describe comm-local lists its options
  [2]
  $ triax bench comm --plugin comm-local --set-a comm.wait=spin
  --set-a needs a side B
    use --set for one side, or add --vs PLUGIN or --set-b comm.KEY=VALUE
  --set-a comm.wait: comm-local has no such option
    triax plugins describe comm-local lists its options
  [2]
  $ triax bench comm --plugin comm-local --set wait=spin
  triax: --set must be comm.KEY=VALUE, got "wait=spin"
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --sizes 4K --sizes 8K
  triax: --sizes was given 2 times, but accepts one value
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --vs ""
  triax: --vs must not be empty
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --output ""
  triax: --output must not be empty
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --rounds 0
  triax: --rounds must be an integer in [1, 1000], got "0"
    see: triax bench comm --help
  [2]
  $ triax bench comm --plugin comm-local --output none/out.json
  --output: folder "none" does not exist
    name a file in a folder that exists and that you can write to
  [2]
  $ triax bench comm --plugin comm-local --output /proc/out.json
  --output: /proc/out.json cannot be written: /proc is part of a kernel file system, where files cannot be created
    name a file in a folder that exists and that you can write to
  [2]
  $ touch text.so; mkdir folder.so
  $ triax bench comm --plugin ./text.so
  --plugin: {folder}/text.so: is not a shared library (no ELF header)
    the file is empty: build the plugin again
  [2]
  $ triax bench comm --plugin ./folder.so
  --plugin: {folder}/folder.so: is a folder, not a library
    name a library in it
  [2]
  $ triax bench comm --plugin comm-local --sizes 1000000G 2>&1 | sed 's/has .* of/has {size} of/'
  --sizes 1000000G: the buffers of 2 ranks need 4.29 PB, but this machine has {size} of free memory
    use smaller sizes or fewer ranks
  $ TRIAX_PLUGIN_PATH=none triax bench comm --plugin comm-local
  TRIAX_PLUGIN_PATH names none, which is not a folder
    create it, or remove it from the variable
  [2]
  $ triax bench comm --plugin comm-local --kernels kernels-gpu
  --kernels: plugin "kernels-gpu" was not found; did you mean "kernels-cpu" or "kernels-sim"?
    looked in: {plugins}
    installed kernel sets: {names}
    correct the name, or name the plugin's folder with TRIAX_PLUGIN_PATH
  [2]
  $ triax bench comm --plugin comm-local --vs comm-local --json
  the two sides are equal: both are comm-local with the same options
    name another plugin with --vs, or give side B another option with --set-b comm.KEY=VALUE; with --same, equal sides show how much this machine varies
  {"errors":[{"code":"conflict","keys":["--vs"],"file":null,"line":null,"column":null,"message":"the two sides are equal: both are comm-local with the same options","hint":"name another plugin with --vs, or give side B another option with --set-b comm.KEY=VALUE; with --same, equal sides show how much this machine varies"}]}
  [2]

Ranks that a launcher has started:

  $ RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 triax bench comm --plugin comm-local
  environment of torchrun: MASTER_PORT is missing
    set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or unset all of them to start the ranks here
  [2]

## A kernel set

One set, at shapes that are given as flags:

  $ small="--hidden 32 --heads 2 --sequence 16 --vocab 64 --product 32 --copied-mib 1 --turn-ms 0"
  $ triax bench kernels --plugin kernels-reference $small --rounds 1 | figures
  operations of a GPT in fp#: hidden #, heads #, sequence #, micro #, vocab #, dropout #
  machine {machine}
  plugin kernels-reference {version}, default options
  device host memory, operations in the calling thread; product of #: # GFLOP/s, copy of # MiB: # GB/s
  timing # turns of at least # ms, at most # CPU threads
  
  operation us rate roofline
  linear_fwd/qkv # # GFLOP/s #
  linear_bwd_input/qkv # # GFLOP/s #
  linear_bwd_weight/qkv # # GFLOP/s #
  linear_fwd/projection # # GFLOP/s #
  linear_bwd_input/projection # # GFLOP/s #
  linear_bwd_weight/projection # # GFLOP/s #
  linear_fwd/up # # GFLOP/s #
  linear_bwd_input/up # # GFLOP/s #
  linear_bwd_weight/up # # GFLOP/s #
  act_bwd/up # # GB/s #
  linear_fwd/down # # GFLOP/s #
  linear_bwd_input/down # # GFLOP/s #
  linear_bwd_weight/down # # GFLOP/s #
  linear_bwd_input_gelu/down # # GFLOP/s #
  attention_fwd/plain # # GFLOP/s #
  attention_bwd/plain # # GFLOP/s #
  attention_fwd/dropout # # GFLOP/s #
  attention_bwd/dropout # # GFLOP/s #
  norm_fwd # # GB/s #
  norm_bwd_input # # GB/s #
  norm_bwd_weight # # GB/s #
  bias_dropout_add # # GB/s #
  bias_dropout_add_norm # # GB/s #
  bias_bwd # # GB/s #
  add # # GB/s #
  embed_fwd # # GB/s #
  embed_bwd # # GB/s #
  xent_fused # # GB/s #
  xent_bwd # # GB/s #
  adamw # # GB/s #
  multi_adamw # # GB/s #
  sum_squares # # GB/s #
  
  roof: least time for the arithmetic (of attention: of visible scores), or for the bytes read and written, at the rates of product and copy, divided by the time.

Two sets, and some operations:

  $ triax bench kernels --plugin kernels-cpu --vs kernels-reference $small --rounds 4 --op norm_fwd --op linear_fwd | figures
  operations of a GPT in fp#: hidden #, heads #, sequence #, micro #, vocab #, dropout #
  machine {machine}
  A kernels-cpu {version}, default options
  B kernels-reference {version}, default options
  device host memory, operations in the calling thread; product of #: # GFLOP/s, copy of # MiB: # GB/s
  timing # rounds A B B A, turns of at least # ms, at most # CPU threads
  
  operation A us A roof B us B roof B/A # interval faster differ
  linear_fwd/qkv # # # # # [#, #] {side} #
  linear_fwd/projection # # # # # [#, #] {side} #
  linear_fwd/up # # # # # [#, #] {side} #
  linear_fwd/down # # # # # [#, #] {side} #
  norm_fwd # # # # # [#, #] {side} #
  
  roof: least time for the arithmetic (of attention: of visible scores), or for the bytes read and written, at the rates of product and copy, divided by the time.
  B/A: time of B / time of A. faster: the side that is faster by more than half a percent, with a confidence of #; -: none is shown.
  differ: largest difference of the results / largest value.

At the shapes of a run:

  $ . "$TESTDIR/setup"
  $ triax bench kernels base.toml --plugin kernels-cpu --op add --product 32 --copied-mib 1 --turn-ms 0 --rounds 1 --threads 1 | figures
  operations of a GPT in fp#: hidden #, heads #, sequence #, micro #, vocab #, dropout #
  machine {machine}
  plugin kernels-cpu {version}, default options
  device host memory, operations in the calling thread; product of #: # GFLOP/s, copy of # MiB: # GB/s
  timing # turns of at least # ms, at most # CPU thread
  
  operation us rate roofline
  add # # GB/s #
  
  roof: least time for the arithmetic (of attention: of visible scores), or for the bytes read and written, at the rates of product and copy, divided by the time.

As one JSON object:

  $ triax bench kernels --plugin kernels-cpu --vs kernels-reference $small --rounds 4 --op add --json > out.json
  $ python3 -c 'import json; o = json.load(open("out.json")); print(*o); print(*o["operations"][0]); print(*o["operations"][0]["ratio"])'
  triax machine precision model threads rounds turn_ms sides operations
  name flops bytes sides ratio difference
  value interval_95 interval_99 is_significant log_deviation rounds

## Refused measurements of a kernel set

  $ triax bench kernels --plugin kernels-cup
  --plugin: plugin "kernels-cup" was not found; did you mean "kernels-cpu" or "kernels-sim"?
    looked in: {plugins}
    installed kernel sets: {names}
    correct the name, or name the plugin's folder with TRIAX_PLUGIN_PATH
  [2]
  $ triax bench kernels --plugin kernels-sim
  --plugin kernels-sim: it models the time of operations, but does not compute them
    name a kernel set that computes, kernels-cpu for example
  [2]
  $ triax bench kernels --plugin kernels-reference --precision bf16
  --plugin kernels-reference: kernels-reference computes in fp32 or fp64 throughout; bf16 with master weights in fp32 was requested
    use train.precision fp32 or fp64
  [2]
  $ triax bench kernels --plugin kernels-cpu --op adamx --hidden 30 --heads 4
  --op adamx is not an operation of a GPT
    did you mean adamw?
  --hidden 30 is not divisible by --heads 4
  [2]
  $ triax bench kernels --plugin kernels-cpu --hidden 1048576 --sequence 1048576 --micro 1048576
  the buffers of the operations need 327 EB, but at most 1 PB are allowed
    use a smaller --hidden, --sequence, --micro, --vocab, --product or --copied-mib, or name operations with --op
  [2]
  $ triax bench kernels --plugin kernels-cpu --hidden 1048576 2>&1 | sed 's/has .* of/has {size} of/'
  the buffers of the operations need 387 TB, but this machine has {size} of free memory
    use a smaller --hidden, --sequence, --micro, --vocab, --product or --copied-mib, or name operations with --op
  $ triax bench kernels --plugin kernels-cpu --vs kernels-reference --rounds 3
  --rounds must be at least 4 to compare two sides, got 3
    fewer rounds have no useful confidence interval
  [2]
  $ triax bench kernels --plugin kernels-cpu --vs kernels-cpu
  the two sides are equal: both are kernels-cpu with the same options
    name another plugin with --vs, or give side B another option with --set-b kernels.KEY=VALUE; with --same, equal sides show how much this machine varies
  [2]
  $ triax bench kernels none.toml --plugin kernels-cpu
  none.toml: does not exist
    correct the path
  [2]

An error of the run has its position, in JSON too:

  $ sed 's/^heads = .*/heads = "two"/' base.toml > odd.toml
  $ triax bench kernels odd.toml --plugin kernels-cpu --json
  odd.toml:5:9: model.heads = "two" is not an integer
    write an integer (1..1000000)
  {"errors":[{"code":"wrong-type","keys":["model.heads"],"file":"odd.toml","line":5,"column":9,"message":"model.heads = \"two\" is not an integer","hint":"write an integer (1..1000000)"}]}
  [2]
