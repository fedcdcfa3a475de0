// SPDX-License-Identifier: Apache-2.0
// Tests that every GPU kernel set must pass: gpu_kernels_*.cpp of this folder, built into the tests of each set, with
// TRIAX_KERNELS as its name. Each set's own folder tests what only that set guarantees. With TRIAX_ON_HOST_CUDA, the
// set is the one compiled for the CUDA host emulator (support/host_cuda), in a separate folder.
//
// Ownership: owns set and device. Blocking: starting cuBLAS takes a second. Without a GPU, a test is skipped with the
// reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"
#include "triax/cuda/device.hpp"

namespace triax::test {

#ifdef TRIAX_ON_HOST_CUDA
inline constexpr bool kOnHostCuda = true;
inline constexpr const char* kKernelsFolder = "lib/triax/test-plugins";
#else
inline constexpr bool kOnHostCuda = false;
inline constexpr const char* kKernelsFolder = "lib/triax/plugins";
#endif

/// Cases of every operation. The CUDA host emulator skips attention over many keys: it is slow there, and consists of
/// the same row operations as other cases.
inline std::vector<OperationCase> suite_cases(DType type) {
  std::vector<OperationCase> cases = operation_cases(type);
  if (kOnHostCuda)
    std::erase_if(cases, [](const OperationCase& one) {
      return one.name.find("/long") != std::string::npos || one.name.ends_with("/late queries");
    });
  return cases;
}

/// The kernels run on the GPU stand-in (docs/gpu.md): large shapes would take hours.
inline bool is_gpu_stand_in(Device& device) {
  return device.description().starts_with("GPU stand-in");
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    Options options;
    options.set("tf32", false);
    tested = std::make_unique<LoadedKernels>(TRIAX_KERNELS, options, kKernelsFolder);
  }
  std::unique_ptr<LoadedKernels> tested;
};

/// Compares the set's results with the reference in double.
class AgainstReference : public OnGpu {
 protected:
  static CaseTensor tensor(const char* name, Role role, Shape shape) {
    return {.name = name, .role = role, .shape = shape};
  }
  static CaseTensor f32(const char* name, Role role, Shape shape) {
    return {.name = name, .role = role, .shape = shape, .kind = Kind::statistic};
  }
  void expect_near(const OperationCase& one, double tolerance) {
    EXPECT_EQ(compare(tested->set(), tested->device(), reference_.set(), one, tolerance), "") << one.name;
  }
  LoadedKernels reference_{"kernels-reference"};
};

} // namespace triax::test
