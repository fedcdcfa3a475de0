# SPDX-License-Identifier: Apache-2.0

# Token files

`triax check` reads the token files of a run, and `triax data prepare` makes them.

  $ . "$TESTDIR/setup"

## Files of a run

A corpus that does not exist:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "data/nothing"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/data/nothing.bin does not exist
    prepare it with: triax data prepare --input FILE... --output {folder}/data/nothing --tokenizer byte
  [2]

A file instead of the prefix of all three:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "text.bin"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/text.bin.bin does not exist
    leave out .bin: the key names all files of a corpus at once
  [2]

Tokens that were cut off:

  $ for ending in bin idx json; do cp text.$ending mine.$ending; done
  $ head -c 500 text.bin > mine.bin
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "mine"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/mine.bin: has 500 bytes, but mine.idx needs at least 2002 (1001 tokens of 2 bytes)
    the two files do not belong together, or one of them is truncated
  [2]

An index that was cut off:

  $ for ending in bin idx json; do cp text.$ending mine.$ending; done
  $ head -c 40 text.idx > mine.idx
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "mine"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/mine.idx: has 40 bytes, expected 62 for 1 sequence and 2 document indices
    it is truncated or damaged: copy it or prepare it again
  [2]

An index that is something else:

  $ for ending in bin idx json; do cp text.$ending mine.$ending; done
  $ echo "this is no index of a data set, but a text" > mine.idx
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "mine"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/mine.idx: begins with "this is n", not with MMIDIDX
    Triax reads Megatron's indexed datasets (mmap, version 1)
  [2]

Without the file that names the tokenizer:

  $ for ending in bin idx; do cp text.$ending mine.$ending; done
  $ rm -f mine.json
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "mine"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/mine.json: does not exist; it names the tokenizer and the size of its vocabulary
    prepare the dataset again with its tokenizer: triax data prepare --input FILE... --output {folder}/mine --tokenizer NAME --force
    or set model.vocab, for token files of another program
  [2]

A broken file of the tokenizer:

  $ for ending in bin idx; do cp text.$ending mine.$ending; done
  $ echo '{"tokenizer": "byte", "vocab": 257' > mine.json
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [data]
  > path = "mine"
  > END
  $ triax check run.toml
  run.toml:3:8: data.path: {folder}/mine.json: is not valid JSON: unexpected end of file at byte 36
    prepare the dataset again with its tokenizer: triax data prepare --input FILE... --output {folder}/mine --tokenizer NAME --force
    or set model.vocab, for token files of another program
  [2]

A vocabulary without some of the tokens:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > vocab = 100
  > END
  $ triax check run.toml
  base.toml:29:8: data.path: {folder}/text.bin: token 0 has id 120, which is not in [0, 99] (model.vocab = 100)
    remove model.vocab: the default is 257, from text.json; or, for an imported model, use data of its tokenizer
  [2]

Sequences longer than the corpus:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > sequence = 4096
  > END
  $ triax check run.toml
  base.toml:29:8: data.path: {folder}/text.bin: holds 1001 tokens; one sample of model.sequence = 4096 takes 4097 (4096 and one target)
    use more text, or a shorter sequence
  [2]

Evaluation without data:

  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [eval]
  > every = 10
  > batches = 2
  > END
  $ triax check run.toml
  run.toml:3:9: data.validation is required with eval.every = 10 (token files to evaluate on)
    data.validation = "" is the default
    name them, or write eval.every = 0
  [2]

## Refusals of triax data prepare

Nothing given:

  $ triax data prepare
  triax: --input, --output and --tokenizer are required
    see: triax data prepare --help
  [2]

No output given:

  $ triax data prepare --input text.txt --tokenizer byte
  triax: --output is required
    see: triax data prepare --help
  [2]

A flag that needs another:

  $ triax data prepare --input text.txt --output made --tokenizer text-tokenizer.json --eod-token '<end>'
  triax: --eod-token requires --append-eod
    see: triax data prepare --help
  [2]

All mistakes are reported at once, before anything is written:

  $ triax data prepare --input nothing.txt . --output text --tokenizer bite --validation-fraction 1.5
  --tokenizer must be byte, gpt2 or the path of a tokenizer.json, got bite
  --validation-fraction must be in [0, 1), got 1.5
    use for example 0.05, which puts every twentieth document into the validation dataset
  --input nothing.txt: does not exist
    correct the path
  --input .: is a folder; an input is a text file
    name its files: --input ./*
  text.bin: already exists
    add --force to replace it
  text.json: already exists
    add --force to replace it
  text.idx: already exists
    add --force to replace it
  [2]
