// SPDX-License-Identifier: Apache-2.0
// CUDA calls: launches, and attributes of kernels.
#include "errors.hpp"
#include "launch.hpp"
#include "settings.hpp"

namespace triax::gpu_stand_in {

namespace {

struct Configuration {
  LaunchShape shape;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations; // of <<<>>>, between its brackets and its call

// Planned failures and messages have one name for all ways to write a launch.
cudaError_t launch_by_handle(const void* host_function, const LaunchShape& shape, void** args, cudaStream_t handle) {
  return call("cudaLaunchKernel", Check::kSticky, [&] {
    const std::shared_ptr<Function> function = find_function(host_function);
    const StreamPtr stream = find_stream(handle);
    if (stream->device().number() != current_device()) {
      throw CallError(cudaErrorInvalidResourceHandle, "kernel " + function->name + ": " + stream->name() + " is GPU " +
                                                          std::to_string(stream->device().number()) +
                                                          "'s, and the current device is GPU " +
                                                          std::to_string(current_device()));
    }
    function->load();
    launch(*function, shape, args, *stream);
  });
}

void set_attribute(const void* host_function, cudaFuncAttribute attribute, int value) {
  const std::shared_ptr<Function> function = find_function(host_function);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return; // a hint
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    throw CallError(cudaErrorNotSupported, "the stand-in does not know attribute " + std::to_string(attribute));
  }
  function->load();
  const std::size_t most = settings().shared_bytes - function->static_shared_bytes();
  if (value < 0 || static_cast<std::size_t>(value) > most) {
    throw CallError(cudaErrorInvalidValue, "kernel " + function->name + ": " + std::to_string(value) +
                                               " bytes of dynamic shared memory, and a block can have " +
                                               std::to_string(most));
  }
  function->dynamic_shared_limit = static_cast<std::size_t>(value);
}

void get_attributes(cudaFuncAttributes& attributes, const void* host_function) {
  const std::shared_ptr<Function> function = find_function(host_function);
  function->load();
  const Kernel& kernel = *function->kernel;
  if (function->resources.registers == 0) {
    throw CallError(cudaErrorNotSupported, "the registers of kernel " + function->name +
                                               " are not known: build it with machine code for this GPU "
                                               "(CMAKE_CUDA_ARCHITECTURES=80)");
  }
  attributes = {};
  attributes.sharedSizeBytes = function->static_shared_bytes();
  attributes.localSizeBytes = kernel.local_bytes;
  attributes.maxThreadsPerBlock =
      kernel.max_threads.x != 0 ? static_cast<int>(kernel.max_threads.count()) : kMaxThreadsPerBlock;
  attributes.numRegs = function->resources.registers;
  attributes.ptxVersion = attributes.binaryVersion = 10 * kMajor + kMinor;
  attributes.maxDynamicSharedSizeBytes = static_cast<int>(function->dynamic_shared_limit);
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

// NOLINTBEGIN(bugprone-reserved-identifier): the names that nvcc's code calls
extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  configurations.push_back({{grid, block, shared}, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.shape.grid;
  *block = last.shape.block;
  *shared = last.shape.dynamic_shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

// A handle of a kernel is its host function.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, std::size_t shared,
                               cudaStream_t stream) {
  return launch_by_handle(kernel, {grid, block, shared}, args, stream);
}

cudaError_t cudaLaunchKernel(const void* host_function, dim3 grid, dim3 block, void** args, std::size_t shared,
                             cudaStream_t stream) {
  return launch_by_handle(host_function, {grid, block, shared}, args, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host_function, void** args) {
  if (config->numAttrs != 0) {
    return call("cudaLaunchKernelExC", Check::kNone, [&] {
      throw CallError(cudaErrorNotSupported,
                      "the stand-in does not know launch attribute " + std::to_string(config->attrs[0].id));
    });
  }
  const LaunchShape shape{config->gridDim, config->blockDim, config->dynamicSmemBytes};
  return launch_by_handle(host_function, shape, args, config->stream);
}

cudaError_t cudaFuncSetAttribute(const void* host_function, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", Check::kSticky, [&] { set_attribute(host_function, attribute, value); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host_function) {
  return call("cudaFuncGetAttributes", Check::kSticky, [&] { get_attributes(*attributes, host_function); });
}

} // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
