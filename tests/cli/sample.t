# SPDX-License-Identifier: Apache-2.0

# Texts of eval.sample

  $ . "$TESTDIR/setup"
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 4
  > sequence = 16
  > [batch]
  > global = 4
  > [train]
  > steps = 20
  > [data]
  > validation = "text"
  > [eval]
  > every = 10
  > batches = 1
  > sample = "1 12\n13 "
  > sample_tokens = 6
  > END
  $ seq 10 99 | tr '\n' ' ' > text.txt
  $ triax data prepare --input text.txt --output text --tokenizer byte --force > /dev/null
  $ train() {
  >   local folder=$1
  >   shift
  >   triax train run.toml --set run.dir="$folder" "$@" > out.txt 2>&1 || cat out.txt
  >   grep -o '"sample":.*"' "$folder/metrics.jsonl"
  > }

Each evaluation continues the prompt, in the log and in the record of the step:

  $ train one
  "sample":"iF 8\xca\x94" (esc)
  "sample":"54 297"
  $ sed -nE 's/^[0-9-]+ [0-9:.]+ (.*sample after)/\1/p' out.txt
  info rank 0: sample after step 10: 1 12\\n13 iF 8\xca\x94 (esc)
  info rank 0: sample after step 20: 1 12\n13 54 297

The text is the same on every layout, with every schedule and on processes:

  $ train processes --set parallel.pipeline=2 --set parallel.chunks=2 --set schedule.plugin=sched-interleaved --set comm.plugin=comm-ucx
  "sample":"iF 8\xca\x94" (esc)
  "sample":"54 297"
  $ train v --set parallel.tensor=2 --set parallel.sequence=true --set parallel.pipeline=2 --set parallel.chunks=2 --set schedule.plugin=sched-zb-v
  "sample":"iF 8\xca\x94" (esc)
  "sample":"54 297"
  $ train sharded --set parallel.data=2 --set optimizer.shard=gradients --set memory.recompute=full
  "sample":"iF 8\xca\x94" (esc)
  "sample":"54 297"

  $ train parameters --set parallel.data=2 --set optimizer.shard=parameters --set parallel.chunks=4 --set schedule.plugin=sched-breadth-first
  "sample":"iF 8\xca\x94" (esc)
  "sample":"54 297"

A run that continues makes the same:

  $ train stopped --set train.stop_at=15
  "sample":"iF 8\xca\x94" (esc)
  $ train stopped
  "sample":"iF 8\xca\x94" (esc)
  "sample":"54 297"

With temperature 0 it is the most likely text, that of triax generate:

  $ train likely --set eval.sample_temperature=0 | tail -1 | tr ' ' _
  "sample":"______"
  $ printf '1 12\n13 ' | triax generate likely --file - --max-tokens 6 2> /dev/null | tr ' ' _
  ______

It needs memory, which is planned:

  $ triax check run.toml --set parallel.pipeline=2 --set schedule.plugin=sched-1f1b --all | grep -A 2 eval.sample
    rank  weights  gradients  optimizer state  activations  batches  scratch  text of eval.sample   total
       0   146 kB     187 kB           277 kB       325 kB  5.63 kB  4.35 kB              44.8 kB  990 kB
       1   145 kB     186 kB           274 kB       237 kB  5.63 kB  4.35 kB              73.5 kB  925 kB

A prompt may have as many tokens as the model has positions, and is continued by one:

  $ train full --set eval.sample_tokens=20 --set eval.sample=1234567890123456
  "sample":"0"
  "sample":" "
  $ triax check run.toml --set eval.sample=12345678901234567
  --set: eval.sample: the prompt has 17 tokens, but the model has 16 positions
    use a shorter prompt
  [2]

What cannot be is refused before anything starts:

  $ triax check run.toml --set eval.every=0
  run.toml:14:10: eval.sample has no effect with eval.every = 0: there are no evaluations
    eval.every is set by --set
    set eval.every, or remove eval.sample
  [2]
  $ triax check run.toml --set eval.sample="a prompt that is too long"
  --set: eval.sample: the prompt has 25 tokens, but the model has 16 positions
    use a shorter prompt
  [2]
  $ triax check run.toml --set kernels.plugin=kernels-sim 2>&1 | tail -2
    kernels.plugin is set by --set
    use another kernel set, or remove eval.sample
  $ triax check run.toml --set eval.sample_tokens=0
  --set: eval.sample_tokens must be in [1, 2147483647], got 0
  [2]
  $ triax check run.toml --set model.vocab=200
  base.toml:29:8: data.path: {folder}/text.bin: token 270 has id 256, which is not in [0, 199] (model.vocab = 200)
    remove model.vocab: the default is 257, from text.json; or, for an imported model, use data of its tokenizer
  run.toml:10:14: data.validation: {folder}/text.bin: token 270 has id 256, which is not in [0, 199] (model.vocab = 200)
    remove model.vocab: the default is 257, from text.json; or, for an imported model, use data of its tokenizer
  [2]

Without the data, the text of a plan is as long as the model allows:

  $ triax check run.toml --no-device --set model.vocab=257 --set data.path=absent --all | grep -A 1 eval.sample
    rank  weights  gradients  optimizer state  activations  batches  scratch  text of eval.sample    total
       0   250 kB     291 kB           485 kB       680 kB  5.38 kB  4.35 kB              90.4 kB  1.81 MB

triax fit counts it:

  $ triax fit run.toml --memory 900kB --set parallel.data=2 --set parallel.chunks=4 --set schedule.plugin=sched-breadth-first
  --memory 900kB (900 kB): no setting fits: rank 0 needs 1.02 MB with parallel.sequence = false, optimizer.shard = "states", memory.recompute = "full", batch.micro = 1
    use a larger parallel.tensor or parallel.pipeline: they divide weights, gradients and optimizer state
  [1]
