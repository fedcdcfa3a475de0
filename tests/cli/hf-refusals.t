# SPDX-License-Identifier: Apache-2.0

# Folders that triax import hf refuses

  $ . "$TESTDIR/setup"
  $ reference=$SOURCE/tests/hf/reference

Each case is a copy of a good folder with one fault:

  $ faulty() { rm -rf bad; cp -r "$reference/${1:-gpt2-sharded}" bad; chmod -R u+w bad; }
  $ import() { triax import hf bad --output out --run out.toml "$@"; }
  $ config() { python3 - "$@" << 'END'
  > import json, sys
  > path = "bad/config.json"
  > values = json.load(open(path))
  > values.update(json.loads(sys.argv[1]))
  > json.dump(values, open(path, "w"))
  > END
  > }
  $ header() { python3 - "$@" << 'END'
  > import json, struct, sys
  > path = sys.argv[1]
  > data = open(path, "rb").read()
  > size, = struct.unpack("<Q", data[:8])
  > entries = json.loads(data[8 : 8 + size])
  > exec(sys.argv[2])
  > text = json.dumps(entries).encode()
  > open(path, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size :])
  > END
  > }
  $ one=bad/model-00001-of-00004.safetensors

## config.json

  $ faulty; rm bad/config.json; import
  bad/config.json: does not exist
    name the folder of a model that transformers has saved
  [2]
  $ faulty; echo 'vocab_size = 37' > bad/config.json; import
  bad/config.json: is not valid JSON at line 1, column 1
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; printf '%0100000d' 0 | tr 0 '[' > bad/config.json; import
  bad/config.json: is nested too deeply (more than 16 levels)
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; echo '{"n_embd": 8, "n_embd": 16}' > bad/config.json; import
  bad/config.json: has the key "n_embd" twice
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; ln -sf /dev/zero bad/config.json; import
  bad/config.json: is a character device, not a regular file
    name the folder of a model that transformers has saved
  [2]
  $ faulty; ln -sf config.json bad/config.json; import
  bad/config.json: cannot be opened: Too many levels of symbolic links
    name the folder of a model that transformers has saved
  [2]
  $ faulty; config '{"architectures": ["MambaForCausalLM"], "model_type": "mamba"}'; import
  bad/config.json: no model plugin has the architecture MambaForCausalLM
    known: GPT2LMHeadModel (model-gpt), LlamaForCausalLM (model-llama), MistralForCausalLM (model-llama), Qwen2ForCausalLM (model-llama), Qwen3ForCausalLM (model-llama)
  [2]
  $ faulty; config '{"model_type": "llama"}'; import
  bad/config.json: model_type is "llama", but that of GPT2LMHeadModel is "gpt2"
    the file is of another model, or was damaged
  [2]

Only one architecture can be meant:

  $ faulty; config '{"architectures": []}'; import; rm -r out out.toml
  out: GPT2LMHeadModel as model-gpt, 3,000 parameters in 40 tensors, 15.4 kB
  out.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path
  $ faulty; config '{"architectures": ["GPT2LMHeadModel"], "model_type": null}'; import; rm -r out out.toml
  out: GPT2LMHeadModel as model-gpt, 3,000 parameters in 40 tensors, 15.4 kB
  out.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path
  $ faulty; config '{"architectures": null, "model_type": null}'; import
  bad/config.json: has neither architectures nor model_type
    the file is of another model, or was damaged
  [2]
  $ faulty; config '{"architectures": ["GPT2LMHeadModel", "GPT2Model"]}'; import
  bad/config.json: architectures has several names: GPT2LMHeadModel, GPT2Model
    keep the one whose weights the folder has
  [2]
  $ faulty; config '{"architectures": "GPT2LMHeadModel"}'; import
  bad/config.json: architectures must be a list of strings that are not empty, got "GPT2LMHeadModel"
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; config '{"architectures": [], "model_type": "mamba"}'; import
  bad/config.json: no model plugin has an architecture with model_type "mamba"
    known: GPT2LMHeadModel (model-gpt), LlamaForCausalLM (model-llama), MistralForCausalLM (model-llama), Qwen2ForCausalLM (model-llama), Qwen3ForCausalLM (model-llama)
  [2]
  $ faulty; config '{"model_type": ["gpt2"]}'; import
  bad/config.json: model_type must be a string, got ["gpt2"]
    the file was damaged, or is not of a model: download the folder again
  [2]

