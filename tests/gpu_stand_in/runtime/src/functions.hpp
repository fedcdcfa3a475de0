// SPDX-License-Identifier: Apache-2.0
// Kernels that programs register when they are loaded, found by the address of their host function.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "device.hpp"
#include "fat_binary.hpp"
#include "gpu_stand_in/machine.hpp"

namespace triax::gpu_stand_in {

// One fat binary. Its PTX is read when a kernel of it is first used, so that a program whose kernels are not used can
// hold what the stand-in does not know.
class Binary {
 public:
  explicit Binary(const std::byte* data) : data_(data) {}
  // Throws FatBinaryError or PtxError, the same at each call.
  std::shared_ptr<const Module> module();
  // Known after module(). Null if there is no cubin for this GPU.
  const KernelResources* find_resources(const std::string& kernel) const;

 private:
  const std::byte* data_;
  std::mutex mutex_;
  FatBinary contents_;
  std::string ptx_; // stays when the program's library is unloaded
  std::shared_ptr<const Module> module_;
};

struct Function {
  std::shared_ptr<Binary> binary;
  std::string name;
  std::atomic<std::size_t> dynamic_shared_limit = kSharedBytes; // cudaFuncSetAttribute changes it
  std::mutex mutex{};
  std::shared_ptr<const Module> module{}; // keeps kernel
  const Kernel* kernel = nullptr;
  KernelResources resources{}; // registers: 0 if not known

  // Loads the kernel. Throws CallError.
  void load();
  std::size_t static_shared_bytes() const { return std::max(kernel->static_shared_bytes, resources.shared_bytes); }
};

// Throws CallError if the host function is not one of a kernel.
std::shared_ptr<Function> find_function(const void* host_function);

} // namespace triax::gpu_stand_in
