// SPDX-License-Identifier: Apache-2.0
// Error codes of calls: the last error of a thread, and how calls report what is wrong.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace triax::gpu_stand_in {

// A call that is refused. With a message, which says what is wrong with the call, it is printed.
struct CallError : std::runtime_error {
  explicit CallError(cudaError_t error, const std::string& message = {}) : std::runtime_error(message), code(error) {}
  cudaError_t code;
};

enum class Check {
  kNone,    // works whatever happened before
  kSticky,  // returns the sticky error of the current device
  kCapture, // kSticky, and is not allowed while a stream captures, but in relaxed mode
};

// Runs the body of a call: planned failures, sticky errors and CallError become its result, which is also the last
// error of the thread.
cudaError_t call(const char* name, Check check, const std::function<void()>& body);

// Runs a call that polls: its result is cudaErrorNotReady while `is_done` returns false. A thread that polls in vain
// waits a little, so that the work that it polls for gets the processor.
cudaError_t query(const char* name, const std::function<bool()>& is_done);

cudaError_t take_last_error();
cudaError_t last_error();

} // namespace triax::gpu_stand_in
