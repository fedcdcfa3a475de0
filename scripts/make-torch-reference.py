#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT-2 and a small Llama in plain PyTorch and writes what the engine is compared with:
tests/parity/torch_reference.json.

The models are written here on their own, from the descriptions of GPT-2 and Llama, so that a mistake of the engine is
not repeated.
Weights and tokens come from an integer formula that the test has too (tests/parity/formula.hpp); every value is exact
in float32, so the file holds results only. The results in float32 depend a little on the machine; the test's
tolerances allow for that, and the losses in float64 beside them show how much is rounding.
"""

import argparse
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests" / "parity" / "torch_reference.json")
ARGUMENTS = parser.parse_args()  # before PyTorch is imported: --help does not need it

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("make-torch-reference: PyTorch is not installed for this python3; install it with\n"
             "  python3 -m pip install torch")

LAYERS, HIDDEN, HEADS, SEQUENCE, VOCAB = 3, 48, 4, 24, 67
GLOBAL, MICRO, STEPS = 8, 2, 10
# Query heads are wider than the residual stream. Of the pairs of a head, the first keeps its frequency, the second is
# mixed, and the others are divided.
LLAMA = {"layers": LAYERS, "hidden": HIDDEN, "heads": 6, "kv_heads": 2, "head_size": 10, "inner": 56,
         "sequence": SEQUENCE, "rope_theta": 400.0, "rope_scaling": "llama3", "rope_factor": 4.0,
         "rope_low_freq_factor": 0.5, "rope_high_freq_factor": 2.0, "rope_original_sequence": 14, "qkv_bias": True,
         "qk_norm": True}
ADAMW = {"plugin": "optim-adamw", "lr": 2e-3, "weight_decay": 0.1, "clip_grad": 0.5,
         "options": {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8}}
SGD = {"plugin": "optim-sgd", "lr": 0.03, "weight_decay": 0.01, "clip_grad": 0.0, "options": {"momentum": 0.9}}


def mix(index, stream):
    """32 bits from an element's index and the number of what it belongs to."""
    u = (index * 0x9E3779B1 + (stream + 1) * 0x85EBCA77) & 0xFFFFFFFF
    u ^= u >> 15
    u = u * 0x2C1B3C6D & 0xFFFFFFFF
    u ^= u >> 12
    u = u * 0x297A2D39 & 0xFFFFFFFF
    return u ^ u >> 15


def value(index, stream, centre):
    """centre + a number in [-1/16, 1/16) of 16 bits."""
    return centre + ((mix(index, stream) >> 16) - 32768) / 524288


def token(position):
    """Arithmetic sequences with a jump every 12 tokens: something to learn within ten steps."""
    run, place = divmod(position, 12)
    return (mix(run, 1000) % VOCAB + place * (1 + mix(run, 1001) % 3)) % VOCAB


def gpt_layers():
    """Name of each layer, and its (name, shape, centre, decays)"""
    norm = lambda prefix: [(prefix + ".weight", (HIDDEN,), 1, False), (prefix + ".bias", (HIDDEN,), 0, False)]
    linear = lambda prefix, rows, columns: [(prefix + ".weight", (rows, columns), 0, True),
                                            (prefix + ".bias", (rows,), 0, False)]
    layers = [("embedding", [("tokens.weight", (VOCAB, HIDDEN), 0, True),
                             ("positions.weight", (SEQUENCE, HIDDEN), 0, True)])]
    for block in range(LAYERS):
        layers.append((f"block {block}",
                       norm("attention.norm") + linear("attention.qkv", 3 * HIDDEN, HIDDEN) +
                       linear("attention.projection", HIDDEN, HIDDEN) + norm("mlp.norm") +
                       linear("mlp.up", 4 * HIDDEN, HIDDEN) + linear("mlp.down", HIDDEN, 4 * HIDDEN)))
    layers.append(("head", norm("norm")))
    return layers


