#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small models with Hugging Face's transformers, and their logits: tests/hf/reference.

The models, of GPT-2 and of the Llama family, are random, with sizes that are not powers of two: a separate MLP
width, other values of eps, grouped heads, several files. Every parameter is random, biases and norms too, so that no mistake is hidden by zeros and ones.

  make-hf-reference.py                       writes the folders of the models, and logits.json
  make-hf-reference.py --check DIR MODEL     loads DIR, which Triax has exported; its weights must have the bits of the
                                             reference MODEL, rounded to the type of DIR. In float32, its logits must
                                             be those of logits.json
  make-hf-reference.py --loss DIR TOKENS...  prints the mean loss of DIR over samples of tokens, for each file TOKENS:
                                             [[first, ..., last], ...]
  make-hf-reference.py --tokens DIR TEXT     prints the tokens of a text and the token that ends a document, by the
                                             tokenizer of DIR: {"tokens": [...], "end": 256}

Exit status 77: transformers or PyTorch is not installed.
"""

import argparse
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests" / "hf" / "reference")
parser.add_argument("--check", nargs=2, metavar=("DIR", "MODEL"))
parser.add_argument("--loss", nargs="+", metavar=("DIR", "TOKENS"))
parser.add_argument("--tokens", nargs=2, metavar=("DIR", "TEXT"))
ARGUMENTS = parser.parse_args()  # before PyTorch is imported: --help does not need it

try:
    import torch
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM
except ImportError as missing:
    print(f"make-hf-reference: {missing}; install it with\n  python3 -m pip install torch transformers", file=sys.stderr)
    sys.exit(77)

TOLERANCE = 1e-4
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
# Type of the model, its settings, and the largest file.
MODELS = {
    # More tokens than the 257 of bytes, so that it can be trained on text.
    "gpt2-odd": ("gpt2", dict(vocab_size=261, n_positions=11, n_embd=12, n_layer=2, n_head=3, **NO_DROPOUT), "1GB"),
    "gpt2-inner": ("gpt2", dict(vocab_size=29, n_positions=7, n_embd=10, n_layer=1, n_head=2, n_inner=23,
                                layer_norm_epsilon=1e-3, activation_function="gelu_pytorch_tanh"), "1GB"),
    "gpt2-sharded": ("gpt2", dict(vocab_size=37, n_positions=9, n_embd=8, n_layer=3, n_head=4), "4KB"),
    # Of the pairs of a head, the first is between the two factors, and the others are divided.
    "llama-scaled": ("llama", dict(vocab_size=263, max_position_embeddings=13, hidden_size=20, intermediate_size=18,
                                   num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                                   rms_norm_eps=1e-3,
                                   rope_parameters=dict(rope_type="llama3", rope_theta=20000.0, factor=8.0,
                                                        low_freq_factor=0.1, high_freq_factor=1.0,
                                                        original_max_position_embeddings=4)), "1GB"),
    "llama-tied": ("llama", dict(vocab_size=31, max_position_embeddings=9, hidden_size=12, intermediate_size=10,
                                 num_hidden_layers=1, num_attention_heads=3, tie_word_embeddings=True), "2KB"),
    "mistral-grouped": ("mistral", dict(vocab_size=31, max_position_embeddings=10, hidden_size=24,
                                        intermediate_size=14, num_hidden_layers=2, num_attention_heads=6,
                                        num_key_value_heads=2, sliding_window=None), "1GB"),
    "qwen2-biased": ("qwen2", dict(vocab_size=37, max_position_embeddings=11, hidden_size=16, intermediate_size=22,
                                   num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
                                   rope_parameters=dict(rope_type="default", rope_theta=1e6)), "1GB"),
    "qwen3-normed": ("qwen3", dict(vocab_size=33, max_position_embeddings=9, hidden_size=18, intermediate_size=14,
                                   num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=3, head_dim=4,
                                   tie_word_embeddings=True), "1GB"),
}


def make_model(seed, model_type, settings):
    torch.manual_seed(seed)
    config = AutoConfig.for_model(model_type, bos_token_id=0, eos_token_id=0, **settings)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm_weight = (".ln_" in name or "norm." in name) and name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape) * 0.3 + is_norm_weight)
    return model


def logits_of(model, tokens):
    with torch.no_grad():
        return model(torch.tensor(tokens)).logits


def load(folder):
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    problems = {key: value for key, value in info.items() if value}
    if problems:
        sys.exit(f"{folder}: {problems}")
    return model.eval()


def make():
    results = {"made_by": f"scripts/make-hf-reference.py, transformers {transformers.__version__}, "
                          f"PyTorch {torch.__version__.split('+')[0]}", "models": {}}
    for seed, (name, (model_type, settings, shard_size)) in enumerate(MODELS.items()):
        model = make_model(seed + 1, model_type, settings)
        folder = ARGUMENTS.output / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, max_shard_size=shard_size)
        length, vocab = min(model.config.max_position_embeddings, 8), settings["vocab_size"]
        tokens = [[(7 * sample + 5 * position * position + position) % vocab for position in range(length)]
                  for sample in range(1 if vocab > 100 else 2)]
        logits = [float(f"{value:.7g}") for value in logits_of(model, tokens).flatten().tolist()]
        results["models"][name] = {"tokens": tokens, "logits": logits}
    (ARGUMENTS.output / "logits.json").write_text(json.dumps(results, separators=(",", ":")) + "\n")
    # A file that is only carried along.
    (ARGUMENTS.output / "gpt2-odd" / "special_tokens_map.json").write_text('{"eos_token": "<|end|>"}\n')


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


def check(folder, name):
    model, reference = load(folder), load(ARGUMENTS.output / name)
    weights = model.state_dict()
    for key, value in reference.state_dict().items():
        if weights[key].dtype != model.dtype or not torch.equal(bits(value.to(model.dtype)), bits(weights[key])):
            sys.exit(f"{folder}: {key} differs from {name}")
    if model.dtype != torch.float32:
        print(f"{len(weights)} tensors of {model.dtype}")
        return
    expected = json.loads((ARGUMENTS.output / "logits.json").read_text())["models"][name]
    found = logits_of(model, expected["tokens"]).flatten()
    difference = (found - torch.tensor(expected["logits"])).abs().max().item()
    print(f"{len(weights)} tensors, {found.numel()} logits; largest difference {difference:.2g}")
    if not difference <= TOLERANCE:
        sys.exit(f"{folder}: logits differ by {difference}")


def print_losses(folder, *files):
    model = load(folder).to(torch.float32)
    for file in files:
        samples = torch.tensor(json.loads(pathlib.Path(file).read_text()))
        logits = logits_of(model, samples[:, :-1].tolist())
        print(torch.nn.functional.cross_entropy(logits.flatten(0, 1).double(), samples[:, 1:].flatten()).item())


def print_tokens(folder, text):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text).input_ids
    if tokenizer.decode(ids) != text:
        sys.exit(f"{folder}: the tokens of {text!r} decode to {tokenizer.decode(ids)!r}")
    print(json.dumps({"tokens": ids, "end": tokenizer.eos_token_id}))


if ARGUMENTS.check:
    check(*ARGUMENTS.check)
elif ARGUMENTS.loss:
    print_losses(*ARGUMENTS.loss)
elif ARGUMENTS.tokens:
    print_tokens(*ARGUMENTS.tokens)
else:
    make()
