# SPDX-License-Identifier: Apache-2.0

# triax import and triax export

  $ . "$TESTDIR/setup"
  $ reference=$SOURCE/tests/hf/reference

## Import

A folder that transformers has saved becomes a checkpoint, and the TOML of a run that begins with it:

  $ triax import hf $reference/gpt2-odd --output odd --run odd.toml
  odd: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  odd.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path
  $ sed "s|$SOURCE|{source}|; s/Triax .*\./Triax {version}./" odd.toml
  # GPT2LMHeadModel of "{source}/tests/hf/reference/gpt2-odd", imported by Triax {version}.
  
  [model]
  plugin = "model-gpt"
  layers = 2
  hidden = 12
  heads = 3
  sequence = 11  # tokens per sample: use fewer if no weight depends on it, as in model-llama
  inner = 0
  norm_eps = 1e-05
  dropout = 0.0
  vocab = 261
  
  [checkpoint]
  from = "odd"
  load = "weights"
  
  [data]
  # path = "PREFIX"  # token files of triax data prepare, with the model's tokenizer
  
  [batch]
  global = 8
  micro = 1
  
  [schedule]
  plugin = "sched-1f1b"
  
  [comm]
  plugin = "comm-local"
  
  [kernels]
  plugin = "kernels-cpu"
  
  [optimizer]
  plugin = "optim-adamw"
  lr = 1e-5
  
  [train]
  steps = 100
  $ find odd -type f | sort
  odd/hf/config.json
  odd/hf/generation_config.json
  odd/hf/special_tokens_map.json
  odd/manifest.json
  odd/weights-00000.safetensors
  $ triax checkpoint verify odd
  odd: 30.7 kB in 1 file: all checksums match
  $ triax checkpoint show odd | sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/{time}/'
  odd
    step             0
    tokens           0 in 0 samples
    created          {time} by triax {version}
    parameters       7,056
    size             30.7 kB in 1 file: weights 28.2 kB
    layout           data 1, pipeline 1, tensor 1
    plugins          model-gpt {version}
  
    parameter                                 tensors  shape      type  states
    block 0 to 1/attention.norm.bias                2  [12]       f32   master
    block 0 to 1/attention.norm.weight              2  [12]       f32   master
    block 0 to 1/attention.projection.bias          2  [12]       f32   master
    block 0 to 1/attention.projection.weight        2  [12, 12]   f32   master
    block 0 to 1/attention.qkv.bias                 2  [36]       f32   master
    block 0 to 1/attention.qkv.weight               2  [36, 12]   f32   master
    block 0 to 1/mlp.down.bias                      2  [12]       f32   master
    block 0 to 1/mlp.down.weight                    2  [12, 48]   f32   master
    block 0 to 1/mlp.norm.bias                      2  [12]       f32   master
    block 0 to 1/mlp.norm.weight                    2  [12]       f32   master
    block 0 to 1/mlp.up.bias                        2  [48]       f32   master
    block 0 to 1/mlp.up.weight                      2  [48, 12]   f32   master
    embedding/positions.weight                      1  [11, 12]   f32   master
    embedding/tokens.weight                         1  [261, 12]  f32   master
    head/norm.bias                                  1  [12]       f32   master
    head/norm.weight                                1  [12]       f32   master
  --all: every tensor, the files, and the keys of the run

With data, it trains and is evaluated as it is. Its vocabulary may be larger than the tokenizer's:

  $ triax import hf $reference/gpt2-odd --output odd2 --run odd2.toml --data text
  odd2: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  odd2.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  next: {build}/bin/triax train odd2.toml
  $ triax checkpoint diff odd odd2
  first   odd
  second  odd2
  bit-equal: 28 tensors, and the state of training
  $ triax train odd2.toml --set train.steps=3 --set run.dir=run 2> /dev/null | grep -oE '^trained 3 steps'
  trained 3 steps
  $ triax train odd2.toml --set train.steps=3 --set run.dir=other 2>&1 | grep -oE 'begins with the weights of .*/odd2'
  begins with the weights of {folder}/odd2
  $ triax evaluate odd2.toml --checkpoint odd2 --data text 2> /dev/null | grep -oE "^loss|weights of .*"
  loss
  weights of odd2

The folder itself is not a run:

  $ cp -r $reference/gpt2-odd folder
  $ triax evaluate folder --data text
  folder: is a model's folder, not the TOML file of a run
    import it: triax import hf folder --output DIR --run RUN.toml; then name RUN.toml --checkpoint DIR
  [2]
  $ triax train folder
  folder: is a model's folder, not the TOML file of a run
    import it: triax import hf folder --output DIR --run RUN.toml; then name RUN.toml
  [2]

Its options are those of the weights, so that only the layout can change:

  $ triax check odd2.toml --set parallel.tensor=2 2>&1 | grep -o 'use .*tensor.*'
  use tensor 1 or 3
  $ triax check odd2.toml --set model.heads=5 2>&1 | grep -A 3 'divisible by model.heads = 5' | grep -o 'use the values .*' | head -1
  use the values that the checkpoint was written with

