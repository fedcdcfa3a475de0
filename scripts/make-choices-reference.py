#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the reference of `triax evaluate --choices` with Hugging Face's transformers.

  make-choices-reference.py                       writes tests/hf/reference/choices.json: for models of that folder, the
                                                  log-likelihoods of the endings of choices.jsonl and last_words.jsonl,
                                                  whose tokens are bytes, and of byte_pairs.jsonl, with the tokenizer
                                                  byte_pairs.json; and whether each token is the most probable
  make-choices-reference.py --compare MODEL FILE  compares the object of `triax evaluate MODEL --choices FILE --json` on
                                                  standard input with that; needs neither transformers nor PyTorch

acc and perplexity are those of lm-evaluation-harness (lm_eval/api/model.py and task.py, and its tasks hellaswag and
lambada_openai): white space at the end of a context belongs to the ending; acc is the share of right choices, or of
endings that greedy decoding writes; perplexity is exp of the mean of the negative log-likelihoods of whole endings.
Two things differ: only ASCII white space moves, and the normalised choice divides by the bytes of the ending, where
acc_norm divides by its characters without the space before it.

Exit status 77: transformers or PyTorch is not installed.
"""

import argparse
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "hf" / "reference"
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--compare", nargs=2, metavar=("MODEL", "FILE"))
ARGUMENTS = parser.parse_args()
MODELS = ("gpt2-odd", "llama-scaled")
FILES = ("choices.jsonl", "last_words.jsonl", "byte_pairs.jsonl")
TOLERANCE = 1e-4  # of a log-likelihood; both compute in float32, in another order


def examples_of(file):
    return [json.loads(line) for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]


def best(values):
    return max(range(len(values)), key=lambda i: values[i])


def compare_choices(examples, result, expected):
    right = normalised = 0
    for example, one, other in zip(examples, result["choices"], expected):
        values = [ending["log_likelihood"] for ending in other]
        lengths = [len(ending.encode()) for ending in example["endings"]]
        by_length = [value / length for value, length in zip(values, lengths)]
        assert one["choice"] == best(values), f"line {one['line']}: another choice"
        assert one["normalised_choice"] == best(by_length), f"line {one['line']}: another normalised choice"
        right += best(values) == example["label"]
        normalised += best(by_length) == example["label"]
    assert result["accuracy"] == right / len(examples), result["accuracy"]
    assert result["normalised_accuracy"] == normalised / len(examples), result["normalised_accuracy"]


def compare_endings(examples, result, expected):
    right = sum(other[0]["greedy"] for other in expected)
    mean = sum(other[0]["log_likelihood"] for other in expected) / len(examples)
    assert 0 < right < len(examples), "the examples do not test the accuracy"
    assert result["accuracy"] == right / len(examples), result["accuracy"]
    assert abs(math.log(result["perplexity"]) + mean) < TOLERANCE, result["perplexity"]


def compare(model, file):
    examples = examples_of(file)
    expected = json.loads((ROOT / "choices.json").read_text(encoding="utf-8"))["models"][model][file]
    result = json.load(sys.stdin)
    assert len(result["choices"]) == len(expected) == len(examples), "not all examples"
    for one, other in zip(result["choices"], expected):
        for mine, theirs in zip(one["log_likelihoods"], (ending["log_likelihood"] for ending in other)):
            assert abs(mine - theirs) < TOLERANCE, f"line {one['line']}: {mine}, and transformers has {theirs}"
        assert one["greedy"] == [ending["greedy"] for ending in other], f"line {one['line']}: other greedy tokens"
    (compare_endings if len(examples[0]["endings"]) == 1 else compare_choices)(examples, result, expected)
    print(f"{model}: the {'endings' if len(examples[0]['endings']) == 1 else 'choices'} of transformers")


if ARGUMENTS.compare:
    compare(*ARGUMENTS.compare)
    sys.exit(0)

try:
    import tokenizers
    import torch
    import transformers
    from transformers import AutoModelForCausalLM
except ImportError as missing:
    print(f"make-choices-reference: {missing}; install it with\n  python3 -m pip install torch transformers",
          file=sys.stderr)
    sys.exit(77)


def encoder_of(file):
    """A text's token ids."""
    if file != "byte_pairs.jsonl":
        return lambda text: list(text.encode())
    tokenizer = tokenizers.Tokenizer.from_file(str(ROOT / "byte_pairs.json"))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def scored(model, encode, context, ending):
    stripped = context.rstrip(" \t\n\v\f\r")
    before = [] if stripped else [model.generation_config.eos_token_id]
    tokens = before + encode(context + ending)
    first = len(before + encode(stripped))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens[:-1]])).logits[0].double()
    probabilities = logits.log_softmax(-1)
    targets = torch.tensor(tokens[first:])
    rows = probabilities[first - 1:]
    return {"log_likelihood": float(f"{rows.gather(1, targets[:, None]).sum().item():.7g}"),
            "greedy": bool((rows.argmax(-1) == targets).all())}


torch.set_num_threads(1)
models = {}
for name in MODELS:
    model = AutoModelForCausalLM.from_pretrained(ROOT / name, dtype=torch.float32).eval()
    models[name] = {}
    for file in FILES:
        encode = encoder_of(file)
        models[name][file] = [[scored(model, encode, example["context"], ending) for ending in example["endings"]]
                              for example in examples_of(file)]
made_by = f"scripts/make-choices-reference.py, transformers {transformers.__version__}, PyTorch {torch.__version__}"
(ROOT / "choices.json").write_text(json.dumps({"made_by": made_by, "models": models}) + "\n", encoding="utf-8")
