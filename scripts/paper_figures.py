# SPDX-License-Identifier: Apache-2.0
"""Figures of Narayanan et al. (SC'21, arXiv 2104.04473) as configurations that `triax plan --predict` accepts.

The configurations are those of examples/sc21 in NVIDIA/Megatron-LM. A series has a pattern for its name in files of
published points, and one configuration for each value of x.
"""
import dataclasses
import re

CALIBRATION, HELD_OUT = "calibration", "held-out"
DEFINITION, DERIVED = "definition", "from Figure 7"


@dataclasses.dataclass
class Series:
    name: str
    pattern: str  # of its name among published points, without case
    configs: dict = dataclasses.field(default_factory=dict)  # by x, as a text; columns of a list
    values: dict = dataclasses.field(default_factory=dict)  # predictions by x
    published: dict = dataclasses.field(default_factory=dict)  # by x

    def has_name(self, name):
        return re.search(self.pattern, name, re.IGNORECASE) is not None


@dataclasses.dataclass
class Figure:
    number: int
    title: str
    use: str
    x: str
    unit: str
    series: list
    digits: int = 1
    published_format: str = "g"
    note: str = ""


GPT_175B = {"layers": 96, "hidden": 12288, "heads": 96}
GPT_145B = {"layers": 80, "hidden": 12288, "heads": 96}
GPT_530B = {"layers": 105, "hidden": 20480, "heads": 128}
GPT_162B = {"layers": 32, "hidden": 20480, "heads": 128}
GPT_91B = {"layers": 32, "hidden": 15360, "heads": 128}
GPT_6B = {"layers": 32, "hidden": 3840, "heads": 32}
GPT_1B = {"layers": 4, "hidden": 4096, "heads": 128}
FLOPS = "teraFLOP/s per GPU"
BATCHES_12 = (12, 24, 36, 48, 60)


def config(model, p, t, d, batch, micro=1, chunks=1, **other):
    return {"unit": "tflops", **model, "seq": 2048, "vocab": 51200, "p": p, "t": t, "d": d, "b": micro, "B": batch,
            "v": chunks, "recompute": "full", "sp": 0, "sg": 1, "fused": 1, "code": 2021, "ddp": "local", **other}


def interleaved(batch, **other):
    """Chunks of two layers, as in Figures 12 and 18."""
    return config(GPT_175B, 12, 8, 1, batch, chunks=4, **other)


def by_batch(batches, make):
    """A series for each batch; make(batch) returns its configurations by x."""
    return [Series(f"batch {batch}", rf"batch\D*{batch}\b", make(batch)) for batch in batches]


