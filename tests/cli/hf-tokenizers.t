# SPDX-License-Identifier: Apache-2.0

# triax import, train and export: the tokenizer of the data is that of the model

  $ . "$TESTDIR/setup"
  $ cp -r $SOURCE/tests/hf/reference/gpt2-odd model; chmod -R u+w model
  $ cp $SOURCE/tests/hf/reference/byte_pairs.json model/tokenizer.json

Data of bytes, which the model was not trained on. An import warns:

  $ triax import hf model --output odd --run odd.toml --data text
  warning: text and odd/hf/tokenizer.json have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    prepare the text with that of the model: {build}/bin/triax data prepare --input TEXT --output PREFIX --tokenizer odd/hf/tokenizer.json --append-eod, and PREFIX as data.path
  odd: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  odd.toml: a run that begins with it
  $ triax train odd.toml --set train.steps=1 --set run.dir=run
  odd.toml:19:8: data.path: {folder}/text and {folder}/odd/hf/tokenizer.json have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    checkpoint.from is set at odd.toml:15:8
    prepare the text with that of the checkpoint: triax data prepare --input FILE... --output PREFIX --tokenizer {folder}/odd/hf/tokenizer.json --append-eod
    or, to train the weights with another tokenizer: --set checkpoint.changed_data=accept
  [2]
  $ triax check odd.toml --set data.validation=text --set eval.every=1 --set eval.batches=1
  odd.toml:19:8: data.path: {folder}/text and {folder}/odd/hf/tokenizer.json have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    data.validation is set by --set
    checkpoint.from is set at odd.toml:15:8
    prepare the text with that of the checkpoint: triax data prepare --input FILE... --output PREFIX --tokenizer {folder}/odd/hf/tokenizer.json --append-eod
    or, to train the weights with another tokenizer: --set checkpoint.changed_data=accept
  [2]
  $ triax evaluate odd.toml --checkpoint odd --data text
  --data text: {folder}/text and {folder}/odd/hf/tokenizer.json have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    prepare the text with that of the checkpoint: triax data prepare --input FILE... --output PREFIX --tokenizer {folder}/odd/hf/tokenizer.json --append-eod; or name another checkpoint with --checkpoint
  [2]

Without data, the hints name the tokenizer of the model:

  $ triax check odd.toml --set data.path=nothing
  --set: data.path: {folder}/nothing.bin does not exist
    prepare it with: triax data prepare --input FILE... --output {folder}/nothing --tokenizer {folder}/odd/hf/tokenizer.json
  [2]
  $ triax evaluate odd.toml --checkpoint odd --data nothing
  --data nothing: {folder}/nothing.bin does not exist
    prepare it with: triax data prepare --input FILE... --output {folder}/nothing --tokenizer {folder}/odd/hf/tokenizer.json
  [2]
  $ triax import hf model --output unnamed --run unnamed.toml | tail -n +3
  Before it trains, it needs data: {build}/bin/triax data prepare --input TEXT --output PREFIX --tokenizer unnamed/hf/tokenizer.json --append-eod, and PREFIX as data.path
  $ triax check unnamed.toml
  unnamed.toml: data.path is missing (token files to train on; data.paths: several)
    set data.path to the prefix of token files; triax data prepare makes them
  [2]

Another end token is named:

  $ cp model/tokenizer.json pairs.json
  $ python3 - << 'END'
  > import json
  > text = open("model/tokenizer.json").read().replace("<|endoftext|>", "<|end of text|>")
  > open("model/tokenizer.json", "w").write(text)
  > end = json.loads(text)["added_tokens"][0]["id"]
  > open("model/generation_config.json", "w").write(json.dumps({"eos_token_id": [0, end]}))
  > END
  $ triax import hf model --output ends --run ends.toml --data nothing | tail -n +3
  Before it trains, it needs data: {build}/bin/triax data prepare --input TEXT --output nothing --tokenizer ends/hf/tokenizer.json --append-eod --eod-token '<|end of text|>'
  $ triax data prepare --input text.txt --output ends-data --tokenizer ends/hf/tokenizer.json --append-eod --eod-token '<|end of text|>' > /dev/null
  $ echo '{}' > model/generation_config.json
  $ triax import hf model --output endless --run endless.toml --data nothing | tail -n +3
  Before it trains, it needs data: {build}/bin/triax data prepare --input TEXT --output nothing --tokenizer endless/hf/tokenizer.json

