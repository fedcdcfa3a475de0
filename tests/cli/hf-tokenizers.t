# SPDX-License-Identifier: Apache-2.0

# triax import, train and export: the tokenizer of the data is that of the model

  $ . "$TESTDIR/setup"
  $ cp -r $SOURCE/tests/hf/reference/gpt2-odd model; chmod -R u+w model
  $ cp $SOURCE/tests/hf/reference/byte_pairs.json model/tokenizer.json

Data of bytes, which the model was not trained on. An import warns:

  $ triax import hf model --output odd --run odd.toml --data text
  $ triax train odd.toml --set train.steps=1 --set run.dir=run
  $ triax check odd.toml --set data.validation=text --set eval.every=1 --set eval.batches=1
  $ triax evaluate odd.toml --checkpoint odd --data text

Without data, the hints name the tokenizer of the model:

  $ triax check odd.toml --set data.path=nothing
  $ triax evaluate odd.toml --checkpoint odd --data nothing
  $ triax import hf model --output unnamed --run unnamed.toml | tail -n +3
  $ triax check unnamed.toml

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
  $ triax data prepare --input text.txt --output ends-data --tokenizer ends/hf/tokenizer.json --append-eod --eod-token '<|end of text|>' > /dev/null
  $ echo '{}' > model/generation_config.json
  $ triax import hf model --output endless --run endless.toml --data nothing | tail -n +3

Data of the model's tokenizer:

  $ cp pairs.json model/tokenizer.json
  $ triax data prepare --input text.txt --output pairs --tokenizer odd/hf/tokenizer.json > /dev/null
  $ triax import hf model --output again --run again.toml --data pairs | tail -n +3
  $ triax train odd.toml --set train.steps=1 --set run.dir=run --set data.path=pairs 2> /dev/null | grep -o '^trained 1 step'
  $ triax evaluate odd.toml --checkpoint odd --data pairs 2> /dev/null | grep -o '^loss'
  $ triax export hf odd exported | tail -n +2
  $ triax export hf run trained | tail -n +2

The run cannot continue with bytes either, and says what the checkpoint has recorded:

  $ grep -A 4 '"tokenizer"' run/checkpoints/step-00000001/manifest.json
  $ triax check odd.toml --set train.steps=2 --set run.dir=run
  $ triax evaluate odd.toml --set run.dir=run --data text

Unless the tokenizer is to be replaced. An export then has the new one:

  $ triax train odd.toml --set train.steps=1 --set run.dir=new --set checkpoint.changed_data=accept 2>&1 | grep -o 'begins with the weights of .*'
  $ triax train odd.toml --set train.steps=2 --set run.dir=new 2> /dev/null | grep -o '^trained 1 step'
  $ triax export hf new replaced | tail -n +2

A tokenizer that Triax cannot read is not compared:

  $ mv odd/hf/tokenizer.json away.json; echo '{}' > odd/hf/tokenizer.json
  $ triax check odd.toml > /dev/null
  $ rm odd/hf/tokenizer.json; touch odd/hf/tokenizer.model
  $ triax check odd.toml > /dev/null
  $ triax generate odd --prompt a
  $ rm odd/hf/tokenizer.model
  $ triax generate odd --prompt a

Exported models of bytes have a tokenizer.json of the same ids:

  $ triax train base.toml --set run.dir=scratch --set train.steps=1 > /dev/null 2>&1
  $ triax export hf scratch scratch-hf > /dev/null
  $ triax import hf scratch-hf --output bytes --run bytes.toml --data text | tail -n +3
  $ triax check bytes.toml > /dev/null
