# SPDX-License-Identifier: Apache-2.0
"""Trains one GPT with Triax and with plain PyTorch, for scripts that compare the two.

Processes: each training is a separate process. Errors: SystemExit with the program's own message.
The PyTorch code is typical user code: scaled_dot_product_attention, the fused AdamW, torch.compile if requested, and
autocast with fp32 weights for bf16 and fp16. Run as a program, this file is the PyTorch training; it takes a Run as
JSON.
"""

import dataclasses
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time


@dataclasses.dataclass
class Run:
    layers: int = 4
    hidden: int = 768
    heads: int = 12
    sequence: int = 512
    vocab: int = 8192
    micro: int = 4          # samples per microbatch
    microbatches: int = 1   # microbatches per step
    dropout: float = 0.0
    precision: str = "fp32"
    kernels: str = "kernels-cpu"
    device: str = "cpu"     # of the PyTorch runs
    compile: bool = False   # torch.compile in the PyTorch runs
    threads: int = 1        # CPU threads
    steps: int = 3          # measured steps, after `warmup`
    warmup: int = 1

    def tokens(self):
        return self.micro * self.microbatches * self.sequence

    def flops(self):
        """FLOPs per step: equation 3 of Narayanan et al., SC'21, without the recomputed forward."""
        s, l, h, v = self.sequence, self.layers, self.hidden, self.vocab
        return 72 * self.micro * self.microbatches * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h))


RUN_TOML = """
[run]
dir = "run"
[model]
plugin = "model-gpt"
layers = {layers}
hidden = {hidden}
heads = {heads}
sequence = {sequence}
vocab = {vocab}
dropout = {dropout}
[batch]
global = {batch}
micro = {micro}
[schedule]
plugin = "sched-1f1b"
[comm]
plugin = "comm-local"
[kernels]
plugin = "{kernels}"
{kernel_keys}
[optimizer]
plugin = "optim-adamw"
lr = 1e-4
weight_decay = 0.1
[train]
steps = {all_steps}
seed = 1
clip_grad = 1.0
precision = "{precision}"
[data]
path = "text"
"""


def finished(command, what, **keys):
    done = subprocess.run(command, capture_output=True, text=True, **keys)
    if done.returncode != 0:
        sys.exit(f"{what} failed:\n{done.stderr}")
    return done.stdout


def make_text(triax, work):
    """Writes a corpus of random lines; its content does not affect the time of a step."""
    draw = random.Random(1)
    lines = ("".join(draw.choices("abcdefghijklmnopqrstuvwxyz ,.", k=100)) for _ in range(2000))
    (work / "text.txt").write_text("\n".join(lines))
    finished([triax, "data", "prepare", "--input", work / "text.txt", "--output", work / "text", "--tokenizer", "byte"],
             "triax data prepare")


def train_engine(triax, run, work, before=(), settings=None):
    """Seconds of each measured step. `work` contains the corpus; `settings`: further keys of the run. Keeps no files of
    earlier runs: each has a checkpoint."""
    toml = work / "run.toml"
    keys = f"threads = {run.threads}" if run.kernels == "kernels-cpu" else ""
    toml.write_text(RUN_TOML.format(**dataclasses.asdict(run), batch=run.micro * run.microbatches, kernel_keys=keys,
                                    all_steps=run.steps + run.warmup))
    keys = {"run.dir": work / "run", **(settings or {})}
    flags = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    shutil.rmtree(work / "run", ignore_errors=True)
    finished([*before, triax, "train", toml, *flags], f"triax train with {run.kernels}")
    steps = [json.loads(line) for line in (work / "run/metrics.jsonl").read_text().splitlines()]
    return [step["step_ms"] / 1e3 for step in steps[run.warmup:]]


def train_pytorch(run, before=()):
    """Seconds of each measured step, and PyTorch's version."""
    output = finished([*before, sys.executable, __file__, json.dumps(dataclasses.asdict(run))], "PyTorch's side",
                      env={**os.environ, "OMP_NUM_THREADS": str(run.threads)})
    output = json.loads(output.splitlines()[-1])
    return output["seconds"], output["version"]


def pytorch_side(run):
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(run.threads)
    torch.manual_seed(1)
    drop = run.dropout

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            h = run.hidden
            self.norm1, self.norm2 = nn.LayerNorm(h), nn.LayerNorm(h)
            self.qkv, self.projection = nn.Linear(h, 3 * h), nn.Linear(h, h)
            self.up, self.down = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

        def forward(self, x):
            b, s, h = x.shape
            q, k, v = (part.view(b, s, run.heads, h // run.heads).transpose(1, 2)
                       for part in self.qkv(self.norm1(x)).split(h, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=drop)
            x = x + F.dropout(self.projection(mixed.transpose(1, 2).reshape(b, s, h)), drop)
            return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), drop)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(run.vocab, run.hidden)
            self.positions = nn.Parameter(torch.zeros(run.sequence, run.hidden))
            self.blocks = nn.ModuleList(Block() for _ in range(run.layers))
            self.norm = nn.LayerNorm(run.hidden)
            nn.init.normal_(self.tokens.weight, std=0.02)

        def forward(self, tokens, targets):
            x = F.dropout(self.tokens(tokens) + self.positions, drop)
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(logits.view(-1, run.vocab), targets.view(-1))

    model = Gpt().to(run.device)
    forward = torch.compile(model) if run.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(run.precision)
    scaler = torch.amp.GradScaler(run.device, enabled=run.precision == "fp16")
    if run.device != "cpu":
        torch.backends.cuda.matmul.allow_tf32 = False
    taken = []
    for _ in range(run.warmup + run.steps):
        data = torch.randint(0, run.vocab, (run.microbatches, run.micro, run.sequence + 1), device=run.device)
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.zeros((), device=run.device)
        for microbatch in data:
            with torch.autocast(run.device, narrow, enabled=narrow is not None):
                part = forward(microbatch[:, :-1].contiguous(), microbatch[:, 1:].contiguous()) / run.microbatches
            scaler.scale(part).backward()
            loss += part.detach()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        loss.item()  # waits for the device
        taken.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": taken[run.warmup:], "version": torch.__version__}))


if __name__ == "__main__":
    pytorch_side(Run(**json.loads(sys.argv[1])))