JSON is read strictly:

  $ faulty; sed -i 's/"n_embd": 8/"n_embd": NaN/' bad/config.json; import
  bad/config.json: is not valid JSON at line 15, column 13
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; sed -i 's/"n_embd": 8/"n_embd": 18446744073709551616/' bad/config.json; import
  bad/config.json: has an integer that does not fit into 64 bits
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; echo '{}' >> bad/config.json; import
  bad/config.json: is not valid JSON at line 35, column 1
    the file was damaged, or is not of a model: download the folder again
  [2]
  $ faulty; sed -i 's/"weight_map": {/"weight_map": {"transformer.wpe.weight": "x.safetensors",/' bad/*.index.json; import
  bad/model.safetensors.index.json: has the key "transformer.wpe.weight" twice
    the file was damaged, or is not of a model: download the folder again
  [2]

What the model cannot do is refused key by key:

  $ faulty; config '{"activation_function": "relu", "tie_word_embeddings": false, "n_layer": "3", "attn_pdrop": 0.5, "n_head": 0, "sliding_window": 4, "scale_attn_by_inverse_layer_idx": true}'; import
  bad/config.json: n_layer = "3" is not an integer
    the file is of another model, or was damaged
  bad/config.json: n_head must be in [1, 1000000], got 0
    the file is of another model, or was damaged
  bad/config.json: resid_pdrop = 0.1 and attn_pdrop = 0.5 differ: model-gpt has one value for both, model.dropout
    set both to one value if the difference does not matter to you
  bad/config.json: activation_function = "relu" is not supported by model-gpt, which has "gelu_new" or "gelu_pytorch_tanh"
    use another model, or choose a model plugin that supports it with --model
  bad/config.json: tie_word_embeddings = false is not supported by model-gpt, which has true
    use another model, or choose a model plugin that supports it with --model
  bad/config.json: scale_attn_by_inverse_layer_idx = true is not supported by model-gpt, which has false
    use another model, or choose a model plugin that supports it with --model
  bad/config.json: sliding_window = 4 is an unknown key of GPT2LMHeadModel
    if it does not change what the model computes: --ignore sliding_window
  [2]
  $ faulty; config '{"n_head": 3}'; import
  bad/config.json: model.hidden = 8 is not divisible by model.heads = 3: each head has hidden / heads columns
    the file is of another model, or was damaged
  [2]

A key that changes nothing can be ignored:

  $ faulty; config '{"my_note": "mine"}'; import
  bad/config.json: my_note = "mine" is an unknown key of GPT2LMHeadModel
    if it does not change what the model computes: --ignore my_note
  [2]
  $ import --ignore my_nte
  bad/config.json: my_note = "mine" is an unknown key of GPT2LMHeadModel
    if it does not change what the model computes: --ignore my_note
  bad/config.json: --ignore my_nte: the file does not have this key
    remove the flag, or name another
  [2]
  $ import --ignore my_note; rm -r out out.toml
  out: GPT2LMHeadModel as model-gpt, 3,000 parameters in 40 tensors, 15.4 kB
  out.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path

A key whose name is too long to be shown cannot be given to the flag:

  $ faulty; config "{\"$(printf '%0300d' 0)\": 1}"; import 2>&1 | tail -n 1
    if it does not change what the model computes: remove it from the file

An object in the place of a value is not ignored:

  $ faulty; config '{"n_head": {"a": 4}}'; import --ignore n_head.a
  bad/config.json: n_head is an object, but GPT2LMHeadModel has one value there
    the file is of another model, or was damaged
  [2]

## Tensors

  $ faulty; config '{"n_embd": 16, "n_layer": 1}'; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight" has shape [37, 8], but config.json asks for [37, 16] (and 15 more)
    the file and config.json are of different models
  bad/model-00002-of-00004.safetensors: tensor "transformer.h.1.attn.c_attn.bias" is not of GPT2LMHeadModel with this config.json (and 23 more)
    the model has parts that model-gpt does not have, or config.json is of another model
  [2]
  $ faulty; config '{"n_layer": 4}'; import
  bad: tensor "transformer.h.3.ln_1.weight" of shape [8] is missing (and 11 more)
    the folder is not complete, or its config.json is of another model
  [2]
  $ faulty; header $one 'entries["transformer.wte.weight"]["shape"] = [8, 37]'; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight" has shape [8, 37], but config.json asks for [37, 8]
    the file and config.json are of different models
  [2]
  $ faulty; header $one 'entries["transformer.wte.weight"]["dtype"] = "I32"'; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight" has type I32, which is not a type of weights
    quantized models cannot be imported: use the model that was quantized
  [2]
  $ faulty; header $one 'entries["transformer.wte.weight"].update(dtype="F8_E4M3", shape=[37, 4, 8])'; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight" has type F8_E4M3, which is not a type of weights
    quantized models cannot be imported: use the model that was quantized
  [2]
  $ faulty; header $one 'entries["transformer.wte.weight"]["dtype"] = "F7"'; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight": dtype "F7" is not a type of the format
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty; config '{"quantization_config": {"bits": 4}}'; import
  bad/config.json: quantization_config.bits = 4 is an unknown key of GPT2LMHeadModel
    quantized models cannot be imported: use the model that was quantized
  [2]

  $ faulty; config '{"quantization": {"bits": 4}}'; import
  bad/config.json: quantization.bits = 4 is an unknown key of GPT2LMHeadModel
    quantized models cannot be imported: use the model that was quantized
  [2]

Masks of early versions may have any type:

  $ faulty gpt2-inner; header bad/model.safetensors 'entries["transformer.h.0.attn.bias"] = {"dtype": "BOOL", "shape": [1, 1, 2, 2], "data_offsets": [5412, 5416]}'; printf 'mask' >> bad/model.safetensors; import; rm -r out out.toml
  out: GPT2LMHeadModel as model-gpt, 1,353 parameters in 16 tensors, 6.76 kB
  out.toml: a run that begins with it
  No tokenizer files: the model's folder does not have tokenizer.json, vocab.json with merges.txt, or tokenizer.model
  Before it trains, it needs data: make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path
  $ faulty gpt2-inner; header bad/model.safetensors 'entries["mask"] = {"dtype": "BOOL", "shape": [1, 1, 2, 2], "data_offsets": [5412, 5416]}'; printf 'mask' >> bad/model.safetensors; import
  bad/model.safetensors: tensor "mask" is not of GPT2LMHeadModel with this config.json
    the model has parts that model-gpt does not have, or config.json is of another model
  [2]
  $ faulty; header $one 'entries["transformer.wte.weight"]["data_offsets"] = [0, 1184]; entries["transformer.wpe.weight"]["data_offsets"] = [1180, 1468]'; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight": its data begins at byte 0 instead of 96
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty gpt2-inner; header bad/model.safetensors 'entries["more"] = {"dtype": "F32", "shape": [0], "data_offsets": [5416, 5416]}'; import
  bad/model.safetensors: tensor "more": its data begins at byte 5416 instead of 5412
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty; truncate -s -1 $one; import
  bad/model-00001-of-00004.safetensors: has 3903 bytes of data, but its header names 3904
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty; truncate -s 5 $one; import
  bad/model-00001-of-00004.safetensors: is too short for a header
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty; printf '\377\377\377\377\377\377\377\177' | dd of=$one conv=notrunc status=none; import
  bad/model-00001-of-00004.safetensors: its header would have 9223372036854775807 bytes, but the file has 4984
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty; rm $one; import
  bad/model.safetensors.index.json: names the file model-00001-of-00004.safetensors, which does not exist
    download the folder again, or name another
  [2]
  $ faulty; ln -sf /dev/zero $one; import
  bad/model-00001-of-00004.safetensors: is a character device, not a regular file
    download the folder again, or name another
  [2]
  $ faulty; ln -sf nowhere $one; import
  bad/model-00001-of-00004.safetensors: is a symbolic link to nowhere, which does not exist
    download the folder again, or name another
  [2]

  $ faulty; : > $one; import
  bad/model-00001-of-00004.safetensors: is too short for a header
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]
  $ faulty gpt2-inner; rm bad/model.safetensors; mkdir bad/model.safetensors; import
  bad/model.safetensors: is a folder, not a regular file
    download the folder again, or name another
  [2]
  $ faulty; header $one 'entries["__metadata__"]["format"] = 3'; import
  bad/model-00001-of-00004.safetensors: __metadata__ is not an object of texts
    the file is not a safetensors file, or was damaged: restore it, or use another
  [2]

A clone without git-lfs has a small text in the place of each large file:

  $ pointer() { printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4992\n' 0 > "$1"; }
  $ faulty; pointer $one; import
  bad/model-00001-of-00004.safetensors: is a pointer of Git LFS, not the file itself
    git lfs pull downloads the file
  [2]
  $ faulty; pointer bad/tokenizer.json; import
  bad/tokenizer.json: is a pointer of Git LFS, not the file itself
    git lfs pull downloads the file
  [2]
  $ faulty; pointer bad/model.safetensors.index.json; import
  bad/model.safetensors.index.json: is a pointer of Git LFS, not the file itself
    git lfs pull downloads the file
  [2]

A head that is not the token table is a parameter that the model does not have:

  $ faulty gpt2-inner; header bad/model.safetensors 'entries["lm_head.weight"] = {"dtype": "F32", "shape": [29, 10], "data_offsets": [5412, 6572]}'; head -c 1160 /dev/zero >> bad/model.safetensors; import
  bad/model.safetensors: tensor "lm_head.weight" differs from "transformer.wte.weight", which model-gpt uses for both
    the model is not tied: use a model plugin that has both tensors
  [1]

## The index

  $ faulty; sed -i 's/"transformer.wte.weight": "model-00001/"transformer.wte.weight": "model-00002/' bad/*.index.json; import
  bad/model-00001-of-00004.safetensors: tensor "transformer.wte.weight" is in this file, but the index names model-00002-of-00004.safetensors for it
    download the folder again, or name another
  [2]
  $ faulty; sed -i '/"transformer.ln_f.weight"/d' bad/*.index.json; import
  bad/model-00004-of-00004.safetensors: tensor "transformer.ln_f.weight" is in this file, but the index does not name it
    download the folder again, or name another
  [2]
  $ faulty; sed -i 's|model-00001|../bad/model-00001|' bad/*.index.json; import
  bad/model.safetensors.index.json: names "../bad/model-00001-of-00004.safetensors" for tensor "transformer.h.0.attn.c_attn.bias", which is not a safetensors file of the folder
    download the folder again, or name another
  [2]
  $ faulty; sed -i 's|model-00001-of-00004.safetensors||' bad/*.index.json; import
  bad/model.safetensors.index.json: names "" for tensor "transformer.h.0.attn.c_attn.bias", which is not a safetensors file of the folder
    download the folder again, or name another
  [2]
  $ faulty; echo '{"weight_map": 3}' > bad/model.safetensors.index.json; import
  bad/model.safetensors.index.json: has no weight_map
    download the folder again, or name another
  [2]
  $ faulty; cp $one bad/model.safetensors; import
  bad: has both model.safetensors and model.safetensors.index.json
    remove the one that is not of this model
  [2]

## Other formats

  $ faulty; echo '{"peft_type": "LORA"}' > bad/adapter_config.json; import
  bad: has an adapter (adapter_config.json), which changes the weights of a model
    merge it into its model with merge_and_unload() of peft, save that model, and name its folder
  [2]
  $ faulty; rm bad/*.safetensors bad/*.index.json; import
  bad: has neither model.safetensors nor model.safetensors.index.json
    name the folder of a model that transformers has saved
  [2]
  $ touch bad/pytorch_model.bin; import
  bad: pytorch_model.bin is a pickled file, which can run any program when it is loaded; Triax reads safetensors only
    if you trust its author, convert it with transformers: python3 -c "from transformers import AutoModelForCausalLM as M; M.from_pretrained('DIR').save_pretrained('NEW_DIR')"
  [2]
  $ rm bad/pytorch_model.bin; mkfifo bad/pytorch_model.bin; timeout 30 "$TRIAX" import hf bad --output out --run out.toml > log 2>&1
  [2]
  $ grep -o 'bad: pytorch_model.bin is a pickled file' log
  bad: pytorch_model.bin is a pickled file
  $ faulty; sed -i 's/model-00001-of-00004.safetensors/pytorch_model-00001.bin/' bad/*.index.json; import
  bad: pytorch_model-00001.bin is a pickled file, which can run any program when it is loaded; Triax reads safetensors only
    if you trust its author, convert it with transformers: python3 -c "from transformers import AutoModelForCausalLM as M; M.from_pretrained('DIR').save_pretrained('NEW_DIR')"
  [2]
  $ faulty; rm bad/*.safetensors bad/*.index.json; touch bad/model.gguf; import
  bad: has no model.safetensors, but model.gguf is of a format that Triax does not read
    convert it with transformers' save_pretrained()
  [2]

A pickled file is not opened: a program that opens this one waits. Beside safetensors, it has no effect:

  $ faulty; mkfifo bad/pytorch_model.bin; timeout 30 "$TRIAX" import hf bad --output beside --run beside.toml > log; head -1 log
  beside: GPT2LMHeadModel as model-gpt, 3,000 parameters in 40 tensors, 15.4 kB
  $ rm -r beside beside.toml

Nothing was written:

  $ ls -A | grep -E '^(\.|out)'
  [1]
