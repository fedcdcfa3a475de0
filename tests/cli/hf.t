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
  Before it trains, it needs data: triax data prepare --input TEXT --output PREFIX --tokenizer TOKENIZER, and PREFIX as data.path
  $ sed "s|$SOURCE|{source}|; s/Triax .*\./Triax {version}./" odd.toml
  # GPT2LMHeadModel of "{source}/tests/hf/reference/gpt2-odd", imported by Triax {version}.
  
  [model]
  plugin = "model-gpt"
  layers = 2
  hidden = 12
  heads = 3
  sequence = 11
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

A run without data says what it needs:

  $ triax check odd.toml
  odd.toml: data.path is missing (token files to train on; data.paths: several)
    prepare it with: triax data prepare --input FILE... --output data/mine --tokenizer byte
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
  No tokenizer files: the checkpoint has none; --files copies them from another folder
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
  Before it trains, it needs data: triax data prepare --input TEXT --output PREFIX --tokenizer TOKENIZER, and PREFIX as data.path
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

Tokenizer files come from the checkpoint, or from another folder:

  $ triax export hf run trained
  trained: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  No tokenizer files: the checkpoint has none; --files copies them from another folder
  $ cp -r $reference/gpt2-odd model; chmod u+w model; echo '{}' > model/tokenizer.json
  $ triax export hf run with-files --files model/
  with-files: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  $ ls with-files
  config.json
  generation_config.json
  model.safetensors
  special_tokens_map.json
  tokenizer.json

The output of an import says how to prepare data with it:

  $ triax import hf with-files/ --output with-tokenizer/ --run with-tokenizer.toml
  with-tokenizer: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  with-tokenizer.toml: a run that begins with it
  Before it trains, it needs data: triax data prepare --input TEXT --output PREFIX --tokenizer with-tokenizer/hf/tokenizer.json, and PREFIX as data.path
  $ mv model/tokenizer.json model/vocab.json; touch model/merges.txt
  $ triax import hf model --output with-vocab --run with-vocab.toml
  with-vocab: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  with-vocab.toml: a run that begins with it
  Before it trains, it needs data: triax data prepare --input TEXT --output PREFIX --tokenizer gpt2 --vocab with-vocab/hf/vocab.json --merges with-vocab/hf/merges.txt, and PREFIX as data.path
  $ rm model/vocab.json
  $ triax import hf model --output without --run without.toml --data text
  without: GPT2LMHeadModel as model-gpt, 7,056 parameters in 28 tensors, 30.7 kB
  without.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model

An export names the folder of a tokenizer that a run's checkpoint does not have:

  $ triax train with-tokenizer.toml --set data.path=text --set train.steps=1 --set run.dir=tuned > /dev/null 2>&1
  $ triax export hf tuned/ tuned-hf/
  tuned-hf: GPT2LMHeadModel, 7,056 parameters in 28 tensors, 28.2 kB
  No tokenizer files: those of the imported model are in {folder}/with-tokenizer/hf: --files copies them
  $ grep os_token_id tuned-hf/config.json
    "bos_token_id": 0,
    "eos_token_id": 0,

So has the run that begins with that run's checkpoint, also if config.json names the architecture by its type alone:

  $ sed -i '/"architectures"/,/]/d' with-tokenizer/hf/config.json; grep -c architectures with-tokenizer/hf/config.json
  0
  [1]
  $ triax train with-tokenizer.toml --set data.path=text --set train.steps=1 --set run.dir=further --set checkpoint.from=$(echo tuned/checkpoints/step-*) > /dev/null 2>&1
  $ triax export hf further further-hf | tail -n +2
  No tokenizer files: those of the imported model are in {folder}/with-tokenizer/hf: --files copies them
  $ grep os_token_id further-hf/config.json
    "bos_token_id": 0,
    "eos_token_id": 0,
  $ mv with-tokenizer moved
  $ triax export hf further moved-hf | tail -n +2
  bos_token_id and eos_token_id are null in config.json, because the imported model is not found: {folder}/with-tokenizer/manifest.json: does not exist; set them there
  No tokenizer files: the checkpoint has none; --files copies them from another folder
  $ grep os_token_id moved-hf/config.json
    "bos_token_id": null,
    "eos_token_id": null,

A model that does not come from transformers has no such tokens, where files without the keys would have those of GPT-2:

  $ triax train base.toml --set run.dir=scratch --set train.steps=1 > /dev/null 2>&1
  $ triax export hf scratch scratch-hf > /dev/null; grep os_token_id scratch-hf/config.json
    "bos_token_id": null,
    "eos_token_id": null,

