# SPDX-License-Identifier: Apache-2.0

# Command lines of triax import and triax export that are refused

  $ . "$TESTDIR/setup"
  $ reference=$SOURCE/tests/hf/reference
  $ triax import hf $reference/gpt2-odd --output odd --run odd.toml > /dev/null
  $ triax export hf odd exported > /dev/null
  $ cp -r $reference/gpt2-odd model; chmod -R u+w model

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
  odd: already exists
    remove it, or name another folder
  [2]
  $ triax import hf $reference/gpt2-odd --output step-00000001 --run x.toml
  step-00000001: is a name that a run would take for its own checkpoint and continue from
    choose a name that is not step-N
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run odd.toml
  odd.toml: already exists
    remove it, or name another file
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run x
  --run must name a file that ends with .toml, got "x"
    name the TOML to write
  [2]
  $ triax import hf $reference/gpt2-odd --output x --run x.toml --model sched-gpipe
  {plugins}/sched-gpipe.so: sched-gpipe is a plugin of kind scheduler; kind model is needed
  [2]
  $ triax import hf $reference/llama-tied --output x --run x.toml --model model-gpt
  {source}/tests/hf/reference/llama-tied/config.json: model-gpt does not have the architecture LlamaForCausalLM
    it has GPT2LMHeadModel; leave out --model to search all model plugins
  [2]
  $ triax import hf $reference/gpt2-odd --output odd/ --run x.toml
  odd: already exists
    remove it, or name another folder
  [2]
  $ triax import hf $reference/gpt2-odd --output step-00000001/ --run x.toml
  step-00000001: is a name that a run would take for its own checkpoint and continue from
    choose a name that is not step-N
  [2]
  $ triax import hf $reference/gpt2-odd --output x.safetensors --run x.toml
  x.safetensors: --output must be a folder, but this is the name of a file
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
  x.toml: --output must be a folder, but this is the name of a file
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
  exported: already exists
    remove it, or name another folder
  [2]
  $ triax export hf odd/ exported/
  exported: already exists
    remove it, or name another folder
  [2]
  $ triax export hf odd no/x
  no/x: cannot be created: No such file or directory
    create the folder no, or name one in an existing folder
  [2]
  $ triax export hf odd x.safetensors
  x.safetensors: DIR must be a folder, but this is the name of a file
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
    name a checkpoint folder (step-N), a run's folder, or its TOML file
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
