// SPDX-License-Identifier: Apache-2.0
// Checks whether this machine has a GPU for a rank, without creating a CUDA context.
#include <cuda_runtime_api.h>

#include <string>

#include "base/scaled_text.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"

namespace triax::cuda {

namespace {

constexpr int kMinMajor = 8; // compute capability 8.0: has bf16, and is the lowest that the kernels are compiled for

std::string version_text(int version) {
  return text("{}.{}", version / 1000, version % 1000 / 10);
}

Refusals check_driver() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return make_refusal(ErrorCode::kNoDevice, {}, "no CUDA driver on this machine")
        .with_hint("install NVIDIA's driver (nvidia-smi comes with it), or use a kernel set that computes on the host");
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  if (driver / 1000 < runtime / 1000)
    return make_refusal(ErrorCode::kNoDevice, {},
                        "the CUDA driver of this machine is too old: it is for CUDA {}, but this build needs {}",
                        version_text(driver), version_text(runtime))
        .with_hint("{}", hint_for(cudaErrorInsufficientDriver));
  return {};
}

Refusals check_gpu(int gpu, double bytes) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, gpu); error != cudaSuccess)
    return make_refusal(ErrorCode::kNoDevice, {}, "GPU {} of this machine cannot be queried: {}", gpu, text_of(error))
        .with_hint("{}", hint_for(error));
  Refusals out;
  if (properties.major < kMinMajor)
    out.add(make_refusal(ErrorCode::kNoDevice, {},
                         "GPU {} of this machine ({}) has compute capability {}.{}, but {}.0 is needed", gpu,
                         properties.name, properties.major, properties.minor, kMinMajor)
                .with_hint("use a GPU of the Ampere generation or later, or a kernel set that computes on the host"));
  const auto there = static_cast<double>(properties.totalGlobalMem);
  if (bytes > there)
    out.add(make_refusal(ErrorCode::kOutOfMemory, {},
                         "a rank needs {} of memory, {} more than GPU {} of this machine ({}) has: {}",
                         scaled_text(bytes, "B"), scaled_text(bytes - there, "B"), gpu, properties.name,
                         scaled_text(there, "B"))
                .with_hint("use a smaller batch.micro or model, or more ranks"));
  return out;
}

} // namespace

Refusals available(const DeviceRequest& request) {
  if (Refusals driver = check_driver(); !driver.empty()) return driver;
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess && error != cudaErrorNoDevice)
    return make_refusal(ErrorCode::kNoDevice, {}, "the GPUs of this machine cannot be counted: {}", text_of(error))
        .with_hint("{}", hint_for(error));
  if (error != cudaSuccess) gpus = 0;
  if (request.local_rank >= gpus)
    return make_refusal(ErrorCode::kNoDevice, {}, "rank {} of {} on this machine has no GPU: {} GPU{} found",
                        request.local_rank, request.local_ranks, gpus, gpus == 1 ? "" : "s")
        .with_hint(
            "start as many ranks on a machine as it has GPUs, and let each rank see all of them "
            "(CUDA_VISIBLE_DEVICES; srun --gpu-bind=none)");
  return check_gpu(request.local_rank, request.bytes);
}

} // namespace triax::cuda
