# SPDX-License-Identifier: Apache-2.0

# triax evaluate --choices

  $ . "$TESTDIR/setup"
  $ reference=$SOURCE/tests/hf/reference

A folder of transformers, a checkpoint or a run, with the choices that transformers makes:

  $ compared() {
  >   triax evaluate $reference/$1 --choices $reference/$2 --tokenizer byte --sequences 3 --set $3 --json \
  >     2> log | python3 $SOURCE/scripts/make-choices-reference.py --compare $1 $2 || cat log
  > }
  $ for keys in parallel.tensor=1 parallel.tensor=3 parallel.pipeline=2 kernels.plugin=kernels-reference; do
  >   compared gpt2-odd choices.jsonl $keys
  > done
  gpt2-odd: the choices of transformers
  gpt2-odd: the choices of transformers
  gpt2-odd: the choices of transformers
  gpt2-odd: the choices of transformers
  $ for keys in parallel.tensor=1 parallel.tensor=2 parallel.pipeline=2 kernels.plugin=kernels-reference; do
  >   compared llama-scaled choices.jsonl $keys
  > done
  llama-scaled: the choices of transformers
  llama-scaled: the choices of transformers
  llama-scaled: the choices of transformers
  llama-scaled: the choices of transformers
  $ triax evaluate $reference/gpt2-odd --choices $reference/choices.jsonl --tokenizer byte 2> /dev/null
  accuracy 0.3333, normalised by length 0.4167: 12 examples
  $ triax import hf $reference/gpt2-odd --output odd --run odd.toml > /dev/null
  $ triax evaluate odd.toml --checkpoint odd --choices $reference/choices.jsonl --tokenizer byte 2> /dev/null
  accuracy 0.3333, normalised by length 0.4167: 12 examples

With logits in 16 bits, too:

  $ for precision in bf16 fp16; do
  >   triax evaluate $reference/gpt2-odd --choices $reference/choices.jsonl --tokenizer byte \
  >     --set train.precision=$precision 2> /dev/null
  > done
  accuracy 0.3333, normalised by length 0.4167: 12 examples
  accuracy 0.3333, normalised by length 0.4167: 12 examples

A logit that is not finite has no probability:

  $ cp -r $reference/gpt2-odd infinite; chmod -R u+w infinite; python3 - << 'END'
  > import struct
  > path = "infinite/model.safetensors"
  > data = bytearray(open(path, "rb").read())
  > data[-4:] = struct.pack("<f", float("inf"))
  > open(path, "wb").write(data)
  > END
  $ triax evaluate infinite --choices $reference/choices.jsonl --tokenizer byte > out.txt 2> log
  [1]
  $ grep -oE 'the logit of token 260 is -?infinity' log | head -1 | sed 's/-infinity/infinity/'
  the logit of token 260 is infinity
  $ grep -o 'the weights are not finite, or too large: use those of another checkpoint' log | head -1
  the weights are not finite, or too large: use those of another checkpoint

With one ending, the model should write it itself. Accuracy and perplexity are those of transformers:

  $ for keys in parallel.tensor=1 parallel.tensor=3 parallel.pipeline=2; do compared gpt2-odd last_words.jsonl $keys; done
  gpt2-odd: the endings of transformers
  gpt2-odd: the endings of transformers
  gpt2-odd: the endings of transformers
  $ for keys in parallel.tensor=1 parallel.tensor=2 parallel.pipeline=2; do compared llama-scaled last_words.jsonl $keys; done
  llama-scaled: the endings of transformers
  llama-scaled: the endings of transformers
  llama-scaled: the endings of transformers

  $ train_counting
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 3 2> /dev/null
  4 4
  $ printf '%s\n' '{"context": "1 12 13 ", "endings": ["4 4"]}' '{"context": "1 12 13 ", "endings": ["4 5"], "label": 0}' > last.jsonl
  $ triax evaluate run.toml --choices last.jsonl 2> /dev/null | sed -E 's/perplexity [0-9.]+/perplexity .../'
  accuracy 0.5000, perplexity ...: 2 examples
  $ triax evaluate run.toml --choices last.jsonl --json 2> /dev/null | sed -E 's/-?[0-9]+\.[0-9]{4,}/{number}/'
  {
    "file": "run.toml",
    "outcome": "evaluated",
    "exit_status": 0,
    "signal": null,
    "checkpoint": "{folder}/run/checkpoints/step-00000150",
    "examples": 2,
    "accuracy": 0.5,
    "normalised_accuracy": null,
    "perplexity": {number},
    "choices": [
      {
        "line": 1,
        "greedy": [
          true
        ],
        "log_likelihoods": [
          {number}
        ]
      },
      {
        "line": 2,
        "greedy": [
          false
        ],
        "log_likelihoods": [
          {number}
        ]
      }
    ]
  }

White space at the end of a context belongs to the ending:

  $ scores() { printf "%s\n" "$1" > spaces.jsonl; triax evaluate run.toml --choices spaces.jsonl --json 2> /dev/null | grep -A 3 log_like; }
  $ scores '{"context": "1 12 13 ", "endings": ["4 4"]}' > with
  $ scores '{"context": "1 12 13", "endings": [" 4 4"]}' | diff with -
  $ scores '{"context": "1 12 13 \n", "endings": ["4 4", "5", "66"], "label": 0}' > with
  $ scores '{"context": "1 12 13", "endings": [" \n4 4", " \n5", " \n66"], "label": 0}' | diff with -
  $ scores '{"context": "  ", "endings": ["4 4"]}' > with
  $ scores '{"context": "", "endings": ["  4 4"]}' | diff with -

