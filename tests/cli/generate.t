# SPDX-License-Identifier: Apache-2.0

# triax generate

  $ . "$TESTDIR/setup"
  $ steady() {
  >   sed -E -e 's/^[0-9-]+ [0-9:.]+ //' -e 's/in [0-9.]+ s( \([0-9.]+ tokens\/s\))?/in {seconds} s/g' \
  >     -e 's/"((prompt_)?tokens_per_s)": [0-9.e+]+/"\1": {rate}/' -e 's/, [0-9]+ CPU threads?( each)?( on [0-9]+ cores?)?/, .../'
  > }
  $ train_counting

The text is standard output, and standard error is the log:

  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 2> /dev/null
  4 4 4 
  $ triax generate run --prompt "1 12 13 " --max-tokens 6 2>&1 > /dev/null | steady
  info rank 0: uses the weights of {folder}/run/checkpoints/step-00000150 (step 150); 34.2 k parameters, pipeline 1 x tensor 1; model-gpt, kernels-reference; 1 rank, ...
  8 prompt tokens in {seconds} s, 6 new tokens in {seconds} s

The prompt may be a file or standard input, without its last line break:

  $ echo "1 12 13 " > prompt.txt
  $ triax generate run.toml --file prompt.txt --max-tokens 6 2> /dev/null
  4 4 4 
  $ triax generate run.toml - --max-tokens 6 < prompt.txt 2> /dev/null
  4 4 4 

The text is the same on every layout:

  $ for keys in parallel.tensor=2 parallel.pipeline=2 'parallel.pipeline=2 --set parallel.tensor=2' kernels.plugin=kernels-cpu; do
  >   triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --set $keys 2> /dev/null
  > done
  4 4 4 
  4 4 4 
  4 4 4 
  4 4 4 

Stop sequences end it, and so does the last position of the model:

  $ triax generate run.toml --prompt "1 12 13 " --stop "x" --stop " " 2> /dev/null
  4
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 0 2>&1 > /dev/null | steady | tail -2
  sample 1 ends: the context is full, the model has 16 positions
  8 prompt tokens in {seconds} s, 9 new tokens in {seconds} s

An empty prompt is the token that separates documents:

  $ triax generate run.toml --prompt "" --max-tokens 1 --json 2> /dev/null | grep -A 2 '"prompt_tokens"'
    "prompt_tokens": [
      256
    ],

Samples come one after the other. A sample does not depend on the others:

  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --temperature 1.2 --top-k 9 --top-p 0.95 --min-p 0.01 \
  >   --repetition-penalty 1.1 --seed 3 --samples 3 2> /dev/null > three
  $ grep -A 1 === three | sed 's/^[^=-].*/.../'
  === sample 1 ===
  ...
  --
  === sample 2 ===
  ...
  --
  === sample 3 ===
  ...
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --temperature 1.2 --top-k 9 --top-p 0.95 --min-p 0.01 \
  >   --repetition-penalty 1.1 --seed 3 --set parallel.pipeline=2 2> /dev/null | diff - <(sed -n 2p three)

One object:

  $ triax generate run.toml --prompt "1 12" --max-tokens 2 --json 2> /dev/null | steady
  {
    "file": "run.toml",
    "outcome": "generated",
    "exit_status": 0,
    "signal": null,
    "checkpoint": "{folder}/run/checkpoints/step-00000150",
    "prompt": "1 12",
    "prompt_tokens": [
      49,
      32,
      49,
      50
    ],
    "samples": [
      {
        "text": " 4",
        "tokens": [
          32,
          52
        ],
        "reason": "length"
      }
    ],
    "prompt_tokens_per_s": {rate},
    "tokens_per_s": {rate}
  }

A closed standard output ends it quietly:

  $ mkfifo pipe && { true < pipe & } && exec 3> pipe && wait
  $ "$TRIAX" generate run.toml --prompt "1 12 13 " --max-tokens 6 >&3 2> log
  [141]
  $ exec 3>&-
  $ grep -v "prompt token" log | grep -c .
  1