Data of the model's tokenizer:

  $ cp pairs.json model/tokenizer.json
  $ triax data prepare --input text.txt --output corpus --tokenizer odd/hf/tokenizer.json > /dev/null
  $ triax import hf model --output again --run again.toml --data corpus | tail -n +3
  next: {build}/bin/triax train again.toml
  $ triax train odd.toml --set train.steps=1 --set run.dir=run --set data.path=corpus 2> /dev/null | grep -o '^trained 1 step'
  trained 1 step
  $ triax evaluate odd.toml --checkpoint odd --data corpus 2> /dev/null | grep -o '^loss'
  loss
  $ triax export hf odd exported | tail -n +2
  Tokenizer files: those of the imported model, from odd/hf
  $ triax export hf run trained | tail -n +2
  Tokenizer files: those of the imported model, from {folder}/odd/hf

The run cannot continue with bytes either, and says what the checkpoint has recorded:

  $ grep -A 4 '"tokenizer"' run/checkpoints/step-00000001/manifest.json
      "tokenizer": {
       "kind": "bpe",
       "vocab": 261,
       "digest": "27830df1d3eee5f3"
      }
  $ triax check odd.toml --set train.steps=2 --set run.dir=run
  odd.toml:19:8: data.path: {folder}/text and the data of {folder}/run/checkpoints/step-00000001 have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    prepare the text with that of the checkpoint: triax data prepare --input FILE... --output PREFIX --tokenizer {folder}/corpus-tokenizer.json
    or, to train the weights with another tokenizer: --set checkpoint.changed_data=accept
  [2]
  $ triax evaluate odd.toml --set run.dir=run --data text
  --data text: {folder}/text and the data of {folder}/run/checkpoints/step-00000001 have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    prepare the text with that of the checkpoint: triax data prepare --input FILE... --output PREFIX --tokenizer {folder}/corpus-tokenizer.json; or name another checkpoint with --checkpoint
  [2]

Unless the tokenizer is to be replaced. An export then has the new one:

  $ triax train odd.toml --set train.steps=1 --set run.dir=new --set checkpoint.changed_data=accept 2>&1 | grep -o 'begins with the weights of .*'
  begins with the weights of {folder}/odd (step 0); {folder}/text and {folder}/odd/hf/tokenizer.json have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
  $ triax train odd.toml --set train.steps=2 --set run.dir=new 2> /dev/null | grep -o '^trained 1 step'
  trained 1 step
  $ triax export hf new replaced | tail -n +2
  warning: {folder}/text.json and {folder}/odd/hf/tokenizer.json have different tokenizers: byte of 257 ids (byte), and bpe of 261 ids (27830df1d3eee5f3)
    for the files of the imported model: --files {folder}/odd/hf
  Tokenizer files: that of the training data, {folder}/text.json

A tokenizer that Triax cannot read is not compared:

  $ mv odd/hf/tokenizer.json away.json; echo '{}' > odd/hf/tokenizer.json
  $ triax check odd.toml > /dev/null
  $ rm odd/hf/tokenizer.json; touch odd/hf/tokenizer.model
  $ triax check odd.toml > /dev/null
  $ triax generate odd --prompt a
  no tokenizer found: {folder}/odd/hf has neither tokenizer.json nor GPT-2's vocab.json and merges.txt
    name the model's tokenizer.json: --tokenizer FILE. Triax does not read tokenizer.model: without another file, use transformers to generate (triax export hf)
  [2]
  $ rm odd/hf/tokenizer.model
  $ triax generate odd --prompt a
  no tokenizer found: {folder}/odd/hf has neither tokenizer.json nor GPT-2's vocab.json and merges.txt
    name the model's tokenizer.json: --tokenizer FILE
  [2]

Exported models of bytes have a tokenizer.json of the same ids:

  $ triax train base.toml --set run.dir=scratch --set train.steps=1 > /dev/null 2>&1
  $ triax export hf scratch scratch-hf > /dev/null
  $ triax import hf scratch-hf --output bytes --run bytes.toml --data text | tail -n +3
  next: {build}/bin/triax train bytes.toml
  $ triax check bytes.toml > /dev/null
