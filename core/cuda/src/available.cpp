// SPDX-License-Identifier: Apache-2.0
// Checks whether this machine has a GPU for a rank, without creating a CUDA context.
#include <cuda_runtime_api.h>

#include "triax/cuda/check.hpp"
#include "triax/cuda/device.hpp"

namespace triax::cuda {

namespace {

constexpr int kMinMajor = 8; // compute capability 8.0: has bf16, and is the lowest that the kernels are compiled for

std::string version_text(int version) {
  return text("{}.{}", version / 1000, version % 1000 / 10);
}

Support check_driver() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return Support::no("no CUDA driver on this machine")
        .hint(
            "install NVIDIA's driver (nvidia-smi comes with it), or use a kernel set that computes on the host; "
            "triax check --no-device leaves this machine out of the question");
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  if (driver / 1000 < runtime / 1000)
    return Support::no("the CUDA driver of this machine is too old: it is for CUDA {}, and this build needs {}",
                       version_text(driver), version_text(runtime))
        .hint("{}", hint_for(cudaErrorInsufficientDriver));
  return Support::yes();
}

Support check_gpu(int gpu, double bytes) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, gpu); error != cudaSuccess)
    return Support::no("GPU {} of this machine cannot be asked: {}", gpu, text_of(error)).hint("{}", hint_for(error));
  if (properties.major < kMinMajor)
    return Support::no("GPU {} of this machine ({}) has compute capability {}.{}, and {}.0 is needed", gpu,
                       properties.name, properties.major, properties.minor, kMinMajor)
        .hint("use a GPU of the Ampere generation or later, or a kernel set that computes on the host");
  const auto there = static_cast<double>(properties.totalGlobalMem);
  if (bytes > there)
    return Support::no("a rank needs {} GB of memory, and GPU {} of this machine ({}) has {} GB",
                       static_cast<std::int64_t>(bytes / 1e9), gpu, properties.name,
                       static_cast<std::int64_t>(there / 1e9))
        .hint("use a smaller batch.micro or model, or more ranks");
  return Support::yes();
}

} // namespace

Support available(const DeviceRequest& request) {
  if (Support driver = check_driver(); !driver) return driver;
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess && error != cudaErrorNoDevice)
    return Support::no("the GPUs of this machine cannot be counted: {}", text_of(error)).hint("{}", hint_for(error));
  if (error != cudaSuccess) gpus = 0;
  if (request.local_rank >= gpus)
    return Support::no("rank {} of this machine has no GPU: {} GPU{} found", request.local_rank, gpus,
                       gpus == 1 ? "" : "s")
        .hint(
            "start as many ranks on a machine as it has GPUs, and let each rank see all of them "
            "(CUDA_VISIBLE_DEVICES; srun --gpu-bind=none)");
  return check_gpu(request.local_rank, request.bytes);
}

} // namespace triax::cuda
