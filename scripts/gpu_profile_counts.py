# SPDX-License-Identifier: Apache-2.0
"""Counts of each kernel, product and copy of one training step, from two runs on the GPU stand-in (docs/gpu.md).

The second of two steps is counted: the counts of a run of two steps less those of a run of one. What happens once, at
the begin and at the end of a run, is in both.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile

COMPILER = re.compile(rb"Cuda compilation tools, (release [0-9.]+, V[0-9.]+)")
# Sums over launches; "kinds" is added by kind. The other fields say how a kernel is launched.
SUMS = ("launches", "blocks", "instructions", "lanes", "mma", "shuffles", "barriers", "requests", "sectors",
        "ideal_sectors", "memory_sectors", "accesses", "wavefronts", "ideal_wavefronts", "divergent")
SHAPE = ("threads", "registers", "shared_bytes")
# Elements of a launch, by the kernel's name: tokens of a microbatch, and widths of the model. 0: not known.
ELEMENTS = ((re.compile(r"norm_"), lambda model: 0 if model["qk_norm"] else model["tokens"] * model["hidden"]),
            (re.compile(r"bias_dropout_add|(copy|add)_token_rows"), lambda model: model["tokens"] * model["hidden"]),
            (re.compile(r"attention_backward_delta"), lambda model: model["tokens"] * model["attention"]),
            (re.compile(r"cross_entropy_"), lambda model: model["tokens"] * model["vocab"]),
            (re.compile(r"step_adamw"), lambda model: model["parameters"]))


class ProfileError(Exception):
    """What is wrong, where, and the next step."""


@dataclasses.dataclass
class Run:
    root: pathlib.Path       # folder with bin/triax and lib
    stand_in: pathlib.Path   # scripts/gpu-stand-in
    toml: pathlib.Path
    overrides: list          # KEY=VALUE of --set
    libraries: object = None # folder of the stand-in's libraries; None: those of root
    zero_products: bool = False

    def triax(self):
        return self.root / "bin/triax"

    def sets(self, more=()):
        return [word for one in [*self.overrides, *more] for word in ("--set", one)]


def checked(run):
    """The report of `triax check` on a run of one rank that a kernel set for GPUs trains."""
    done = subprocess.run([run.triax(), "check", run.toml, "--json", "--no-device", *run.sets()], capture_output=True,
                          text=True)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise ProfileError(f"{run.triax()} check failed: {done.stderr.strip() or 'it printed nothing'}; run it alone: "
                           f"{run.triax()} check {run.toml}") from None
    if not report["accepted"]:
        raise ProfileError("\n".join(f"{one['file'] or run.toml}: {one['message']}; {one['hint'] or ''}".rstrip("; ")
                                     for one in report["errors"]))
    if len(report["ranks"]) != 1:
        raise ProfileError(f"{run.toml}: the run has {len(report['ranks'])} ranks, and counts are those of one rank; "
                           "add --set parallel.pipeline=1 --set parallel.tensor=1, and set batch.global so that "
                           "parallel.data is 1")
    if report["placement"]["device"] != "cuda":
        kernels = report["values"]["kernels.plugin"]
        raise ProfileError(f"{kernels['origin']}: kernels.plugin = \"{kernels['value']}\" has no kernels for GPUs; "
                           "add --set kernels.plugin=kernels-fused")
    return report


def libraries_of(run, report):
    """Files that can contain the kernels of the run: its kernel set, and the library that all sets share."""
    kernels = report["values"]["kernels.plugin"]["value"]
    files = [run.root / f"lib/triax/plugins/{kernels}.so", run.root / "lib/libtriax_cuda.so"]
    return [file for file in files if file.is_file()]


def compiler_of(library):
    """nvcc's version, from the PTX in the library."""
    found = COMPILER.search(library.read_bytes())
    return found[1].decode() if found else "unknown"


def changes_of(report, steps, folder):
    """What a counted run has in place of the keys of RUN.toml: it writes only to `folder`, and neither evaluates nor
    saves. Keys that need an evaluation or a checkpoint are switched off, too."""
    out = [f"train.stop_at={steps}", f"run.dir={folder}", f"log.metrics={folder / 'metrics.jsonl'}", "log.every=1",
           "eval.every=0", 'eval.sample=""', "checkpoint.every=0"]
    if report["values"]["train.nonfinite"]["value"] == "rewind":
        out.append("train.nonfinite=skip")
    return out


