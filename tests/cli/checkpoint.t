# SPDX-License-Identifier: Apache-2.0

# triax checkpoint

  $ . "$TESTDIR/setup"
  $ set -o pipefail

Times, and numbers that depend on the machine's rounding, are left out:

  $ timeless() { sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/{time}/g'; }
  $ steady() {
  >   sed -E -e 's/ [0-9,]+ +[0-9.]+(e-[0-9]+)? +[0-9.]+(e-[0-9]+)?$/ {n}  {largest}  {relative}/' -e 's/([^ ])   +/\1  /g'
  > }

Two ranks save every two steps, and keep three checkpoints:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > data = 2
  > [train]
  > steps = 8
  > [checkpoint]
  > every = 2
  > keep = 3
  > [run]
  > dir = "run"
  > END
  $ triax train run.toml > /dev/null 2>&1
  $ at() { echo run/checkpoints/step-0000000$1; }

## list and show

A run is its folder, its TOML, or the folder of its checkpoints:

  $ triax checkpoint list run.toml | timeless
  {folder}/run/checkpoints
    step  tokens    size               created  triax version
       4     512  426 kB  {time}  {version}
       6     768  426 kB  {time}  {version}
       8   1,024  426 kB  {time}  {version}
  newest: step 8 (checksums not verified; triax checkpoint verify RUN)
  $ for run in run run/ run/checkpoints; do triax checkpoint list $run | tail -n +2 | cksum; done | uniq | wc -l
  1
  $ triax checkpoint list run --json | timeless
  {"folder":"run/checkpoints","continues_from":"run/checkpoints/step-00000008","checkpoints":[{"step":4,"folder":"run/checkpoints/step-00000004","tokens":512,"bytes":425504,"created":"{time}","engine":"{version}"},{"step":6,"folder":"run/checkpoints/step-00000006","tokens":768,"bytes":425504,"created":"{time}","engine":"{version}"},{"step":8,"folder":"run/checkpoints/step-00000008","tokens":1024,"bytes":425504,"created":"{time}","engine":"{version}"}],"incomplete":[]}

One that was copied in part is named, and not used:

  $ cp -r run part
  $ mkdir part/checkpoints/step-00000012
  $ triax checkpoint list part | tail -n 2
  step-00000012: incomplete, not used (no manifest.json)
  newest: step 8 (checksums not verified; triax checkpoint verify RUN)
  $ triax checkpoint list part --json | grep -o '"incomplete.*'
  "incomplete":["part/checkpoints/step-00000012"]}
  $ triax train run.toml --set run.dir=part --set train.steps=9 2>&1 | grep -oE 'step-00000012 is.*|continues after step .'
  step-00000012 is not used: it has no manifest.json, so it is not complete
  continues after step 8

  $ triax checkpoint show run | timeless
  run/checkpoints/step-00000008
    step             8
    tokens           1,024 in 32 samples
    created          {time} by triax {version}
    parameters       34,720
    size             426 kB in 4 files: weights 139 kB, m 139 kB, v 139 kB
    layout           data 2, pipeline 1, tensor 1
    plugins          comm-local {version}, kernels-reference {version}, model-gpt {version}, optim-adamw {version}, sched-gpipe {version}
  
    parameter                                 tensors  shape      type  states
    block 0 to 1/attention.norm.bias                2  [32]       f32   master, m, v
    block 0 to 1/attention.norm.weight              2  [32]       f32   master, m, v
    block 0 to 1/attention.projection.bias          2  [32]       f32   master, m, v
    block 0 to 1/attention.projection.weight        2  [32, 32]   f32   master, m, v
    block 0 to 1/attention.qkv.bias                 2  [96]       f32   master, m, v
    block 0 to 1/attention.qkv.weight               2  [96, 32]   f32   master, m, v
    block 0 to 1/mlp.down.bias                      2  [32]       f32   master, m, v
    block 0 to 1/mlp.down.weight                    2  [32, 128]  f32   master, m, v
    block 0 to 1/mlp.norm.bias                      2  [32]       f32   master, m, v
    block 0 to 1/mlp.norm.weight                    2  [32]       f32   master, m, v
    block 0 to 1/mlp.up.bias                        2  [128]      f32   master, m, v
    block 0 to 1/mlp.up.weight                      2  [128, 32]  f32   master, m, v
    embedding/positions.weight                      1  [32, 32]   f32   master, m, v
    embedding/tokens.weight                         1  [257, 32]  f32   master, m, v
    head/norm.bias                                  1  [32]       f32   master, m, v
    head/norm.weight                                1  [32]       f32   master, m, v
  --all: every tensor, the files, and the keys of the run
  $ triax checkpoint show $(at 4) --all | grep -E 'step|block 1/mlp.up|safetensors|data.path|train.steps'
  run/checkpoints/step-00000004
    step             4
    block 1/mlp.up.bias                  [128]      f32   master, m, v
    block 1/mlp.up.weight                [128, 32]  f32   master, m, v
    weights-00000.safetensors     74,744
    optimizer-00000.safetensors  149,600
    weights-00001.safetensors     67,040
    optimizer-00001.safetensors  134,120
    data.path                      = "{folder}/text"
    data.paths                     = []
    lr.warmup_steps                = 0
    memory.offload_warmup_steps    = 40
    train.steps                    = 8
  $ triax checkpoint show run.toml --json | python3 -c 'import json, sys
  > of = json.load(sys.stdin)
  > print(*of)
  > print(of["step"], of["tokens"], of["parameters"], of["layout"], of["tensors"][1], of["config"]["train.steps"])'
  folder step samples tokens optimizer_steps loss_scale plugin_states created engine parameters layout plugins mean_of files tensors config
  8 1024 34720 {'data': 2, 'pipeline': 1, 'tensor': 1} {'parameter': 'embedding/positions.weight', 'state': 'master', 'dtype': 'f32', 'shape': [32, 32]} 8

