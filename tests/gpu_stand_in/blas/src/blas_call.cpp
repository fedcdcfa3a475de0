// SPDX-License-Identifier: Apache-2.0
#include "blas_call.hpp"

#include <algorithm>
#include <cstring>

namespace triax::gpu_stand_in {

namespace {

constexpr std::size_t kSpoiledBytes = 65536;

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

} // namespace

cublasStatus_t blas_call(const char* name, const std::function<void()>& body) {
  try {
    if (is_failure_planned(name, current_device())) {
      throw BlasError(CUBLAS_STATUS_EXECUTION_FAILED, "this call fails, because TRIAX_GPU_FAIL says so");
    }
    body();
    return CUBLAS_STATUS_SUCCESS;
  } catch (const BlasError& e) {
    report(std::string(name) + ": " + e.what());
    return e.status;
  } catch (const std::exception& e) {
    report(std::string(name) + ": " + e.what());
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
}

void check_memory(int device, const void* address, std::size_t bytes, std::size_t alignment, const std::string& what) {
  if (!address) invalid(what + " is null");
  if (number(address) % alignment != 0) {
    invalid(what + " is not at a multiple of " + std::to_string(alignment) + " bytes: " + describe_memory(address));
  }
  const auto found = find_memory(address);
  const bool reachable = found && (found->allocation.host || found->device == device);
  if (reachable && bytes <= found->allocation.bytes - (number(address) - found->allocation.address)) return;
  invalid(what + ": " + std::to_string(bytes) + " bytes are not in one allocation of GPU " + std::to_string(device) +
          "; they begin at " + describe_memory(address));
}

void check_leading(const Matrix& matrix, const std::string& what) {
  if (matrix.leading >= std::max<std::int64_t>(1, matrix.rows)) return;
  invalid(what + " has leading dimension " + std::to_string(matrix.leading) + ", and " + std::to_string(matrix.rows) +
          " rows");
}

void check_apart(const Matrix& output, const Matrix& input, const std::string& what) {
  const std::uint64_t first = number(output.address), second = number(input.address);
  if (first + output.bytes() <= second || second + input.bytes() <= first) return;
  invalid("the output overlaps " + what + ": " + describe_memory(output.address) + " and " +
          describe_memory(input.address));
}

int check_stream(cudaStream_t stream) {
  const auto device = device_of(stream);
  if (!device) invalid("the handle is not a stream's");
  if (*device != current_device()) {
    invalid("the stream is GPU " + std::to_string(*device) + "'s, and the current device is GPU " +
            std::to_string(current_device()));
  }
  return *device;
}

void spoil_workspace(int device, void* workspace, std::size_t bytes) {
  const std::size_t spoiled = std::min(bytes, kSpoiledBytes);
  if (spoiled == 0) return;
  std::memset(data_to_write(device, workspace, spoiled, "the workspace"), 0xFF, spoiled);
  DeviceMemory& memory = memory_of(device);
  if (memory.owns(number(workspace))) std::memset(memory.written(number(workspace)), 0, spoiled);
}

void count_product(cudaDataType type, cublasComputeType_t compute, const ProductSize& size, std::size_t bytes) {
  const std::string as = compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? " as TF32 " : " ";
  std::string name = "product " + name_of(type) + as + std::to_string(size.m) + " x " + std::to_string(size.n) + " x " +
                     std::to_string(size.k);
  if (size.batch != 1) name += ", batch of " + std::to_string(size.batch);
  count_library_call(name, static_cast<std::uint64_t>(2 * size.m * size.n * size.k * size.batch), bytes);
}

void submit_product(cudaStream_t stream, const char* name, std::function<void()> work) {
  const cudaError_t error = enqueue(stream, name, std::move(work));
  if (error != cudaSuccess) {
    throw BlasError(CUBLAS_STATUS_EXECUTION_FAILED,
                    std::string("the stream does not take the call: ") + cudaGetErrorName(error));
  }
}

} // namespace triax::gpu_stand_in
