// SPDX-License-Identifier: Apache-2.0
#include "triax/cuda/cuda_check.hpp"

#include <filesystem>

#include "triax/error.hpp"

namespace triax::cuda {

std::string text_of(cudaError_t error) {
  return text("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

std::string hint_for(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "use a smaller batch.micro or model, or more ranks; nvidia-smi shows what else is on the GPU";
    case cudaErrorInsufficientDriver:
      return "install a newer NVIDIA driver, or build Triax with the CUDA toolkit that the driver is for";
    case cudaErrorNoKernelImageForDevice:
      return "build Triax for this GPU: -DCMAKE_CUDA_ARCHITECTURES (the default is 80 and 90)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
      return "run it again with CUDA_LAUNCH_BLOCKING=1 to see at which action, or under compute-sanitizer";
    default:
      return "nvidia-smi shows the state of the GPUs";
  }
}

void fail(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError(); // clears the error, so that the next launch check does not report it again
  throw Error(text("{}: {}", call, text_of(error)),
              text("{}:{}", std::filesystem::path(file).filename().string(), line), hint_for(error));
}

} // namespace triax::cuda