## verify

  $ triax checkpoint verify run
  run/checkpoints/step-00000008: 426 kB in 4 files: all checksums match
  $ triax checkpoint verify run --json
  {"folder":"run/checkpoints/step-00000008","files":4,"bytes":425504,"problems":[]}

All damage is reported:

  $ cp -r run damaged
  $ flip() { printf '\377' | dd of="damaged/checkpoints/step-00000008/$1" bs=1 seek="$2" conv=notrunc status=none; }
  $ flip weights-00000.safetensors 70003
  $ truncate -s -1 damaged/checkpoints/step-00000008/optimizer-00000.safetensors
  $ rm damaged/checkpoints/step-00000008/weights-00001.safetensors
  $ triax checkpoint verify damaged
  damaged/checkpoints/step-00000008/weights-00000.safetensors: checksum mismatch in tensor "block 1/mlp.up.weight[0:60, 0:32]"
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  damaged/checkpoints/step-00000008/optimizer-00000.safetensors: has 149599 bytes, expected 149600
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  damaged/checkpoints/step-00000008/weights-00001.safetensors: does not exist
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  [1]
  $ triax checkpoint verify damaged --json 2> /dev/null
  {"folder":"damaged/checkpoints/step-00000008","files":4,"bytes":425504,"problems":[{"file":"damaged/checkpoints/step-00000008/weights-00000.safetensors","message":"checksum mismatch in tensor \"block 1/mlp.up.weight[0:60, 0:32]\"","hint":"the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6"},{"file":"damaged/checkpoints/step-00000008/optimizer-00000.safetensors","message":"has 149599 bytes, expected 149600","hint":"the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6"},{"file":"damaged/checkpoints/step-00000008/weights-00001.safetensors","message":"does not exist","hint":"the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6"}]}
  [1]
  $ sed -i '1s/{/[/' damaged/checkpoints/step-00000008/manifest.json
  $ triax checkpoint verify damaged
  damaged/checkpoints/step-00000008/manifest.json: is not valid JSON at line 2, column 10
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  [1]
  $ triax checkpoint list damaged | timeless
  damaged/checkpoints/step-00000008/manifest.json: is not valid JSON at line 2, column 10
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  damaged/checkpoints
    step  tokens  size    created               triax version
       4  512     426 kB  {time}  {version}
       6  768     426 kB  {time}  {version}
       8  ?       ?       not readable
  [1]
  $ rm -r damaged/checkpoints/step-00000004 damaged/checkpoints/step-00000006
  $ triax checkpoint verify damaged
  damaged/checkpoints/step-00000008/manifest.json: is not valid JSON at line 2, column 10
    the checkpoint is damaged: restore it from a backup, or begin anew with triax train --fresh, because no earlier checkpoint exists
  [1]
  $ triax train run.toml --set run.dir=damaged --set train.steps=9
  {folder}/damaged/checkpoints/step-00000008/manifest.json: is not valid JSON at line 2, column 10
    the checkpoint is damaged: restore it from a backup, or begin anew with triax train --fresh, because no earlier checkpoint exists
  [2]
  $ triax checkpoint show damaged
  damaged/checkpoints/step-00000008/manifest.json: is not valid JSON at line 2, column 10
    the checkpoint is damaged: restore it from a backup, or begin anew with triax train --fresh, because no earlier checkpoint exists
  [2]