## Refusals of the command line

  $ triax import
  triax: missing subcommand; use one of: hf
    see: triax import --help
  [2]
  $ triax import hf $reference/gpt2-odd
  triax: --output and --run are required
    see: triax import hf --help
  [2]
  $ triax import hf missing --output x --run x.toml
  missing: does not exist
    name the folder of a model that transformers has saved
  [2]
  $ triax import hf text.txt --output x --run x.toml
  text.txt: is not a folder
    name the folder of a model that transformers has saved
  [2]
  $ triax import hf $reference/gpt2-odd --output odd --run x.toml
  odd: exists
    remove it, or name another folder
  [2]
  $ triax import hf $reference/gpt2-odd --output step-00000001 --run x.toml
  step-00000001: has the name of a run's own checkpoint, which a run would continue from
    choose a name that is not step-N
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run odd.toml
  odd.toml: exists
    remove it, or name another file
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run x
  --run must name a file that ends with .toml, got "x"
    name the TOML to write
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run x.toml --model sched-gpipe
  {plugins}/sched-gpipe.so: sched-gpipe is a plugin of kind scheduler; kind model is needed
  [2]
  $ triax import hf $reference/gpt2-odd --output odd/ --run x.toml
  odd: exists
    remove it, or name another folder
  [2]
  $ triax import hf $reference/gpt2-odd --output step-00000001/ --run x.toml
  step-00000001: has the name of a run's own checkpoint, which a run would continue from
    choose a name that is not step-N
  [2]
  $ triax import hf $reference/gpt2-odd --output x.safetensors --run x.toml
  x.safetensors: --output must be a folder, and this is the name of a file
    name a folder; triax checkpoint convert writes one file of weights
  [2]
  $ triax import hf $reference/gpt2-odd --output text.txt/x --run x.toml
  text.txt/x: cannot be created: text.txt is a file, not a folder
    name a folder in one that this user may write to
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run x/run.toml
  x/run.toml: is in the folder of --output
    name a file beside the checkpoint with --run
  [2]
  $ triax import hf $reference/gpt2-odd --output x.toml --run x.toml
  x.toml: --output must be a folder, and this is the name of a file
    name a folder; triax checkpoint convert writes one file of weights
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run no/x.toml
  no/x.toml: cannot be created: No such file or directory
    name a file in a folder that exists and that this user may write to
  [2]
  $ triax import hf model --output model/x --run x.toml
  model/x: is in the model's folder
    name a folder beside it with --output
  [2]
  $ triax import hf model/model.safetensors --output x --run x.toml
  model/model.safetensors: is not a folder
    name the folder of a model that transformers has saved
  [2]
  $ triax import hf "" --output x --run x.toml
  triax: DIR must not be empty
    see: triax import hf --help
  [2]
  $ triax import hf model --output "" --run ""
  triax: --output must not be empty
    see: triax import hf --help
  [2]
  $ triax import hf model --output x --run x.toml --ignore my_nte --ignore n_head
  model/config.json: --ignore my_nte: the file does not have this key
    remove the flag, or name another
  model/config.json: --ignore n_head: model-gpt depends on this key
    remove the flag
  [2]
  $ triax import hf $reference/gpt2-odd --output no/x --run x.toml
  no/x: cannot be created: No such file or directory
    create the folder no, or name one in an existing folder
  [2]
  $ triax export hf odd exported
  exported: exists
    remove it, or name another folder
  [2]
  $ triax export hf odd/ exported/
  exported: exists
    remove it, or name another folder
  [2]
  $ triax export hf odd no/x
  no/x: cannot be created: No such file or directory
    create the folder no, or name one in an existing folder
  [2]
  $ triax export hf odd x.safetensors
  x.safetensors: DIR must be a folder, and this is the name of a file
    name a folder; triax checkpoint convert writes one file of weights
  [2]
  $ triax export hf odd odd/hf/x
  odd/hf/x: is in a checkpoint
    name a folder beside it
  [2]
  $ triax export hf odd x --files $reference/gpt2-odd
  {source}/tests/hf/reference/gpt2-odd: has no tokenizer: tokenizer.json, vocab.json with merges.txt, or tokenizer.model
    name a folder with tokenizer.json in --files
  [2]
  $ triax export hf odd odd/x
  odd/x: is in a checkpoint
    name a folder beside it
  [2]
  $ triax export hf text.txt x
  text.txt: is not a checkpoint
    name a folder step-N, a run's folder or its TOML file
  [2]
  $ triax export hf odd x --dtype i8
  triax: --dtype must be f32, bf16, f16 or f64, got "i8"
    see: triax export hf --help
  [2]
  $ triax export hf odd x --max-shard-size 5
  triax: --max-shard-size must be a size above 0 with a unit (such as 80GiB), got "5"
    see: triax export hf --help
  [2]
  $ triax export hf odd x --architecture LlamaForCausalLM
  --architecture must be an architecture of model-gpt, got LlamaForCausalLM
    use GPT2LMHeadModel
  [2]
  $ triax export hf odd x --files missing
  missing: does not exist
    name a folder with tokenizer.json in --files
  [2]

Nothing was written:

  $ ls -A | grep -E '^(\.|x)'
  [1]

## The Llama family