A run without data says what it needs:

  $ triax check odd.toml
  odd.toml: data.path is missing (token files to train on; data.paths: several)
    set data.path to the prefix of token files; triax data prepare makes them
  [2]

## Export

The bits of an imported model are those of the file that it was imported from:

  $ triax export hf odd exported
  exported: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  No tokenizer files: the checkpoint has none; --files copies them from another folder
  $ ls exported
  config.json
  generation_config.json
  model.safetensors
  special_tokens_map.json
  $ triax import hf exported --output again --run again.toml > /dev/null
  $ triax checkpoint diff odd again
  first   odd
  second  again
  bit-equal: 28 tensors, and the state of training
  $ cat exported/config.json
  {
    "architectures": [
      "GPT2LMHeadModel"
    ],
    "model_type": "gpt2",
    "vocab_size": 261,
    "n_positions": 11,
    "n_embd": 12,
    "n_layer": 2,
    "n_head": 3,
    "n_inner": null,
    "layer_norm_epsilon": 1e-05,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "activation_function": "gelu_new",
    "tie_word_embeddings": true,
    "scale_attn_weights": true,
    "scale_attn_by_inverse_layer_idx": false,
    "reorder_and_upcast_attn": false,
    "add_cross_attention": false,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "initializer_range": 0.02,
    "pad_token_id": null,
    "summary_activation": null,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": true,
    "summary_type": "cls_index",
    "summary_use_proj": true,
    "use_cache": true,
    "torch_dtype": "float32"
  }

The layout of the run that wrote a checkpoint does not matter:

  $ triax train odd2.toml --set train.steps=1 --set parallel.tensor=3 --set run.dir=split --set data.path=text > /dev/null 2>&1
  $ triax checkpoint convert split split.safetensors > /dev/null
  $ triax export hf split split-hf
  split-hf: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  Tokenizer files: that of the training data, {folder}/text.json
  $ triax import hf split-hf --output split-again --run split-again.toml > /dev/null
  $ triax checkpoint diff --weights split split-again | tail -n 1
  bit-equal: 28 tensors of weights