## diff

  $ triax checkpoint diff $(at 8) run.toml
  first   run/checkpoints/step-00000008
  second  {folder}/run/checkpoints/step-00000008
  bit-equal: 84 tensors, and the state of training
  $ triax checkpoint diff $(at 6) $(at 8) | steady | grep -vE '^ +(embedding|block|head)'
  first  run/checkpoints/step-00000006
  second  run/checkpoints/step-00000008
    state of training  first  second
    optimizer_steps  6  8
    samples  24  32
    step  6  8
    tokens  768  1024
    tensor  type  differing elements  max abs difference  max rel difference
    ... and 64 more, which differ less: --all
  84 of 84 tensors in both differ
  [1]
  $ triax checkpoint diff $(at 6) $(at 8) --all --weights | steady | grep -E 'block 1/mlp.up|differ'
    tensor  type  differing elements  max abs difference  max rel difference
    block 1/mlp.up.bias (master)  f32[128]  {n}  {largest}  {relative}
    block 1/mlp.up.weight (master)  f32[128, 32]  {n}  {largest}  {relative}
  28 of 28 tensors of weights in both differ
  [1]

Another layout gives the same tensors, as far as the order of sums is the same:

  $ triax train run.toml --set parallel.pipeline=2 --set run.dir=other > /dev/null 2>&1
  $ triax checkpoint diff run other
  first   run/checkpoints/step-00000008
  second  other/checkpoints/step-00000008
    key of the run     first  second
    parallel.pipeline      1       2
  bit-equal: 84 tensors, and the state of training
  $ triax checkpoint diff run other --json
  {"first":"run/checkpoints/step-00000008","second":"other/checkpoints/step-00000008","equal":true,"compared":84,"config":[{"key":"parallel.pipeline","first":"1","second":"2"}],"training":[],"only_first":[],"only_second":[],"tensors":[]}

Models of other sizes:

  $ triax train run.toml --set model.layers=1 --set model.hidden=16 --set run.dir=small > /dev/null 2>&1
  $ triax checkpoint diff run small --weights | grep -vE 'block 0/.*(norm|bias)|embedding'
  first   run/checkpoints/step-00000008
  second  small/checkpoints/step-00000008
    key of the run  first  second
    model.hidden       32      16
    model.layers        2       1
    12 tensors are only in the first: block 1/attention.norm.bias (master), block 1/attention.norm.weight (master), block 1/attention.projection.bias (master), block 1/attention.projection.weight (master), ...
    tensor                                        type                           differing elements  max abs difference  max rel difference
    block 0/attention.projection.weight (master)  f32[32, 32] and f32[16, 16]    ?                   ?                   ?
    block 0/attention.qkv.weight (master)         f32[96, 32] and f32[48, 16]    ?                   ?                   ?
    block 0/mlp.down.weight (master)              f32[32, 128] and f32[16, 64]   ?                   ?                   ?
    block 0/mlp.up.weight (master)                f32[128, 32] and f32[64, 16]   ?                   ?                   ?
    head/norm.bias (master)                       f32[32] and f32[16]            ?                   ?                   ?
    head/norm.weight (master)                     f32[32] and f32[16]            ?                   ?                   ?
  16 of 16 tensors of weights in both differ
  [1]
  $ triax checkpoint diff run small --json | python3 -c 'import json, sys
  > of = json.load(sys.stdin)
  > print(of["equal"], of["compared"], len(of["only_first"]), of["tensors"][0])'
  False 48 36 {'parameter': 'block 0/attention.norm.bias', 'state': 'master', 'first': 'f32[32]', 'second': 'f32[16]'}
  [1]