Llama, Mistral, Qwen2 and Qwen3 are models of one plugin. A separate head, grouped heads and scaled positions:

  $ triax import hf $reference/llama-scaled --output llama --run llama.toml | head -1
  llama: LlamaForCausalLM as model-llama, 16,620 parameters in 21 tensors, 67.8 kB
  $ sed -n '/^\[model\]/,/^$/p' llama.toml
  [model]
  plugin = "model-llama"
  layers = 2
  hidden = 20
  heads = 4
  kv_heads = 2
  head_size = 8
  sequence = 13
  inner = 18
  norm_eps = 0.001
  rope_theta = 20000.0
  rope_scaling = "llama3"
  rope_factor = 8.0
  rope_low_freq_factor = 0.1
  rope_high_freq_factor = 1.0
  rope_original_sequence = 4
  qkv_bias = false
  qk_norm = false
  tied = false
  vocab = 263
  
  $ triax export hf llama llama-again | head -1
  llama-again: LlamaForCausalLM, 16,620 parameters in 21 tensors, 66.5 kB

An export has the architecture that the weights came from, or another one with the same layers:

  $ triax import hf $reference/mistral-grouped --output mistral --run mistral.toml > out.txt
  $ triax export hf mistral as-mistral | head -1; triax export hf mistral as-llama --architecture LlamaForCausalLM | head -1
  as-mistral: MistralForCausalLM, 6,696 parameters in 21 tensors, 26.8 kB
  as-llama: LlamaForCausalLM, 6,696 parameters in 21 tensors, 26.8 kB
  $ triax export hf mistral as-qwen --architecture Qwen2ForCausalLM
  mistral: model.qkv_bias = false cannot be stored as Qwen2ForCausalLM, which has true
    train a model with the other value, or choose another --architecture
  mistral: model.head_size = 4 cannot be stored as Qwen2ForCausalLM, which has 0
    train a model with the other value, or choose another --architecture
  [2]

A window, or another way to scale positions, is refused:

  $ cp -r $reference/mistral-grouped windowed; sed -i 's/"sliding_window": null/"sliding_window": 4/; s/"rope_type": "default"/"rope_type": "yarn"/' windowed/config.json
  $ triax import hf windowed --output out --run out.toml
  windowed/config.json: rope_parameters.rope_type = "yarn" is not supported by model-llama, which has "default" or "llama3"
    use another model, or choose a model plugin that supports it with --model
  windowed/config.json: sliding_window = 4 is not supported by model-llama, which has null
    use another model, or choose a model plugin that supports it with --model
  [2]

## Models of other plugins

A folder of plugins is searched with --path:

  $ [ -e "$BUILD/tests/hf/plugins/model-grouped.so" ] || exit 80
  $ mkdir own grouped; cp "$BUILD/tests/hf/plugins/model-grouped.so" own
  $ python3 - << 'END'
  > import json, struct
  > config = {"architectures": ["GroupedForCausalLM"], "vocab_size": 6, "hidden_size": 8, "num_hidden_layers": 1,
  >           "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 5}
  > json.dump(config, open("grouped/config.json", "w"))
  > block = "model.layers.0."
  > shapes = {"model.embed_tokens.weight": [6, 8], block + "self_attn.q_proj.weight": [8, 8],
  >           block + "self_attn.k_proj.weight": [4, 8], block + "self_attn.v_proj.weight": [4, 8],
  >           block + "mlp.gate_proj.weight": [5, 8], block + "mlp.up_proj.weight": [5, 8],
  >           block + "mlp.down_proj.weight": [8, 5], "model.norm.weight": [8], "lm_head.weight": [6, 8]}
  > header, data = {}, b""
  > for number, (name, shape) in enumerate(shapes.items()):
  >     begin = len(data)
  >     data += struct.pack("<f", number + 1) * (shape[0] * (shape[1] if len(shape) > 1 else 1))
  >     header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
  > text = json.dumps(header).encode()
  > open("grouped/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
  > END
  $ triax import hf grouped --output of-own --run of-own.toml 2>&1 | head -1
  grouped/config.json: no model plugin has the architecture GroupedForCausalLM
  $ triax import hf grouped --output of-own --run of-own.toml --path own | head -1
  of-own: GroupedForCausalLM as model-grouped, 352 parameters in 9 tensors, 1.89 kB
  $ grep -A 1 '^\[plugins\]' of-own.toml
  [plugins]
  path = ["own"]
  $ triax export hf of-own of-own-hf
  plugin "model-grouped" was not found
    looked in: {plugins}
    installed models: model-gpt, model-llama
    correct the name, or name the plugin's folder: plugins.path in a run, --path, or TRIAX_PLUGIN_PATH
  [2]
  $ triax export hf of-own of-own-hf --path own | head -1
  of-own-hf: GroupedForCausalLM, 352 parameters in 9 tensors, 1.41 kB
  $ triax import hf of-own-hf --output of-own-again --run of-own-again.toml --path own > /dev/null
  $ triax checkpoint diff of-own of-own-again | tail -1
  bit-equal: 6 tensors, and the state of training
