# SPDX-License-Identifier: Apache-2.0

# triax evaluate

  $ . "$TESTDIR/setup"
  $ steady() {
  >   sed -E -e 's/^[0-9-]+ [0-9:.]+ //' -e 's/[0-9]+\.[0-9]{3,}/{number}/g' \
  >     -e 's/[0-9.]+ k? ?tokens\/s/{rate} tokens\/s/' -e 's/, [0-9]+ CPU threads? each[^;]*;/, ...;/'
  > }
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [parallel]
  > tensor = 2
  > [train]
  > steps = 2
  > [data]
  > validation = "text"
  > [eval]
  > every = 2
  > batches = 2
  > [run]
  > dir = "run"
  > END

Without a checkpoint there is nothing to evaluate:

  $ triax evaluate run.toml
  run.toml:12:7: run.dir = "{folder}/run" has no complete checkpoint
    train the run, which saves one, or name one with --checkpoint
  [2]

The loss of the newest checkpoint is that of training. Standard output is the result, and standard error is the log:

  $ triax train run.toml > /dev/null 2>&1
  $ triax evaluate run.toml 2> /dev/null | steady
  loss {number}, perplexity {number}, {number} bits per byte: 256 tokens of 8 samples, {rate} tokens/s; weights of run/checkpoints/step-00000002
  $ triax evaluate run.toml 2>&1 > /dev/null | steady
  info rank 0: run.toml: 34.7 k parameters, pipeline 1 x tensor 2 x data 1; model-gpt, kernels-reference, optim-adamw, sched-gpipe, comm-local; 2 ranks as threads of this process, ...; data text
  info rank 0: evaluates the weights of {folder}/run/checkpoints/step-00000002 (step 2)
  $ trained=$(grep -o '"eval_loss":[0-9.]*' run/metrics.jsonl | cut -d: -f2)
  $ for keys in parallel.tensor=2 'parallel.pipeline=2 --set schedule.plugin=sched-1f1b'; do
  >   triax evaluate run.toml --json --set $keys 2> /dev/null | grep -c "\"loss\": $trained,"
  > done
  1
  1

The folder of the run, whose resolved.toml has its values:

  $ triax evaluate run 2> /dev/null | steady
  loss {number}, perplexity {number}, {number} bits per byte: 256 tokens of 8 samples, {rate} tokens/s; weights of run/checkpoints/step-00000002

Nothing is written to the run's folder:

  $ ls run
  checkpoints
  memory.json
  metrics.jsonl
  rank-0.log
  rank-1.log
  resolved.toml

Another corpus, and all of its samples:

  $ seq 1 400 > other.txt
  $ triax data prepare --input other.txt --output other --tokenizer byte > /dev/null
  $ triax evaluate run.toml --data other --set eval.batches=0 2> /dev/null | steady
  loss {number}, perplexity {number}, {number} bits per byte: 1,440 tokens of 45 samples, {rate} tokens/s; weights of run/checkpoints/step-00000002

The training data need not be there:

  $ triax evaluate run.toml --data other --set data.path=gone 2> /dev/null | steady
  loss {number}, perplexity {number}, {number} bits per byte: 256 tokens of 8 samples, {rate} tokens/s; weights of run/checkpoints/step-00000002

Token files of another program do not say what bytes their tokens stand for:

  $ rm other.json
  $ triax evaluate run.toml --data other --set model.vocab=257 2>&1 | steady
  info rank 0: run.toml: 34.7 k parameters, pipeline 1 x tensor 2 x data 1; model-gpt, kernels-reference, optim-adamw, sched-gpipe, comm-local; 2 ranks as threads of this process, ...; data other
  info rank 0: evaluates the weights of {folder}/run/checkpoints/step-00000002 (step 2)
  info rank 0: the number of bytes of the text is not known: {folder}/other.json: does not exist; it names the tokenizer and the size of its vocabulary
  loss {number}, perplexity {number}, {number} bits per token (the number of bytes is not known): 256 tokens of 8 samples, {rate} tokens/s; weights of run/checkpoints/step-00000002

One object:

  $ triax evaluate run.toml --json 2> /dev/null | steady | sed -E 's/"(loss|perplexity|bits_per_[a-z]+)": .*,/"\1": {number},/'
  {
    "file": "run.toml",
    "outcome": "evaluated",
    "exit_status": 0,
    "signal": null,
    "folder": "{folder}/run",
    "checkpoint": "{folder}/run/checkpoints/step-00000002",
    "step": 2,
    "loss": {number},
    "perplexity": {number},
    "bits_per_token": {number},
    "bits_per_byte": {number},
    "samples": 8,
    "tokens": 256,
    "bytes": 256,
    "tokens_per_s": {number},
    "traffic": {
      "tensor": {
        "plugin": "comm-local",
        "ops": 70,
        "bytes_out": 333864,
        "bytes_in": 333864
      }
    }
  }

A kernel set that models time has no loss:

  $ triax evaluate run.toml --set kernels.plugin=kernels-sim 2> /dev/null | steady
  ran 8 samples: kernels-sim does not compute, so the loss is 0; {rate} tokens/s

## Refusals

  $ triax evaluate run.toml --checkpoint run/checkpoints/step-00000007
  --checkpoint: run/checkpoints/step-00000007: does not exist
    name a checkpoint folder (step-N), a run's folder, or its TOML file
  [2]
  $ triax evaluate run.toml --data gone
  --data gone: {folder}/gone.bin does not exist
    prepare it with: triax data prepare --input FILE... --output {folder}/gone --tokenizer byte
  [2]
  $ triax evaluate base.toml --set run.dir=run
  nothing to evaluate on: data.validation is empty
    data.validation = "" is the default
    add --data PREFIX, or set data.validation
  [2]
  $ triax evaluate run.toml --set model.hidden=64
  --set: cannot use the weights of {folder}/run/checkpoints/step-00000002: parameter "embedding/tokens.weight" has shape [257, 32] in the checkpoint and [257, 64] in this run. Changed: model.hidden = 64 (was 32)
    use the values that the checkpoint was written with, or name another with --checkpoint
  [2]
  $ triax evaluate run.toml --set model.vocab=100
  run.toml:7:14: data.validation: {folder}/text.bin: token 0 has id 120, which is not in [0, 99] (model.vocab = 100)
    remove model.vocab: the default is 257, from text.json; or, for an imported model, use data of its tokenizer
  [2]
  $ triax evaluate run.toml --set eval.steps=1 --json
  --set: [eval] has no key "steps"; did you mean train.steps?
    keys of [eval]: every, batches, sample, sample_tokens, sample_temperature
  {
    "file": "run.toml",
    "outcome": "refused",
    "exit_status": 2,
    "errors": [
      {
        "code": "unknown-key",
        "keys": [
          "eval.steps"
        ],
        "file": "--set",
        "line": null,
        "column": null,
        "message": "[eval] has no key \"steps\"; did you mean train.steps?",
        "hint": "keys of [eval]: every, batches, sample, sample_tokens, sample_temperature"
      }
    ]
  }
  [2]
  $ triax evaluate
  triax: RUN.toml is required
    see: triax evaluate --help
  [2]
  $ triax evaluate run.toml --checkpoint ''
  triax: --checkpoint must not be empty
    see: triax evaluate --help
  [2]

More samples than can be counted are refused:

  $ triax evaluate run.toml --set eval.batches=9223372036854775807
  --set: eval.batches must be in [0, 2147483647], got 9223372036854775807
  [2]
