#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the reference of `triax evaluate --choices` with Hugging Face's transformers.

  make-choices-reference.py                  writes tests/hf/reference/choices.json: for models of that folder, the
                                             log-likelihoods of the endings of choices.jsonl, whose tokens are bytes,
                                             and whether each token is the most probable one
  make-choices-reference.py --compare MODEL  compares the object of `triax evaluate MODEL --choices ... --json` on
                                             standard input with that file; needs neither transformers nor PyTorch

Exit status 77: transformers or PyTorch is not installed.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "hf" / "reference"
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--compare", metavar="MODEL")
ARGUMENTS = parser.parse_args()
MODELS = ("gpt2-odd", "llama-scaled")
TOLERANCE = 1e-4  # of a log-likelihood; both compute in float32, in another order
EXAMPLES = [json.loads(line) for line in (ROOT / "choices.jsonl").read_text(encoding="utf-8").splitlines()]


def best(values):
    return max(range(len(values)), key=lambda i: values[i])


def compare(model):
    expected = json.loads((ROOT / "choices.json").read_text(encoding="utf-8"))["models"][model]
    result = json.load(sys.stdin)
    found = result["choices"]
    assert len(found) == len(expected) == len(EXAMPLES), "not all examples"
    right = normalised = 0
    for example, one, other in zip(EXAMPLES, found, expected):
        values = [ending["log_likelihood"] for ending in other]
        lengths = [len(ending.encode()) for ending in example["endings"]]
        by_length = [value / length for value, length in zip(values, lengths)]
        for mine, theirs in zip(one["log_likelihoods"], values):
            assert abs(mine - theirs) < TOLERANCE, f"line {one['line']}: {mine}, and transformers has {theirs}"
        assert one["greedy"] == [ending["greedy"] for ending in other], f"line {one['line']}: other greedy tokens"
        assert one["choice"] == best(values), f"line {one['line']}: another choice"
        assert one["normalised_choice"] == best(by_length), f"line {one['line']}: another normalised choice"
        right += best(values) == example["label"]
        normalised += best(by_length) == example["label"]
    assert result["accuracy"] == right / len(EXAMPLES), result["accuracy"]
    assert result["normalised_accuracy"] == normalised / len(EXAMPLES), result["normalised_accuracy"]
    print(f"{model}: the choices of transformers")


if ARGUMENTS.compare:
    compare(ARGUMENTS.compare)
    sys.exit(0)

try:
    import torch
    import transformers
    from transformers import AutoModelForCausalLM
except ImportError as missing:
    print(f"make-choices-reference: {missing}; install it with\n  python3 -m pip install torch transformers",
          file=sys.stderr)
    sys.exit(77)


def scored(model, context, ending):
    tokens = list((context + ending).encode())
    first = len(context.encode())
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens[:-1]])).logits[0].double()
    probabilities = logits.log_softmax(-1)
    targets = torch.tensor(tokens[first:])
    rows = probabilities[first - 1:]
    return {"log_likelihood": float(f"{rows.gather(1, targets[:, None]).sum().item():.7g}"),
            "greedy": bool((rows.argmax(-1) == targets).all())}


models = {}
for name in MODELS:
    model = AutoModelForCausalLM.from_pretrained(ROOT / name, dtype=torch.float32).eval()
    models[name] = [[scored(model, example["context"], ending) for ending in example["endings"]]
                    for example in EXAMPLES]
made_by = f"scripts/make-choices-reference.py, transformers {transformers.__version__}, PyTorch {torch.__version__}"
(ROOT / "choices.json").write_text(json.dumps({"made_by": made_by, "models": models}) + "\n", encoding="utf-8")
