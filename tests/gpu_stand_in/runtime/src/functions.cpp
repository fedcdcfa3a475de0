// SPDX-License-Identifier: Apache-2.0
// Registration of kernels: what nvcc's code calls when a program or library is loaded and unloaded.
#include "functions.hpp"

#include <cuda_runtime_api.h>

#include <map>

#include "errors.hpp"
#include "gpu_stand_in/runtime.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr int kArchitecture = 10 * kMajor + kMinor;

struct Registry {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Function>> functions; // by host function
  std::map<void**, std::shared_ptr<Binary>> binaries;         // by the handle that nvcc's code holds
};
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

// As fatbinary_section.h of the toolkit declares it.
struct Wrapper {
  int magic, version;
  const std::byte* data;
  void* linked; // version 2: of relocatable device code
};
constexpr int kWrapperMagic = 0x466243B1;

} // namespace

std::shared_ptr<const Module> Binary::module() {
  std::lock_guard lock(mutex_);
  if (module_) return module_;
  if (!data_) throw FatBinaryError("relocatable device code (nvcc -rdc=true) is not known");
  contents_ = read_fat_binary(data_, kArchitecture);
  ptx_ = std::string(contents_.ptx);
  module_ = read_module(ptx_);
  return module_;
}

const KernelResources* Binary::find_resources(const std::string& kernel) const {
  const auto found = contents_.resources.find(kernel);
  return found == contents_.resources.end() ? nullptr : &found->second;
}

void Function::load() {
  std::lock_guard lock(mutex);
  if (kernel) return;
  try {
    module = binary->module();
    kernel = module->find(name);
  } catch (const FatBinaryError& e) {
    throw CallError(cudaErrorNoKernelImageForDevice, "kernel " + name + ": " + e.what());
  } catch (const PtxError& e) {
    throw CallError(cudaErrorInvalidPtx, "kernel " + name + ": " + e.what());
  }
  if (!kernel) throw CallError(cudaErrorInvalidDeviceFunction, "kernel " + name + " is not in the PTX");
  if (const KernelResources* known = binary->find_resources(name)) resources = *known;
}

std::shared_ptr<Function> find_function(const void* host_function) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(host_function);
  if (found != all.functions.end()) return found->second;
  throw CallError(cudaErrorInvalidDeviceFunction, "the function is not a kernel that a loaded program registered");
}

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // nvcc's code calls global names

// NOLINTBEGIN(bugprone-reserved-identifier): the names that nvcc's code calls
extern "C" {

void** __cudaRegisterFatBinary(void* data) {
  const auto* wrapper = static_cast<const Wrapper*>(data);
  const bool known = wrapper->magic == kWrapperMagic && wrapper->version == 1;
  auto binary = std::make_shared<Binary>(known ? wrapper->data : nullptr);
  auto** handle = reinterpret_cast<void**>(binary.get());
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.binaries[handle] = std::move(binary);
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.binaries.find(handle);
  if (found == all.binaries.end()) return;
  std::erase_if(all.functions, [&](const auto& each) { return each.second->binary == found->second; });
  all.binaries.erase(found);
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto function = std::make_shared<Function>();
  function->binary = all.binaries.at(handle);
  function->name = name;
  all.functions[host_function] = std::move(function);
}

// Variables of modules: kernels use them; no call of the host that the stand-in knows does.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

char __cudaInitModule(void**) {
  return 1;
}

} // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
