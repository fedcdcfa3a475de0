#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes references for generated text with Hugging Face's transformers.

  make-generate-reference.py    writes tests/executor/reference/sampling.json: what is left of random logits after the
                                logits processors, and with which probabilities; and tests/hf/reference/greedy.json: the
                                tokens that the models of that folder choose

Exit status 77: transformers or PyTorch is not installed.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()

try:
    import torch
    import transformers
    from transformers import AutoModelForCausalLM
    from transformers.generation import logits_process as steps
except ImportError as missing:
    print(f"make-generate-reference: {missing}; install it with\n  python3 -m pip install torch transformers",
          file=sys.stderr)
    sys.exit(77)

VOCAB = 50
SETTINGS = [
    {"temperature": 1.0},
    {"temperature": 0.7},
    {"temperature": 1.3, "top_k": 5},
    {"temperature": 1.0, "top_k": 1},
    {"temperature": 1.0, "top_k": 500},
    {"temperature": 1.0, "top_p": 0.9},
    {"temperature": 2.0, "top_p": 0.5},
    {"temperature": 1.0, "top_p": 0.01},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 0.8, "min_p": 1.0},
    {"temperature": 1.0, "repetition_penalty": 1.5},
    {"temperature": 1.0, "repetition_penalty": 0.6},
    {"temperature": 0.9, "top_k": 12, "top_p": 0.8, "min_p": 0.15, "repetition_penalty": 1.2},
]


def processors(settings):
    """In the order of GenerationMixin._get_logits_processor()."""
    made = []
    if "repetition_penalty" in settings:
        made.append(steps.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"]))
    made.append(steps.TemperatureLogitsWarper(settings["temperature"]))
    if "top_k" in settings:
        made.append(steps.TopKLogitsWarper(settings["top_k"]))
    if "top_p" in settings:
        made.append(steps.TopPLogitsWarper(settings["top_p"]))
    if "min_p" in settings:
        made.append(steps.MinPLogitsWarper(settings["min_p"]))
    return made


def sampling():
    torch.manual_seed(7)
    cases = []
    for number, settings in enumerate(SETTINGS):
        logits = (torch.randn(VOCAB) * 2).round(decimals=3)
        sequence = torch.randint(VOCAB, (9,))
        scores = logits[None].clone()
        for process in processors(settings):
            scores = process(sequence[None], scores)
        probabilities = torch.softmax(scores.double()[0], 0)
        kept = {str(token): probabilities[token].item() for token in range(VOCAB) if scores[0, token] > -torch.inf}
        cases.append({"settings": settings, "logits": [round(x, 3) for x in logits.tolist()],
                      "sequence": sequence.tolist(), "probabilities": kept})
    return {"transformers": transformers.__version__, "vocab": VOCAB, "cases": cases}


def greedy():
    out = {}
    for config in sorted((ROOT / "tests" / "hf" / "reference").glob("*/config.json")):
        folder = config.parent
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        prompt = [3, 1, 4]
        # All positions of the model; no token ends a text.
        tokens = model.generate(torch.tensor([prompt]), max_length=model.config.max_position_embeddings,
                                do_sample=False, eos_token_id=None, pad_token_id=0)[0].tolist()
        out[folder.name] = {"prompt": prompt, "tokens": tokens[len(prompt):]}
    return {"transformers": transformers.__version__, "models": out}


def write(file, content):
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content) + "\n")


write(ROOT / "tests" / "executor" / "reference" / "sampling.json", sampling())
write(ROOT / "tests" / "hf" / "reference" / "greedy.json", greedy())