Checkpoints that cannot be compared:

  $ triax checkpoint diff run damaged
  damaged/checkpoints/step-00000008/manifest.json: is not valid JSON at line 2, column 10
    the checkpoint is damaged: restore it from a backup, or begin anew with triax train --fresh, because no earlier checkpoint exists
  [2]
  $ triax checkpoint diff run nothing
  nothing: does not exist
    name a checkpoint folder (step-N), a run's folder, or its TOML file
  [2]

## convert

  $ triax checkpoint convert run weights.safetensors
  weights.safetensors: 34,720 parameters in 28 tensors, 141 kB
  $ triax checkpoint convert $(at 8) half.safetensors --dtype bf16
  half.safetensors: 34,720 parameters in 28 tensors, 72 kB
  $ triax checkpoint convert other other.safetensors
  other.safetensors: 34,720 parameters in 28 tensors, 141 kB
  $ cmp weights.safetensors other.safetensors
  $ python3 - << 'END'
  > import json, struct
  > file = open("half.safetensors", "rb").read()
  > size, = struct.unpack("<Q", file[:8])
  > header = json.loads(file[8:8 + size])
  > print(header["__metadata__"]["step"], header["__metadata__"]["tokens"])
  > print(list(header)[1], header["block 0/attention.norm.bias"])
  > END
  8 1024
  block 0/attention.norm.bias {'dtype': 'BF16', 'shape': [32], 'data_offsets': [0, 64]}

A file is not replaced unless you ask for that:

  $ triax checkpoint convert run weights.safetensors
  weights.safetensors: already exists
    add --force to replace it
  [2]
  $ triax checkpoint convert run weights.safetensors --force
  weights.safetensors: 34,720 parameters in 28 tensors, 141 kB
  $ triax checkpoint convert run run --force
  run: is a folder, not a regular file
    name another file
  [2]
  $ triax checkpoint convert run nowhere/weights.safetensors
  nowhere/weights.safetensors: cannot be written: No such file or directory
    create the folder nowhere, or name a file in an existing folder
  [1]
  $ triax checkpoint convert run /proc/weights.safetensors
  /proc/weights.safetensors: cannot be written: /proc is part of a kernel file system, where files cannot be created
    name a file in a folder where this user can create files
  [2]
  $ triax checkpoint convert run new.safetensors --dtype int8
  triax: --dtype must be f32, bf16, f16 or f64, got "int8"
    see: triax checkpoint convert --help
  [2]

An error leaves nothing behind:

  $ (ulimit -f 100; triax checkpoint convert run new.safetensors)
  new.safetensors: cannot be written: File too large
    raise the limit of a file's size (ulimit -f)
  [1]
  $ cp -r run torn
  $ truncate -s -1 torn/checkpoints/step-00000008/weights-00000.safetensors
  $ triax checkpoint convert torn new.safetensors
  torn/checkpoints/step-00000008/weights-00000.safetensors: has 74743 bytes, expected 74744
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  [1]
  $ ls -A | grep new
  [1]

## average

  $ triax checkpoint average mean --last 3 run.toml
  mean: the mean of 3 checkpoints, 34,720 parameters in 28 tensors, 141 kB
    {folder}/run/checkpoints/step-00000004
    {folder}/run/checkpoints/step-00000006
    {folder}/run/checkpoints/step-00000008
  $ triax checkpoint show mean | timeless | sed -n '1,/^$/p'
  mean
    step             8
    tokens           1,024 in 32 samples
    created          {time} by triax {version}
    parameters       34,720
    size             141 kB in 1 file: weights 139 kB
    layout           data 2, pipeline 1, tensor 1
    plugins          comm-local {version}, kernels-reference {version}, model-gpt {version}, optim-adamw {version}, sched-gpipe {version}
    mean of          {folder}/run/checkpoints/step-00000004
    mean of          {folder}/run/checkpoints/step-00000006
    mean of          {folder}/run/checkpoints/step-00000008
  
  $ triax checkpoint verify mean
  mean: 141 kB in 1 file: all checksums match
  $ triax checkpoint convert mean mean.safetensors
  mean.safetensors: 34,720 parameters in 28 tensors, 141 kB