def llama_layers():
    keys, width = LLAMA["kv_heads"] * LLAMA["head_size"], LLAMA["heads"] * LLAMA["head_size"]
    norm = lambda name, columns=HIDDEN: [(name + ".weight", (columns,), 1, False)]
    matrix = lambda name, *shape: [(name + ".weight", shape, 0, True)]
    layers = [("embedding", matrix("tokens", VOCAB, HIDDEN))]
    for block in range(LAYERS):
        layers.append((f"block {block}",
                       norm("attention.norm") + matrix("attention.qkv", width + 2 * keys, HIDDEN) +
                       [("attention.qkv.bias", (width + 2 * keys,), 0, False)] +
                       norm("attention.q_norm", LLAMA["head_size"]) + norm("attention.k_norm", LLAMA["head_size"]) +
                       matrix("attention.projection", HIDDEN, width) + norm("mlp.norm") +
                       matrix("mlp.up", 2, LLAMA["inner"], HIDDEN) + matrix("mlp.down", HIDDEN, LLAMA["inner"])))
    layers.append(("head", norm("norm") + matrix("tokens", VOCAB, HIDDEN)))
    return layers


def parameter_table(layers):
    """(name, stream = layer * 16 + place in the layer, shape, centre, decays)"""
    for number, (layer, entries) in enumerate(layers):
        for place, (name, shape, centre, decays) in enumerate(entries):
            yield f"{layer}/{name}", number * 16 + place, shape, centre, decays


def make_parameters(layers, dtype):
    parameters, decaying = {}, set()
    for name, stream, shape, centre, decays in parameter_table(layers):
        values = [value(index, stream, centre) for index in range(math.prod(shape))]
        parameters[name] = torch.tensor(values, dtype=dtype).reshape(shape).requires_grad_()
        if decays:
            decaying.add(name)
    return parameters, decaying