An empty context is the token that separates documents:

  $ echo '{"context": "", "endings": ["1", "4"], "label": 0}' > empty.jsonl
  $ triax evaluate run.toml --choices empty.jsonl 2> /dev/null
  accuracy 1.0000, normalised by length 1.0000: 1 example

The ending begins after as many tokens as the context has alone, also where both meet inside of a token, or where a
token has the space between them. An empty context is the model's end token:

  $ for model in gpt2-odd llama-scaled; do
  >   triax evaluate $reference/$model --choices $reference/byte_pairs.jsonl --tokenizer $reference/byte_pairs.json \
  >     --sequences 3 --json 2> log | python3 $SOURCE/scripts/make-choices-reference.py --compare $model byte_pairs.jsonl || cat log
  > done
  gpt2-odd: the choices of transformers
  llama-scaled: the choices of transformers
  $ cp -r $reference/gpt2-odd own; chmod -R u+w own; cp $reference/byte_pairs.json own/tokenizer.json
  $ echo '{"context": "xt", "endings": ["he"]}' > merged.jsonl
  $ triax evaluate own --choices merged.jsonl
  merged.jsonl:1: endings[0] adds no token to the context
    write an ending that adds text to the context
  [2]

The end token must be in the vocabulary:

  $ sed -i 's/"eos_token_id": 0/"eos_token_id": 900/' own/generation_config.json
  $ triax evaluate own --choices merged.jsonl
  {folder}/own/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got 900
    write the id of the token that ends a text, or null
  [2]

## Refusals

  $ refused() { cat > broken.jsonl; triax evaluate run.toml --choices broken.jsonl "$@"; }
  $ good='{"context": "a", "endings": ["b", "c"], "label": 0}'
  $ refused < /dev/null
  broken.jsonl: has no line
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ { echo "$good"; echo '{"context": "a", '; } | refused
  broken.jsonl:2: is not JSON
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '["context"]' | refused
  broken.jsonl:1: is not a JSON object
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "context": "b", "endings": ["c"]}' | refused
  broken.jsonl:1: has the key "context" twice
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ { echo "$good"; echo; } | refused
  broken.jsonl:2: is not JSON
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"endings": ["b", "c"], "label": 0}' | refused
  broken.jsonl:1: has no key "context"
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": 1, "endings": ["b", "c"], "label": 0}' | refused
  broken.jsonl:1: context must be a string, got 1
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "label": 0}' | refused
  broken.jsonl:1: has no key "endings"
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "endings": "b", "label": 0}' | refused
  broken.jsonl:1: endings must be a list, got "b"
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "endings": [], "label": 0}' | refused
  broken.jsonl:1: endings is empty
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "endings": ["b", 2], "label": 0}' | refused
  broken.jsonl:1: endings[1] must be a string, got 2
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "endings": ["b", ""], "label": 0}' | refused
  broken.jsonl:1: endings[1] is empty
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "endings": ["b", "c"]}' | refused
  broken.jsonl:1: has no key "label"
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ echo '{"context": "a", "endings": ["b", "c"], "label": "0"}' | refused
  broken.jsonl:1: label must be an integer, got "0"
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ { echo '{"context": "a", "endings": ["b", "c"], "label": 2}'; echo '{"context": "a", "endings": ["b", "c"], "label": -1}'; } | refused
  broken.jsonl:1: label must be in [0, 1], got 2
    it is the number of the right ending
  broken.jsonl:2: label must be in [0, 1], got -1
    it is the number of the right ending
  [2]
  $ { echo "$good"; echo '{"context": "a", "endings": ["b"]}'; } | refused
  broken.jsonl:2: has 1 ending, but line 1 has 2
    evaluate examples with one ending in a separate file
  [2]
  $ { echo "$good"; echo '{"context": "a context that is long", "endings": ["b", "cd"], "label": 0}'; } | refused
  broken.jsonl:2: context and endings[0] have 23 tokens, but the model has 16 positions
    shorten the context: 17 tokens fit
  broken.jsonl:2: context and endings[1] have 24 tokens, but the model has 16 positions
    shorten the context: 17 tokens fit
  [2]
  $ printf '{"context": "\xff", "endings": ["b"]}\n' | refused
  broken.jsonl:1: is not JSON
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  [2]
  $ triax evaluate run.toml --choices none.jsonl
  none.jsonl: does not exist
    correct the path
  [2]
  $ triax evaluate run.toml --choices .
  .: is a folder, not a file of choices
    name a file
  [2]
  $ triax evaluate run.toml --choices /dev/zero
  /dev/zero: is a device, not a file of choices
    name a file
  [2]
  $ triax evaluate run.toml --choices last.jsonl --data text
  triax: --data cannot be combined with --choices
    see: triax evaluate --help
  [2]
  $ triax evaluate run.toml --tokenizer byte
  triax: --tokenizer requires --choices
    see: triax evaluate --help
  [2]
  $ echo '{"context": "a", "endings": []}' | refused --json
  broken.jsonl:1: endings is empty
    write {"context": "...", "endings": ["...", "..."], "label": 0} in each line
  {
    "file": "run.toml",
    "outcome": "refused",
    "exit_status": 2,
    "errors": [
      {
        "code": "invalid-value",
        "keys": [
          "--choices"
        ],
        "file": "broken.jsonl",
        "line": 1,
        "column": null,
        "message": "endings is empty",
        "hint": "write {\"context\": \"...\", \"endings\": [\"...\", \"...\"], \"label\": 0} in each line"
      }
    ]
  }
  [2]