The mean of equal weights is these weights:

  $ triax checkpoint average same $(at 8) run
  same: the mean of 2 checkpoints, 34,720 parameters in 28 tensors, 141 kB
    run/checkpoints/step-00000008
    run/checkpoints/step-00000008
  $ triax checkpoint diff same run --weights
  first   same
  second  run/checkpoints/step-00000008
  bit-equal: 28 tensors of weights

The mean of one checkpoint:

  $ triax checkpoint average one run
  one: the mean of 1 checkpoint, 34,720 parameters in 28 tensors, 141 kB
    run/checkpoints/step-00000008

A run can begin with it, but not continue from it:

  $ triax train run.toml --set checkpoint.from=mean --set checkpoint.load=weights --set run.dir=new 2>&1 | grep -o 'begins .*'
  begins with the weights of {folder}/mean (step 8)
  $ triax check run.toml --set checkpoint.from=mean --set run.dir=newer
  --set: checkpoint.from: {folder}/mean is an average of checkpoints: a run can load its weights, but cannot continue from it
    checkpoint.load = "all" is the default
    add --set checkpoint.load=weights
  [2]
  $ mkdir unsaved
  $ triax check run.toml --set checkpoint.from=unsaved --set run.dir=newer
  --set: checkpoint.from: {folder}/unsaved: is not a checkpoint: it has no manifest.json
    name a folder step-N; a save that was interrupted has no manifest.json
  [2]
  $ triax check run.toml --set checkpoint.from=gone --set run.dir=newer
  --set: checkpoint.from: {folder}/gone: does not exist
    name a folder step-N of a run's checkpoints
  [2]
  $ rmdir unsaved
  $ triax check run.toml --set checkpoint.from=mean --set run.dir=newer --set optimizer.plugin=optim-sgd
  --set: checkpoint.from: {folder}/mean is an average of checkpoints: a run can load its weights, but cannot continue from it
    checkpoint.load = "all" is the default
    add --set checkpoint.load=weights
  [2]

What cannot be averaged:

  $ triax checkpoint average no --last 4 run
  --last must be at most 3, the number of complete checkpoints in run/checkpoints, got 4
    to keep more of them, train with a larger checkpoint.keep
  [2]
  $ triax checkpoint average no --last 2 run other
  triax: with --last, name one run; got 2
    see: triax checkpoint average --help
  [2]
  $ triax checkpoint average no run '[run,other]'
  triax: CHECKPOINT cannot be "[run,other]", which is the form of a list; write "./[run,other]"
    see: triax checkpoint average --help
  [2]
  $ triax checkpoint average $(printf 'x%.0s' $(seq 300)) run 2>&1 | cut -c290- | head -n 1
  xxxxxxxxxxx: cannot be created: File name too long: 300 bytes; at most 229 are possible here
  [2]
  $ triax checkpoint average mean run
  mean: already exists
    remove it, or name another folder
  [2]
  $ triax checkpoint average run/checkpoints/step-00000010 run
  run/checkpoints/step-00000010: is a name that a run would take for its own checkpoint and continue from
    choose a name that is not step-N
  [2]
  $ triax checkpoint average no run small
  small/checkpoints/step-00000008: parameter "block 0/attention.norm.bias" is f32[16], but f32[32] in run/checkpoints/step-00000008
    average checkpoints of one model and one train.precision
  [2]
  $ triax checkpoint average no run torn
  torn/checkpoints/step-00000008/weights-00000.safetensors: has 74743 bytes, expected 74744
    the checkpoint is damaged: restore it from a backup, or move its folder away, so that triax train continues after step 6
  [1]
  $ (ulimit -f 100; triax checkpoint average no run)
  no/weights-00000.safetensors: cannot be written: File too large
    raise the limit of a file's size (ulimit -f)
  [1]
  $ ls -A | grep no
  [1]