Lists of token ids, on one line each:

  $ tokens() { python3 -c 'import json, sys; of = json.load(sys.stdin)
  > print(*([of["prompt_tokens"]] if sys.argv[1] == "prompt" else [[s["tokens"], s["reason"]] for s in of["samples"]]))' "$1"; }

Each flag of sampling alone changes the choice. With the first three, only the most probable token is left:

  $ sampled() { triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --json "$@" 2> /dev/null | tokens samples; }
  $ sampled > greedy
  $ for flags in '--top-k 1' '--top-p 0.001' '--min-p 1'; do sampled --temperature 50 --seed 4 $flags | diff greedy -; done
  $ sampled --temperature 50 --seed 4 | diff -q greedy - > /dev/null
  [1]
  $ sampled --temperature 50 --seed 4 > four; sampled --temperature 50 --seed 4 | diff four -
  $ sampled --temperature 50 --seed 5 | diff -q four - > /dev/null
  [1]
  $ sampled --temperature 0.001 --seed 4 | diff greedy -
  $ sampled --repetition-penalty 1000
  [[52, 53, 54, 56, 55, 48], 'length']

Without the training data, the tokenizer must be named:

  $ mkdir away && mv text.* away
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6
  no tokenizer found: {folder}/run/checkpoints/step-00000150/hf has neither tokenizer.json nor GPT-2's vocab.json and merges.txt, and {folder}/text.json does not exist
    name it: --tokenizer byte, or the path of a tokenizer.json
  [2]
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --tokenizer byte 2> /dev/null
  4 4 4 
  $ mv away/* .

A folder of transformers is imported for the time of the command, and nothing is left:

  $ reference=$SOURCE/tests/hf/reference
  $ mkdir temporary
  $ import() { TMPDIR=$PWD/temporary triax generate "$@"; }
  $ import $reference/gpt2-odd --tokenizer byte --prompt "ab" --max-tokens 3 --json 2> log | grep -A 9 '"samples"'
    "samples": [
      {
        "text": "\xef\xbf\xbd\\u001a\\u001a", (esc)
        "tokens": [
          225,
          26,
          26
        ],
        "reason": "length"
      }
  $ steady < log | sed "s|$SOURCE|{source}|"
  info rank 0: uses the weights of {source}/tests/hf/reference/gpt2-odd; 7.06 k parameters, pipeline 1 x tensor 1; model-gpt, kernels-cpu; 1 rank, ...
  2 prompt tokens in {seconds} s, 3 new tokens in {seconds} s
  $ triax import hf $reference/gpt2-odd --output odd --run odd.toml > /dev/null
  $ triax generate odd --tokenizer byte --prompt "ab" --max-tokens 3 --json 2> /dev/null | grep -A 6 '"tokens": '
        "tokens": [
          225,
          26,
          26
        ],
        "reason": "length"
      }
  $ find temporary
  temporary

Messages name the file of the model, and the variable that chooses where it is imported:

  $ import $reference/gpt2-odd --tokenizer byte --prompt ab --set parallel.tensor=2 2> log
  [2]
  $ sed "s|$SOURCE|{source}|" log
  {source}/tests/hf/reference/gpt2-odd/config.json: model.heads = 3 is not divisible by parallel.tensor = 2: each tensor rank has whole heads
    parallel.tensor is set by --set
    use tensor 1 or 3
  $ (ulimit -f 1; import $reference/gpt2-odd --tokenizer byte --prompt ab 2> log)
  [2]
  $ sed -E "s|$PWD|{folder}|; s|import-\w+|import-{name}|" log
  {folder}/temporary/triax-import-{name}/imported/weights-00000.safetensors: cannot be written: File too large
    raise the limit of a file's size (ulimit -f); TMPDIR chooses where this folder is
  $ TMPDIR=none "$TRIAX" generate $reference/gpt2-odd --tokenizer byte --prompt ab
  none: cannot create a temporary folder: No such file or directory
    set TMPDIR to a folder that this user can write
  [2]
  $ find temporary
  temporary

The run of an import has no checkpoint of its own yet:

  $ triax generate odd.toml --tokenizer byte --prompt ab
  no complete checkpoint in {folder}/runs/odd/checkpoints
    train it with: triax train odd.toml; a run saves one at its end, when it is stopped, and every checkpoint.every steps; name {folder}/odd for the weights that it begins with
  [2]
  $ triax checkpoint list odd.toml
  no complete checkpoint in {folder}/runs/odd/checkpoints
    train it with: triax train odd.toml; a run saves one at its end, when it is stopped, and every checkpoint.every steps
  [2]

Notes come after the texts, which may be within a line:

  $ import $reference/gpt2-odd --tokenizer byte --prompt ab --temperature 1 --samples 2 --max-tokens 0 2>&1 > text.out | steady
  info rank 0: uses the weights of {source}/tests/hf/reference/gpt2-odd; 7.06 k parameters, pipeline 1 x tensor 1; model-gpt, kernels-cpu; 1 rank, ...
  sample 1 ends: the context is full, the model has 11 positions
  sample 2 ends: the context is full, the model has 11 positions
  2 prompt tokens in {seconds} s, 20 new tokens in {seconds} s
  $ import $reference/gpt2-odd --tokenizer byte --prompt ab --temperature 1 --samples 2 --max-tokens 0 2>&1 | grep -a -c '^sample'
  2

A model of the Llama family has the same text on every layout, too:

  $ for keys in parallel.tensor=1 parallel.tensor=2 parallel.pipeline=2 'parallel.pipeline=2 --set parallel.tensor=2' \
  >   kernels.plugin=kernels-reference; do
  >   import $reference/llama-scaled --tokenizer byte --prompt "ab" --max-tokens 12 --json --set $keys 2> /dev/null |
  >     tokens samples
  > done
  [[103, 205, 171, 20, 244, 156, 156, 156, 156, 156, 20, 156], 'length']
  [[103, 205, 171, 20, 244, 156, 156, 156, 156, 156, 20, 156], 'length']
  [[103, 205, 171, 20, 244, 156, 156, 156, 156, 156, 20, 156], 'length']
  [[103, 205, 171, 20, 244, 156, 156, 156, 156, 156, 20, 156], 'length']
  [[103, 205, 171, 20, 244, 156, 156, 156, 156, 156, 20, 156], 'length']

Its refusals are those of the import, and nothing is left either:

  $ cp -r $reference/gpt2-odd broken
  $ sed -i 's/"n_head": 3/"n_head": 5/; s/"n_inner": null/"n_inner": 7, "unknown": 1/' broken/config.json
  $ import broken --tokenizer byte --prompt "ab"
  broken/config.json: unknown = 1 is an unknown key of GPT2LMHeadModel
    if it does not change what the model computes: --ignore unknown, a flag of triax import hf
  [2]
  $ rm broken/model.safetensors
  $ import broken --tokenizer byte --prompt "ab"
  broken/config.json: unknown = 1 is an unknown key of GPT2LMHeadModel
    if it does not change what the model computes: --ignore unknown, a flag of triax import hf
  broken: has neither model.safetensors nor model.safetensors.index.json
    name the folder of a model that transformers has saved
  [2]
  $ mkdir lacking; cp $reference/gpt2-odd/model.safetensors lacking; import lacking --tokenizer byte --prompt "ab"
  lacking/config.json: does not exist
    name the folder of a model that transformers has saved
  [2]
  $ find temporary
  temporary

## Refusals

  $ triax generate run.toml < /dev/null
  no prompt was given, and standard input is not a terminal to type one on
    add --prompt TEXT, --file FILE, or - for standard input
  [2]
  $ triax generate run.toml --prompt a --file prompt.txt
  --prompt, --file and - cannot be combined
    use one of them
  [2]
  $ triax generate run.toml something --prompt a
  --prompt, --file and - cannot be combined
    use one of them
  unexpected argument: something
    write the prompt as --prompt TEXT, or - for standard input
  [2]
  $ triax generate run.toml something --prompt a --json 2> /dev/null | tr -d ' \n' | grep -o '"keys":\[[^]]*]'
  "keys":["--prompt","something"]
  "keys":["something"]
  $ triax generate run.toml --prompt a --temperature 0 --top-k 2 --json 2> /dev/null | tr -d ' \n' | grep -o '"keys":\[[^]]*]'
  "keys":["--top-k","--temperature"]
  $ triax generate run.toml --file none.txt
  none.txt: does not exist
    correct the path
  [2]
  $ triax generate run.toml --file .
  .: is a folder, not a prompt
    name a file
  [2]
  $ triax generate run.toml --file /dev/zero
  /dev/zero: is larger than 8 MiB, the limit of a prompt
    check that this is a prompt
  [2]
  $ triax generate run.toml --prompt "a text that has more bytes than the model has positions"
  the prompt has 55 tokens, but the model has 16 positions
    use a shorter prompt
  [2]
  $ triax generate run.toml --prompt a --top-k 5 --top-p 0.5 --min-p 0.1 --seed 1 --samples 2
  --top-k has no effect with --temperature 0: the most probable token is chosen
    add --temperature 1, or leave --top-k out
  --top-p has no effect with --temperature 0: the most probable token is chosen
    add --temperature 1, or leave --top-p out
  --min-p has no effect with --temperature 0: the most probable token is chosen
    add --temperature 1, or leave --min-p out
  --seed has no effect with --temperature 0: the most probable token is chosen
    add --temperature 1, or leave --seed out
  --samples 2 with --temperature 0: all samples would be equal
    add --temperature 1, or leave --samples out
  [2]
  $ triax generate run.toml --prompt a --temperature -1
  triax: --temperature must be a number in [0, 1000], got "-1"
    see: triax generate --help
  [2]
  $ triax generate run.toml --prompt a --stop ""
  triax: --stop must not be empty
    see: triax generate --help
  [2]
  $ triax generate run.toml --prompt a --set parallel.data=2 --set parallel.chunks=2 --set parallel.sequence=true
  --set: parallel.data = 2: one copy of the model generates text
    leave it out; parallel.tensor and parallel.pipeline divide the model
  --set: parallel.chunks has no effect when text is generated
    leave it out; parallel.tensor and parallel.pipeline divide the model
  --set: parallel.sequence has no effect when text is generated
    leave it out; parallel.tensor and parallel.pipeline divide the model
  [2]
  $ triax generate run.toml --prompt a --set model.hidden=64
  --set: cannot use the weights of {folder}/run/checkpoints/step-00000150: parameter "embedding/tokens.weight" has shape [257, 32] in the checkpoint and [257, 64] in this run. Changed: model.hidden = 64 (was 32)
    use the values that the checkpoint was written with
  [2]
  $ triax generate run.toml --prompt a --set train.precision=fp64
  --set: cannot use the weights of {folder}/run/checkpoints/step-00000150: parameter "embedding/tokens.weight" has type f32 in the checkpoint and f64 in this run. Changed: train.precision = "fp64" (was "fp32")
    use the values that the checkpoint was written with
  [2]
  $ triax generate run.toml --prompt a --set parallel.pipeline=9
  model.layers = 2 is too few for 9 stages (parallel.pipeline x parallel.chunks): stage 2 would have no layer
    use fewer stages, or a model with more layers
  [2]
  $ triax generate run.toml --prompt a --set kernels.plugin=kernels-sim
  --set: kernels.plugin "kernels-sim" does not compute, so it has no text
    use another kernel set, such as --set kernels.plugin=kernels-cpu
  [2]
  $ triax generate run.toml --prompt a --set model.vocab=100
  {folder}/text.json: the tokenizer has 257 tokens, but the model has 100
    name the tokenizer of the training data with --tokenizer
  [2]
  $ triax generate run.toml --prompt a --tokenizer gpt3
  --tokenizer must be byte, gpt2 or the path of a tokenizer.json, got gpt3
  [2]
  $ triax generate gone --prompt a
  gone: does not exist
    name a checkpoint folder (step-N), a run's folder, or its TOML file, or the folder of a model of transformers (hf download NAME --local-dir FOLDER)
  [2]
  $ triax generate gone --prompt a --json
  gone: does not exist
    name a checkpoint folder (step-N), a run's folder, or its TOML file, or the folder of a model of transformers (hf download NAME --local-dir FOLDER)
  {
    "file": "gone",
    "outcome": "refused",
    "exit_status": 2,
    "errors": [
      {
        "code": "not-found",
        "keys": [
          "CHECKPOINT"
        ],
        "file": "gone",
        "line": null,
        "column": null,
        "message": "does not exist",
        "hint": "name a checkpoint folder (step-N), a run's folder, or its TOML file, or the folder of a model of transformers (hf download NAME --local-dir FOLDER)"
      }
    ]
  }
  [2]

The manifest says where plugins were:

  $ mkdir own
  $ triax train run.toml --set run.dir=elsewhere --set train.steps=2 --set 'plugins.path=["own"]' > /dev/null 2>&1
  $ rmdir own
  $ triax generate elsewhere --prompt a
  {folder}/elsewhere/checkpoints/step-00000002/manifest.json: plugins.path: {folder}/own is not a folder
    name folders that hold plugins
  [2]
  $ triax generate elsewhere --prompt a --set plugins.path=[] > /dev/null 2>&1

A damaged checkpoint:

  $ checkpoint=$(ls -d run/checkpoints/step-*)
  $ printf 'x' | dd of=$checkpoint/weights-00000.safetensors bs=1 seek=9000 conv=notrunc 2> /dev/null
  $ triax generate run.toml --prompt a --json 2> log
  {
    "file": "run.toml",
    "outcome": "failed",
    "exit_status": 1,
    "rank": 0,
    "reason": "{folder}/run/checkpoints/step-00000150/weights-00000.safetensors: checksum mismatch in tensor \"embedding/tokens.weight\"\n  the checkpoint is damaged: restore it from a backup, or begin anew with triax train --fresh, because no earlier checkpoint exists"
  }
  [1]
  $ steady < log | tail -2 | sed "s|$PWD|{folder}|"
  error rank 0: {folder}/run/checkpoints/step-00000150/weights-00000.safetensors: checksum mismatch in tensor "embedding/tokens.weight"
    the checkpoint is damaged: restore it from a backup, or begin anew with triax train --fresh, because no earlier checkpoint exists