Several files, of another type:

  $ triax export hf odd shards --dtype bf16 --max-shard-size 4kB
  shards: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 14.1 kB in 4 files
  No tokenizer files: the checkpoint has none; --files copies them from another folder
  $ ls shards
  config.json
  generation_config.json
  model-00001-of-00004.safetensors
  model-00002-of-00004.safetensors
  model-00003-of-00004.safetensors
  model-00004-of-00004.safetensors
  model.safetensors.index.json
  special_tokens_map.json
  $ head -n 5 shards/model.safetensors.index.json
  {
    "metadata": {
      "total_size": 14112
    },
    "weight_map": {
  $ triax import hf shards --output rounded --run rounded.toml
  rounded: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  rounded.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path
  $ grep torch_dtype shards/config.json
    "torch_dtype": "bfloat16"

A file has as many bytes as those of the hub's own tools:

  $ triax export hf --help | grep -o -- '--max-shard-size .*'
  --max-shard-size SIZE=5GB   most bytes of tensors in a file, such as 5GB

A weight that the type cannot hold is refused:

  $ cp -r $reference/gpt2-odd large; chmod -R u+w large; python3 - << 'END'
  > import struct
  > path = "large/model.safetensors"
  > data = bytearray(open(path, "rb").read())
  > data[-4:] = struct.pack("<f", 1e5)
  > open(path, "wb").write(data)
  > END
  $ triax import hf large --output large-imported --run large.toml > /dev/null
  $ triax export hf large-imported x --dtype f16
  embedding/tokens.weight (master) has values that are too large for f16
    choose a type with a larger range: --dtype bf16, f32 or f64
  [1]
  $ ls -A | grep -E '^(\.|x)'
  [1]
  $ triax export hf large-imported large-bf16 --dtype bf16 | head -1
  large-bf16: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 14.1 kB

Weights that are not finite are kept, with a warning:

  $ cp -r $reference/gpt2-odd diverged; chmod -R u+w diverged; python3 - << 'END'
  > import struct
  > path = "diverged/model.safetensors"
  > data = bytearray(open(path, "rb").read())
  > data[-8:] = struct.pack("<ff", float("nan"), float("-inf"))
  > open(path, "wb").write(data)
  > END
  $ triax import hf diverged --output diverged-imported --run diverged.toml > out.txt
  warning: diverged/model.safetensors: tensor "transformer.wte.weight" has 2 values that are NaN or infinite
    the file was damaged, or the model diverged in training: download the folder again, or use another model
  $ head -1 out.txt
  diverged-imported: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  $ triax generate diverged --tokenizer byte --prompt a --max-tokens 1 2>&1 > /dev/null | sed -n 1p
  warning: diverged/model.safetensors: tensor "transformer.wte.weight" has 2 values that are NaN or infinite

Tokenizer files are those of the training data, here of bytes, or come from a folder:

  $ triax export hf run trained
  trained: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  Tokenizer files: that of the training data, {folder}/text.json
  $ ls trained; cat trained/tokenizer_config.json; grep os_token_id trained/config.json
  config.json
  model.safetensors
  tokenizer.json
  tokenizer_config.json
  {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "clean_up_tokenization_spaces": false,
    "eos_token": "<|endoftext|>"
  }
    "bos_token_id": null,
    "eos_token_id": 256,
  $ triax generate trained --prompt "ab" --max-tokens 2 --json 2> /dev/null | grep -A 3 '"prompt_tokens"'
    "prompt_tokens": [
      97,
      98
    ],
  $ cp -r $reference/gpt2-odd model; chmod u+w model; echo '{}' > model/tokenizer.json
  $ triax export hf run with-files --files model/
  with-files: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  $ ls with-files
  config.json
  generation_config.json
  model.safetensors
  special_tokens_map.json
  tokenizer.json

The output of an import says how to prepare data with it, or why Triax cannot use it:

  $ triax import hf with-files/ --output with-tokenizer/ --run with-tokenizer.toml
  with-tokenizer: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  with-tokenizer.toml: a run that begins with it
  Triax cannot use its tokenizer: with-tokenizer/hf/tokenizer.json: has no key "model"
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path
  $ cp $SOURCE/tests/data/reference/trained.json model/tokenizer.json
  $ triax import hf model --output with-known --run with-known.toml
  with-known: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  with-known.toml: a run that begins with it
  Before it trains, it needs data: {build}/bin/triax data prepare --input TEXT --output PREFIX --tokenizer with-known/hf/tokenizer.json --append-eod, and PREFIX as data.path
  $ triax import hf model --output with-name --run with-name.toml --data not-there/text | tail -n +3
  Before it trains, it needs data: {build}/bin/triax data prepare --input TEXT --output not-there/text --tokenizer with-name/hf/tokenizer.json --append-eod
  $ python3 - << 'END'
  > import json
  > model = json.load(open("model/tokenizer.json"))["model"]
  > json.dump(model["vocab"], open("model/vocab.json", "w"))
  > open("model/merges.txt", "w").writelines(f"{m if isinstance(m, str) else ' '.join(m)}\n" for m in model["merges"])
  > END
  $ rm model/tokenizer.json
  $ triax import hf model --output with-vocab --run with-vocab.toml
  with-vocab: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  with-vocab.toml: a run that begins with it
  Before it trains, it needs data: {build}/bin/triax data prepare --input TEXT --output PREFIX --tokenizer gpt2 --vocab with-vocab/hf/vocab.json --merges with-vocab/hf/merges.txt --append-eod, and PREFIX as data.path
  $ rm model/vocab.json
  $ triax import hf model --output without --run without.toml --data text
  without: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  without.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  next: {build}/bin/triax train without.toml

An export has the tokenizer of the imported model, unless the training data have another. Token files without a
tokenizer may have any:

  $ cp text.bin plain.bin; cp text.idx plain.idx
  $ triax train with-tokenizer.toml --set data.path=plain --set train.steps=1 --set run.dir=tuned > /dev/null 2>&1
  $ triax export hf tuned/ tuned-hf/
  tuned-hf: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  Tokenizer files: those of the imported model, from {folder}/with-tokenizer/hf
  $ grep os_token_id tuned-hf/config.json
    "bos_token_id": 0,
    "eos_token_id": 0,

So has the run that begins with that run's checkpoint, also if config.json names the architecture by its type alone:

  $ sed -i '/"architectures"/,/]/d' with-tokenizer/hf/config.json; grep -c architectures with-tokenizer/hf/config.json
  0
  [1]
  $ triax train with-tokenizer.toml --set data.path=plain --set train.steps=1 --set run.dir=further --set checkpoint.from=$(echo tuned/checkpoints/step-*) > /dev/null 2>&1
  $ triax export hf further further-hf | tail -n +2
  Tokenizer files: those of the imported model, from {folder}/with-tokenizer/hf
  $ grep os_token_id further-hf/config.json
    "bos_token_id": 0,
    "eos_token_id": 0,
  $ mv with-tokenizer moved
  $ triax export hf further moved-hf | tail -n +2
  bos_token_id and eos_token_id are null in config.json, because the imported model is not found: {folder}/with-tokenizer/manifest.json: does not exist; set them there
  No tokenizer files: the checkpoint has none, and {folder}/plain.json does not exist; --files copies them from another folder
  $ grep os_token_id moved-hf/config.json
    "bos_token_id": null,
    "eos_token_id": null,

A model that does not come from transformers has the token that ends a document of its data, where files without the
keys would have those of GPT-2:

  $ triax train base.toml --set run.dir=scratch --set train.steps=1 > /dev/null 2>&1
  $ triax export hf scratch scratch-hf > /dev/null; grep os_token_id scratch-hf/config.json
    "bos_token_id": null,
    "eos_token_id": 256,