def halves(make, sizes=(2, 4, 8, 16, 32)):
    """Configurations of 64 GPUs by "size;64/size"."""
    return {f"{size};{64 // size}": make(size, 64 // size) for size in sizes}


def bubble_series(ranks, batch):
    sizes = [2 ** power for power in range(ranks.bit_length()) if batch % 2 ** power == 0]
    return Series(f"n = {ranks}, b' = {batch}", rf"n\D*{ranks}\b.*\D{batch}$",
                  {str(d): {"p": ranks // d, "m": batch // d} for d in sizes})


def figures():
    """All figures with values, in order. Figures 6 and 8 have no configuration of a step: the caller fills them."""
    return [
        Figure(6, "Bubble by number of data ranks, one tensor rank", DEFINITION, "data ranks d", "bubble / ideal time",
               [bubble_series(*sizes) for sizes in ((32, 32), (32, 128), (128, 128), (128, 512))], 3, ".2f",
               "Simulated with `triax simulate`: p = n / d, m = b' / d, sched-1f1b. "
               "b' = B / b is the number of microbatches of a step over all data ranks."),
        Figure(7, "Throughput by microbatch size, GPT of 1B on one GPU", CALIBRATION, "microbatch b", FLOPS,
               [Series("1B", "", {str(b): config(GPT_1B, 1, 1, 1, b, b) for b in (1, 2, 4, 8, 16)})],
               note="The paper gives no batch: one microbatch per step is assumed."),
        Figure(8, "Equation 1 with the times of Figure 7, (p, t) = (8, 8)", DERIVED, "microbatch b",
               "throughput, relative to b = 1", by_batch((128, 512), lambda batch: {}), 2, ".2f",
               "The time of a step is (B / b + p - 1) (t_f + t_b), with the predicted times."),
        Figure(10, "Weak and strong scaling of Table 2", HELD_OUT, "GPUs", FLOPS,
               [Series("175B", r"ptd.*17[45]", {str(96 * d): config(GPT_175B, 12, 8, d, 1536) for d in (4, 8, 16)}),
                Series("530B", r"ptd.*5[23]\d", {str(280 * d): config(GPT_530B, 35, 8, d, 2240) for d in (2, 4, 8)})]),
        Figure(11, "Weak scaling of pipeline ranks, t = 8, 3 p layers of hidden size 20480", CALIBRATION,
               "pipeline ranks p", FLOPS, by_batch((8, 128), lambda batch: {
                   str(p): config({**GPT_162B, "layers": 3 * p}, p, 8, 1, batch) for p in (1, 2, 4, 8)})),
        Figure(12, "Interleaved schedule, GPT-3 on 96 GPUs", HELD_OUT, "batch", FLOPS,
               [Series("1f1b", "non.?interleaved", {str(b): config(GPT_175B, 12, 8, 1, b) for b in BATCHES_12}),
                Series("interleaved, v = 4", r"^(?!.*non.?inter).*interleaved",
                       {str(b): interleaved(b) for b in BATCHES_12})]),
        Figure(13, "Pipeline and tensor ranks, GPT of 162B on 64 GPUs", CALIBRATION, "p;t", FLOPS,
               by_batch((32, 128), lambda batch: halves(lambda p, t: config(GPT_162B, p, t, 1, batch))),
               note="The microbatch is 1."),
        Figure(14, "Pipeline and data ranks, GPT of 5.9B on 64 GPUs", HELD_OUT, "p;d", FLOPS,
               by_batch((32, 512), lambda batch: halves(lambda p, d: config(GPT_6B, p, 1, d, batch)))),
        Figure(15, "Tensor and data ranks, GPT of 5.9B on 64 GPUs", HELD_OUT, "t;d", FLOPS,
               by_batch((32, 128, 512), lambda batch: halves(lambda t, d: config(GPT_6B, 1, t, d, batch)))),
        Figure(16, "Throughput by microbatch size, GPT of 91B, (p, t) = (8, 8)", HELD_OUT, "microbatch b", FLOPS,
               by_batch((128, 512), lambda batch: {
                   str(b): config(GPT_91B, 8, 8, 1, batch, b) for b in (1, 2, 4, 8)})),
        Figure(17, "Recomputation, GPT of 145B on 128 GPUs, (p, t) = (16, 8)", HELD_OUT, "batch", "sequences/s",
               [Series("with recomputation", r"^(?!.*(without|no\b|w/o)).*(recomp|checkp)",
                       recomputed("full")),
                Series("without", r"(without|no\b|w/o).*(recomp|checkp)", recomputed("none"))], 2,
               note="Memory is not considered: without recomputation, large batches may not fit."),
        Figure(18, "Scatter/gather, GPT-3 on 96 GPUs, interleaved", HELD_OUT, "batch", FLOPS,
               [Series("scatter/gather", "scatter", {str(b): interleaved(b) for b in BATCHES_12}),
                Series("without", "unopt|without", {str(b): interleaved(b, sg=0) for b in BATCHES_12})]),
    ]


def recomputed(mode):
    return {str(2 ** power): config(GPT_145B, 16, 8, 1, 2 ** power, recompute=mode, unit="seq/s")
            for power in range(9)}


# What was fused: GPT-3 as in Figure 12, without interleaving, at the batch whose plotted value is the stated one; the
# paper does not say the run of 530B.
FUSION = {"GPT-3": (config(GPT_175B, 12, 8, 1, 60), 113, 135), "530B": (config(GPT_530B, 35, 8, 1, 280), 133, 148)}
