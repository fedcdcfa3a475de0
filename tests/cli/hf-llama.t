# SPDX-License-Identifier: Apache-2.0

# triax import and triax export: the Llama family, and models of other plugins

  $ . "$TESTDIR/setup"
  $ reference=$SOURCE/tests/hf/reference

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
  sequence = 13  # tokens per sample: use fewer if no weight depends on it, as in model-llama
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

The plugin may be named:

  $ triax import hf $reference/llama-tied --output named --run named.toml --model model-llama | head -1
  named: LlamaForCausalLM as model-llama, 1,344 parameters in 11 tensors, 6.07 kB

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
    for samples that are not longer than the window, set sliding_window to null and max_position_embeddings to the window's length; otherwise use another model
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
    correct the name, or name the plugin's folder with --path or TRIAX_PLUGIN_PATH
  [2]
  $ triax export hf of-own of-own-hf --path own | head -1
  of-own-hf: GroupedForCausalLM, 352 parameters in 9 tensors, 1.41 kB
  $ triax import hf of-own-hf --output of-own-again --run of-own-again.toml --path own > /dev/null
  $ triax checkpoint diff of-own of-own-again | tail -1
  bit-equal: 6 tensors, and the state of training