def profile(run, report, steps, folder):
    """What the stand-in counts in a run of this many steps, by kernel and launch shape, or by call."""
    file = folder / f"{steps}.json"
    libraries = ["--libraries", run.libraries] if run.libraries else []
    command = [run.stand_in, *libraries, run.triax(), "train", run.toml, "--fresh",
               *run.sets(changes_of(report, steps, folder / str(steps)))]
    done = subprocess.run(command, capture_output=True, text=True,
                          env=os.environ | {"TRIAX_GPU_PROFILE": str(file),
                                            "TRIAX_GPU_PRODUCTS": "zero" if run.zero_products else "computed"})
    if done.returncode != 0:
        raise ProfileError(f"{run.toml}: the run of {steps} steps on the GPU stand-in failed:\n{done.stderr.strip()}")
    counts = {}
    for line in file.read_text().splitlines() if file.is_file() else ():
        one = json.loads(line)
        counts[one.get("call") or (one["kernel"], *(one[key] for key in SHAPE))] = one
    return counts


def less(counts, before):
    """The counts less those of the same kernel in a shorter run, or None if nothing is left."""
    out = dict(counts)
    for key in (*SUMS, "flops", "bytes"):
        if key in counts:
            out[key] = counts[key] - before.get(key, 0)
    if "kinds" in counts:
        earlier = before.get("kinds", {})
        out["kinds"] = {kind: n - earlier.get(kind, 0) for kind, n in counts["kinds"].items()}
    return out if out["launches"] > 0 else None


def short_names(mangled):
    """Readable names without namespaces, return types and parameters: the same for each compilation."""
    try:
        done = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise ProfileError("c++filt is not found; install binutils (scripts/install-deps)") from None
    names = {}
    for name, text in zip(mangled, done.stdout.splitlines()):
        text = text.replace("(anonymous namespace)::", "").replace("triax::", "").removeprefix("void ")
        text = re.sub(r"(kernels_fused|cuda|kernels_cublas)::", "", text)
        depth = end = 0
        for end, letter in enumerate(text):
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == "(" and depth == 0:
                break
        else:
            end = len(text)
        names[name] = re.sub(r">\s+(?=>)", ">", text[:end]).strip()
    return names


def model_of(report):
    """Sizes of the model. `qk_norm`: norms have widths of heads, too; `attention`: the width of all query heads."""
    values = {key: one["value"] for key, one in report["values"].items()}
    head_size = values.get("model.head_size") or values["model.hidden"] // values["model.heads"]
    return {"tokens": values["batch.micro"] * values["model.sequence"], "hidden": values["model.hidden"],
            "vocab": values["model.vocab"], "parameters": report["parameters"],
            "qk_norm": values.get("model.qk_norm", False), "attention": values["model.heads"] * head_size}


def elements_of(name, launches, model):
    """Elements of all launches of a kernel; 0 if they are not known."""
    elements = next((of(model) for kernel, of in ELEMENTS if kernel.match(name)), 0)
    return elements if name.startswith("step_adamw") else elements * launches


def step_of(run, report):
    """Kernels and calls of one step. A kernel has its short name, and its elements if they are known."""
    run = dataclasses.replace(run, overrides=[*run.overrides,
                                              f"train.steps={max(2, report['values']['train.steps']['value'])}"])
    with tempfile.TemporaryDirectory() as folder:
        first, second = (profile(run, report, steps, pathlib.Path(folder)) for steps in (1, 2))
    rows = [less(one, first.get(key, {})) for key, one in second.items()]
    kernels = [row for row in rows if row and "kernel" in row]
    calls = [row for row in rows if row and "call" in row]
    if not kernels:
        raise ProfileError(f"{run.toml}: the stand-in ran no kernel; build the target gpu_stand_in of {run.root}")
    names = short_names(sorted({row["kernel"] for row in kernels}))
    model = model_of(report)
    for row in kernels:
        row["name"] = names[row["kernel"]]
        row["elements"] = elements_of(row["name"], row["launches"], model)
    return sorted(kernels, key=lambda row: (-row["instructions"], row["name"], row["threads"])), calls
