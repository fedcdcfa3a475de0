// SPDX-License-Identifier: Apache-2.0
// Whether CUDA waits for each kernel within its launch (environment variable CUDA_LAUNCH_BLOCKING).
//
// Threads: any, while none sets environment variables. Ownership: none. Blocking: never. Errors: none. Needs no CUDA.
#pragma once

#include <cstdlib>
#include <string_view>

namespace triax::cuda {

/// The value of CUDA_LAUNCH_BLOCKING if launches block, else null. CUDA documents 0 and 1; other values count as 1.
inline const char* launch_blocking() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  const std::string_view text = value ? value : "";
  return text.empty() || text == "0" ? nullptr : value;
}

} // namespace triax::cuda
