// SPDX-License-Identifier: Apache-2.0
// Whether a test runs on the GPU stand-in (docs/gpu.md): large shapes would take hours there, and failures can be
// planned only there.
#pragma once

#include "triax/device.hpp"

namespace triax::test {

inline bool is_gpu_stand_in(const Device& device) {
  return device.description().starts_with("GPU stand-in");
}

} // namespace triax::test
