// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include "gpu_stand_in/runtime.hpp"
#include "pinned.hpp"
#include "settings.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr int kMaxDevices = 128;
std::atomic<GpuDevice*> devices[kMaxDevices];
thread_local int current = 0;

} // namespace

GpuDevice::GpuDevice(int number) : number_(number), memory_(settings().memory_bytes, "GPU " + std::to_string(number)) {}

void GpuDevice::fail(cudaError_t error, const std::string& message) {
  cudaError_t none = cudaSuccess;
  if (!sticky_.compare_exchange_strong(none, error)) return;
  report("GPU " + std::to_string(number_) + ": " + cudaGetErrorName(error) + ": " + message);
}

GpuDevice& device(int number) {
  if (GpuDevice* found = devices[number].load(std::memory_order_acquire)) return *found;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (GpuDevice* found = devices[number].load(std::memory_order_acquire)) return *found;
  install_host_access_handler();
  auto* made = new GpuDevice(number);
  pinned_memory().attach_to(*made, [&] { devices[number].store(made, std::memory_order_release); });
  return *made;
}

GpuDevice* find_device(int number) {
  return devices[number].load(std::memory_order_acquire);
}

GpuDevice* owner_of(const void* address) {
  for (const auto& each : devices) {
    GpuDevice* found = each.load(std::memory_order_acquire);
    if (found && found->memory().owns(reinterpret_cast<std::uint64_t>(address))) return found;
  }
  return nullptr;
}

int current_device() {
  return current;
}
void set_current_device(int number) {
  current = number;
}

int device_count() {
  return settings().devices;
}

cudaError_t sticky_error(int number) {
  GpuDevice* found = find_device(number);
  return found ? found->sticky() : cudaSuccess;
}

DeviceMemory& memory_of(int number) {
  return device(number).memory();
}

} // namespace triax::gpu_stand_in