def gpt_forward(parameters, tokens):
    """Logits [batch, sequence, vocab]."""
    get = parameters.__getitem__
    norm = lambda x, prefix: F.layer_norm(x, (HIDDEN,), get(prefix + ".weight"), get(prefix + ".bias"), eps=1e-5)
    linear = lambda x, prefix: F.linear(x, get(prefix + ".weight"), get(prefix + ".bias"))
    batch, length = tokens.shape
    x = F.embedding(tokens, get("embedding/tokens.weight")) + get("embedding/positions.weight")[:length]
    hidden_from_future = torch.full((length, length), float("-inf"), dtype=x.dtype).triu(1)
    for block in range(LAYERS):
        at = lambda name: f"block {block}/{name}"
        qkv = linear(norm(x, at("attention.norm")), at("attention.qkv"))
        q, k, v = qkv.reshape(batch, length, HEADS, 3, HIDDEN // HEADS).permute(3, 0, 2, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS) + hidden_from_future
        mixed = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(batch, length, HIDDEN)
        x = x + linear(mixed, at("attention.projection"))
        inner = F.gelu(linear(norm(x, at("mlp.norm")), at("mlp.up")), approximate="tanh")
        x = x + linear(inner, at("mlp.down"))
    return norm(x, "head/norm") @ get("embedding/tokens.weight").T


def llama_frequencies():
    """Of the pairs of a head, in float64 (Dubey et al. 2024, and the code that came with Llama 3.1)."""
    out = []
    for pair in range(LLAMA["head_size"] // 2):
        frequency = LLAMA["rope_theta"] ** (-2 * pair / LLAMA["head_size"])
        turns = LLAMA["rope_original_sequence"] * frequency / (2 * math.pi)
        low, high = LLAMA["rope_low_freq_factor"], LLAMA["rope_high_freq_factor"]
        if turns < low:
            frequency /= LLAMA["rope_factor"]
        elif turns <= high:
            smooth = (turns - low) / (high - low)
            frequency = (1 - smooth) * frequency / LLAMA["rope_factor"] + smooth * frequency
        out.append(frequency)
    return torch.tensor(out, dtype=torch.float64)


def llama_forward(parameters, tokens):
    """Logits [batch, sequence, vocab]."""
    get = parameters.__getitem__
    heads, kv_heads, size = LLAMA["heads"], LLAMA["kv_heads"], LLAMA["head_size"]
    group = heads // kv_heads
    norm = lambda x, name: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * get(name + ".weight")
    batch, length = tokens.shape
    x = F.embedding(tokens, get("embedding/tokens.weight"))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * llama_frequencies()
    cosine, sine = (f(angles).to(x.dtype)[:, None, :] for f in (torch.cos, torch.sin))

    def rotate(y):  # [batch, length, heads, size]
        first, second = y.chunk(2, -1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)

    hidden_from_future = torch.full((length, length), float("-inf"), dtype=x.dtype).triu(1)
    for block in range(LAYERS):
        at = lambda name: f"block {block}/{name}"
        qkv = F.linear(norm(x, at("attention.norm")), get(at("attention.qkv.weight")), get(at("attention.qkv.bias")))
        groups = qkv.reshape(batch, length, kv_heads, group + 2, size)
        q = groups[:, :, :, :group].reshape(batch, length, heads, size)
        k, v = groups[:, :, :, group], groups[:, :, :, group + 1]
        q, k = rotate(norm(q, at("attention.q_norm"))), rotate(norm(k, at("attention.k_norm")))
        k, v = (y.repeat_interleave(group, 2) for y in (k, v))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(size) + hidden_from_future
        mixed = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(batch, length, heads * size)
        x = x + mixed @ get(at("attention.projection.weight")).T
        gate, up = (norm(x, at("mlp.norm")) @ weight.T for weight in get(at("mlp.up.weight")))
        x = x + (F.silu(gate) * up) @ get(at("mlp.down.weight")).T
    return norm(x, "head/norm") @ get("head/tokens.weight").T


def run(layers, forward, setting, dtype):
    torch.set_num_threads(1)
    parameters, decaying = make_parameters(layers, dtype)
    groups = [{"params": [p for name, p in parameters.items() if name in decaying],
               "weight_decay": setting["weight_decay"]},
              {"params": [p for name, p in parameters.items() if name not in decaying], "weight_decay": 0.0}]
    options = setting["options"]
    if setting["plugin"] == "optim-adamw":
        optimizer = torch.optim.AdamW(groups, lr=setting["lr"], betas=(options["beta1"], options["beta2"]),
                                      eps=options["eps"], foreach=False)
    else:
        optimizer = torch.optim.SGD(groups, lr=setting["lr"], momentum=options["momentum"], foreach=False)

    stream = torch.tensor([token(position) for position in range(GLOBAL * SEQUENCE + 1)])
    inputs, targets = stream[:-1].reshape(GLOBAL, SEQUENCE), stream[1:].reshape(GLOBAL, SEQUENCE)
    result = {"losses": [], "grad_norms": []}
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for begin in range(0, GLOBAL, MICRO):
            logits = forward(parameters, inputs[begin:begin + MICRO])
            losses = F.cross_entropy(logits.flatten(0, 1), targets[begin:begin + MICRO].flatten(), reduction="none")
            (losses.sum() / targets.numel()).backward()
            total += losses.double().sum().item()
        norms = {name: p.grad.double().norm().item() for name, p in parameters.items()}
        norm = math.sqrt(sum(n * n for n in norms.values()))
        if step == 0:
            result["parameter_grad_norms"] = norms
        result["losses"].append(total / targets.numel())
        result["grad_norms"].append(norm)
        if setting["clip_grad"] > 0:
            coefficient = min(1.0, setting["clip_grad"] / (norm + 1e-6))
            for p in parameters.values():
                p.grad *= coefficient
        optimizer.step()
    return result


def runs(layers, forward):
    return [dict(setting, **{str(dtype).removeprefix("torch."): run(layers, forward, setting, dtype)
                             for dtype in (torch.float32, torch.float64)})
            for setting in (ADAMW, SGD)]


def main():
    output = ARGUMENTS.output
    reference = {
        "made_by": "scripts/make-torch-reference.py, PyTorch " + torch.__version__.split("+")[0],
        "model": {"layers": LAYERS, "hidden": HIDDEN, "heads": HEADS, "sequence": SEQUENCE},
        "vocab": VOCAB, "global": GLOBAL, "micro": MICRO, "steps": STEPS,
        "runs": runs(gpt_layers(), gpt_forward),
        "llama": {"model": LLAMA, "runs": runs(llama_layers(), llama_forward)},
    }
    output.write_text(json.dumps(reference, indent=1) + "\n")
    for entry in reference["runs"] + reference["llama"]["runs"]:
        print(entry["plugin"], "losses", " ".join(f"{loss:.6f}" for loss in entry["float32"]["losses"]))
        print(entry["plugin"], "norms ", " ".join(f"{norm:.6f}" for norm in entry["float32"]["grad_norms"]))
        print(entry["plugin"], "float32 - float64",
              " ".join(f"{a - b:.1e}" for a, b in zip(entry["float32"]["losses"], entry["float64"]["losses"])))
    print("wrote", output)


if __name__ == "__main__":
    main()
