# SPDX-License-Identifier: Apache-2.0

# memory.offload: the optimizer's state in a file of each rank

  $ . "$TESTDIR/setup"
  $ disk='--set memory.offload=disk --set train.precision=bf16 --set kernels.plugin=kernels-cpu'

The buffers are a part of the memory, and the state is in files:

  $ triax check base.toml --no-device --set parallel.data=2 $disk | grep -E -A2 '^(peak )?memory|^offloaded'
  memory of each rank; all 2 ranks: 2.4 MB
    rank  working weights  gradients  offload staging  activations  batches  scratch   total
    0, 1          76.3 kB     193 kB           423 kB       229 kB  5.63 kB   271 kB  1.2 MB
  --
  peak memory: rank 0 and 1 other rank, 1.2 MB each
  activations of rank 0: 229 kB = 1 microbatch x (2 blocks x 67.1 kB + 1 head x 50.2 kB) + 45.1 kB of workspace
  offloaded state: rank 0 has most, a file of 423 kB; all ranks: 846 kB in runs/base
  communication of a step: a rank sends at most 193 kB over data (rank 0); all ranks send 385 kB
  
  $ triax check base.toml --no-device --set parallel.data=2 $disk --json | grep offload
      "memory.offload_activations": {
      "memory.offload": {
      "memory.offload_path": {
      "memory.offload_buffer_bytes": {
      "memory.offload_gradients": {
      "memory.offload_kernels": {
      "memory.offload_delayed_update": {
      "memory.offload_warmup_steps": {
          "offload staging": 423168,
        "offload_file_bytes": 423168
          "offload staging": 423168,
        "offload_file_bytes": 423168

A folder that cannot have the files, and a device that the state does not reach:

  $ triax check base.toml $disk --set memory.offload_path=text.txt/below
  --set: memory.offload_path = "{folder}/text.txt/below" cannot be written: {folder}/text.txt is a file, not a folder
    memory.offload_path is set by --set
    choose another folder with memory.offload_path
  [2]
  $ triax check base.toml $disk --set kernels.plugin=kernels-sim
  --set: memory.offload = "disk": kernels.plugin "kernels-sim" does not compute, so it has no state
    kernels.plugin is set by --set
    leave memory.offload out, or use another kernel set
  [2]

A host that updates the weights of a GPU, which is not installed here:

  $ echo "not a library" > kernels-fused.so
  $ on_gpu='--no-device --set kernels.plugin=kernels-fused --set plugins.path=["."] --set memory.offload=optimizer'
  $ triax check base.toml $on_gpu --set train.precision=bf16 | grep '^note:'
  [1]
  $ triax check base.toml $on_gpu --set train.precision=bf16 --json | grep -o '"optimizer state": 0'
  "optimizer state": 0
  $ traffic() { triax check base.toml $on_gpu --set train.precision=bf16 "$@" --json | grep -A2 '"host_traffic"' | grep -o '[0-9]*,*$' | tr -d ',' | tr '\n' ' '; }
  $ read gradients back <<< $(traffic) && echo $((gradients / back))
  2
  $ read gradients back <<< $(traffic --set memory.offload_gradients=bf16) && echo $((gradients / back))
  1
  $ triax check base.toml $on_gpu
  --set: memory.offload = "optimizer": with train.precision = "fp32" layers read the master weights, so these cannot leave the device
    train.precision = "fp32" is the default
    use train.precision "bf16" or "fp16", or leave memory.offload out
  [2]
  $ triax check base.toml $on_gpu --set train.precision=bf16 --set optimizer.plugin=optim-lamb 2>&1 | head -1
  --set: memory.offload = "optimizer" updates each element alone, but optimizer.plugin "optim-lamb" needs values of whole parameters, which its ranks would exchange between their devices
  $ triax check base.toml $on_gpu --set train.precision=bf16 --set memory.offload_kernels=missing 2>&1 | grep -o 'memory.offload_kernels "missing" was not found'
  memory.offload_kernels "missing" was not found

Updates that are one step late need a host that updates, and memory for all gradients:

  $ triax check base.toml --no-device --set memory.offload_delayed_update=true
  --set: memory.offload_delayed_update = true needs a host that updates the weights, but memory.offload = "none"
    memory.offload = "none" is the default
    use memory.offload = "optimizer", or leave memory.offload_delayed_update out
  [2]
  $ triax check base.toml --no-device --set memory.offload=optimizer --set memory.offload_delayed_update=true
  base.toml:19:10: memory.offload_delayed_update = true: kernels.plugin "kernels-reference" computes on the CPU, which cannot update the weights while it computes the next step
    memory.offload_delayed_update is set by --set
    leave memory.offload_delayed_update out, or use a kernel set for GPUs
  [2]
  $ staged() { triax check base.toml $on_gpu --set train.precision=bf16 "$@" --json | grep -o '"offload staging": [0-9]*' | head -1 | grep -o '[0-9]*$'; }
  $ test $(staged --set memory.offload_delayed_update=true --set memory.offload_buffer_bytes=4096) -gt $(staged --set memory.offload_buffer_bytes=4096) && echo larger
  larger
  $ triax check base.toml $on_gpu --set train.precision=bf16 --set memory.offload_warmup_steps=3 | grep '^note:'
  note: memory.offload_warmup_steps = 3 has no effect with memory.offload_delayed_update = false
  $ triax check base.toml $on_gpu --set train.precision=bf16 --set memory.offload_delayed_update=true --set train.steps=40 | grep '^note:'
  note: memory.offload_delayed_update = true has no effect with train.steps = 40 and memory.offload_warmup_steps = 40: no update is delayed

Keys without effect:

  $ triax check base.toml --no-device --set memory.offload=optimizer | grep '^note:'
  note: memory.offload = "optimizer" has no effect with kernels.plugin "kernels-reference": the optimizer's state is in the memory of the host, and its cores update the weights
  $ triax check base.toml --no-device --set memory.offload_gradients=bf16 --set memory.offload_kernels=kernels-reference | grep '^note:'
  note: memory.offload_gradients = "bf16" has no effect with memory.offload = "none"
  note: memory.offload_kernels = "kernels-reference" has no effect with memory.offload = "none"
  $ triax check base.toml --no-device --set memory.offload_path=state --set memory.offload_buffer_bytes=4096 | grep '^note:'
  note: memory.offload_path = "{folder}/state" has no effect with memory.offload = "none"
  note: memory.offload_buffer_bytes = 4096 has no effect with memory.offload = "none"
  $ triax check base.toml --no-device --set memory.offload=disk --set optimizer.plugin=optim-sgd | grep '^note:'
  note: memory.offload = "disk" has no effect: optimizer.plugin "optim-sgd" has no state, and layers read the master weights

Files disappear with the run, and its losses are those of a run in memory:

  $ triax train base.toml $disk --set train.steps=2 --set memory.offload_path=state --set run.dir=disk > /dev/null 2>&1
  $ ls -A state
  $ triax train base.toml $disk --set train.steps=2 --set memory.offload=none --set run.dir=memory > /dev/null 2>&1
  $ losses() { grep -o '"loss":[^,]*' $1/metrics.jsonl; }
  $ losses disk | wc -l
  2
  $ diff <(losses disk) <(losses memory)
