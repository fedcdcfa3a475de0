# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of time on an A100 and an H100, from counts: instructions, memory, tensor cores."""

import dataclasses

SECTOR_BYTES = 32
MMA_FLOPS = 2 * 16 * 8 * 16 # mma.m16n8k16
REGISTERS, WARPS, BLOCKS = 65536, 64, 32 # of an SM: compute capability 8.0 and 9.0


@dataclasses.dataclass(frozen=True)
class Device:
    name: str
    arch: str
    sms: int
    flops_per_clock: int     # dense, 16 bits, of an SM
    flops_16: float          # per second, dense
    flops_tf32: float        # per second, dense
    flops_32: float          # per second, fp32 without tensor cores
    memory_bytes_s: float
    shared_bytes: int        # of an SM
    source: str

    def clock_hz(self):
        """The clock at which the published rate holds."""
        return self.flops_16 / (self.sms * self.flops_per_clock)

    def issue_slots_s(self):
        return 4 * self.sms * self.clock_hz() # four schedulers, each one warp instruction per clock


A100 = Device("A100", "sm_80", 108, 2048, 312e12, 156e12, 19.5e12, 2.039e12, 164 << 10,
              "NVIDIA A100 Tensor Core GPU Architecture (white paper), table 1; data sheet of the A100 80GB SXM4")
H100 = Device("H100", "sm_90", 132, 4096, 989.4e12, 494.7e12, 66.9e12, 3.35e12, 228 << 10,
              "NVIDIA H100 Tensor Core GPU Architecture (white paper), tables 1 and 2; data sheet of the H100 SXM5")
DEVICES = (A100, H100)


def largest(times):
    """The name and the value of the largest time."""
    by = max(times, key=times.get)
    return {"us": 1e6 * times[by], "by": by} | {f"{name}_us": 1e6 * value for name, value in times.items()}


def of_kernel(device, row):
    # Parameters are constants of machine code, which instructions read as operands.
    issued = row["instructions"] - row["kinds"]["param"]
    return largest({"issue": issued / device.issue_slots_s(),
                    "memory": row["memory_sectors"] * SECTOR_BYTES / device.memory_bytes_s,
                    "tensor": row["mma"] * MMA_FLOPS / device.flops_16})


def of_call(device, row):
    """Products, fills and copies within the device. Copies to and from the host do not use its SMs."""
    if "host" in row["call"]:
        return None
    rate = device.flops_16
    if "CUDA_R_32F" in row["call"]:
        rate = device.flops_tf32 if " as TF32 " in row["call"] else device.flops_32
    return largest({"memory": row["bytes"] / device.memory_bytes_s, "tensor": row["flops"] / rate})


def of_step(device, kernels, calls):
    """Sum over the step, and the share of the matmul peak: time of all products at the peak of their type / sum."""
    bounds = [one for one in (*(of_kernel(device, row) for row in kernels), *(of_call(device, row) for row in calls)) if one]
    total = sum(one["us"] for one in bounds)
    flops = sum(row["mma"] * MMA_FLOPS for row in kernels) + sum(row["flops"] for row in calls)
    return {"us": total, "flops": flops, "matmul_share": sum(one["tensor_us"] for one in bounds) / total}


def blocks_of_sm(device, threads, registers, shared_bytes):
    """Resident blocks: CUDA C++ programming guide, compute capabilities; registers are given out by 256 for a warp,
    shared memory by 128 bytes, and 1 KiB of it is reserved for each block."""
    warps = -(-threads // 32)
    of_warp = -(-max(registers, 1) * 32 // 256) * 256
    shared = -(-shared_bytes // 128) * 128 + 1024
    return min(BLOCKS, WARPS // warps, REGISTERS // of_warp // warps, device.shared_bytes // shared)


def occupancy(device, threads, registers, shared_bytes):
    """Share of the resident warps that are possible."""
    return blocks_of_sm(device, threads, registers, shared_bytes) * -(-threads // 32) / WARPS
