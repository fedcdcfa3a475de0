// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <cstdio>
#include <map>
#include <mutex>

#include "capture.hpp"
#include "device.hpp"
#include "gpu_stand_in/runtime.hpp"
#include "settings.hpp"
#include "stream.hpp"

namespace triax::gpu_stand_in {

namespace {

thread_local cudaError_t last = cudaSuccess;

cudaError_t planned_error(std::string_view name) {
  if (name == "cudaMalloc" || name == "cudaHostAlloc") return cudaErrorMemoryAllocation;
  return name == "cudaLaunchKernel" ? cudaErrorLaunchOutOfResources : cudaErrorUnknown;
}

void check_before(const char* name, Check check) {
  if (is_failure_planned(name, current_device())) {
    throw CallError(planned_error(name), "this call fails, because TRIAX_GPU_FAIL says so");
  }
  if (check == Check::kNone) return;
  if (device_count() == 0) throw CallError(cudaErrorNoDevice);
  if (const cudaError_t sticky = sticky_error(current_device()); sticky != cudaSuccess) throw CallError(sticky);
  if (check != Check::kCapture) return;
  if (const std::string why = refuse_during_capture(name); !why.empty()) {
    throw CallError(cudaErrorStreamCaptureUnsupported, why);
  }
}

} // namespace

cudaError_t call(const char* name, Check check, const std::function<void()>& body) {
  try {
    check_before(name, check);
    body();
    return cudaSuccess;
  } catch (const CallError& e) {
    if (*e.what()) report(std::string(name) + ": " + e.what());
    last = e.code;
  } catch (const std::exception& e) {
    report(std::string(name) + ": " + e.what());
    last = cudaErrorUnknown;
  }
  return last;
}

cudaError_t query(const char* name, const std::function<bool()>& is_done) {
  static thread_local Backoff backoff;
  bool done = false;
  if (const cudaError_t error = call(name, Check::kCapture, [&] { done = is_done(); }); error != cudaSuccess) {
    return error;
  }
  if (done) {
    backoff.reset();
    return cudaSuccess;
  }
  backoff.pause();
  return last = cudaErrorNotReady;
}

cudaError_t last_error() {
  const cudaError_t sticky = sticky_error(current_device());
  return sticky != cudaSuccess ? sticky : last;
}

cudaError_t take_last_error() {
  const cudaError_t error = last_error();
  last = cudaSuccess;
  return error;
}

void report(std::string_view message) {
  const std::string line = "[gpu stand-in] " + std::string(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool is_failure_planned(std::string_view name, int device) {
  if (settings().failures.empty()) return false;
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, std::uint64_t> counts; // by name and device; -1: all devices
  std::lock_guard lock(mutex);
  const std::uint64_t of_all = ++counts[{std::string(name), -1}];
  const std::uint64_t of_device = ++counts[{std::string(name), device}];
  for (const PlannedFailure& each : settings().failures) {
    if (each.call != name) continue;
    if (each.device ? *each.device == device && each.number == of_device : each.number == of_all) return true;
  }
  return false;
}

// FNV-1a over seed and purpose.
std::uint64_t seed_for(std::string_view purpose) {
  if (settings().seed == 0) return 0;
  std::uint64_t hash = 14695981039346656037u ^ settings().seed;
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash | 1;
}

} // namespace triax::gpu_stand_in

extern "C" {

cudaError_t cudaGetLastError() {
  return triax::gpu_stand_in::take_last_error();
}

cudaError_t cudaPeekAtLastError() {
  return triax::gpu_stand_in::last_error();
}

} // extern "C"
