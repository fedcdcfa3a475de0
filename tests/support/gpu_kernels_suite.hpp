// What every kernel set on GPUs must do: gpu_kernels_*.cpp of this folder, built into the tests of each set with
// TRIAX_KERNELS as its name. What only one of them promises is tested in its own folder. With TRIAX_ON_HOST_CUDA it is
// the set that was compiled for CUDA of the host (support/host_cuda), in a folder of its own.
//
// Threads: one. Ownership: owns set and device. Blocking: starting cuBLAS takes a second. Errors: none: on a machine
// without a GPU a test skips with the reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"
#include "triax/cuda/device.hpp"

namespace triax::testing {

#ifdef TRIAX_ON_HOST_CUDA
inline constexpr bool kOnHostCuda = true;
inline constexpr const char* kKernelsFolder = "lib/triax/test-plugins";
#else
inline constexpr bool kOnHostCuda = false;
inline constexpr const char* kKernelsFolder = "lib/triax/plugins";
#endif

/// Of every operation. On CUDA of the host without attention over many keys: there it is made of rows, as other cases
/// are, and takes long.
inline std::vector<OperationCase> suite_cases(DType type) {
  std::vector<OperationCase> cases = operation_cases(type);
  if (kOnHostCuda)
    std::erase_if(cases, [](const OperationCase& one) {
      return one.name.find("/long") != std::string::npos || one.name.ends_with("/late queries");
    });
  return cases;
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Support answer = cuda::available({}); !answer) GTEST_SKIP() << answer.reason();
    Options options;
    options.set("tf32", false);
    tested = std::make_unique<LoadedKernels>(TRIAX_KERNELS, options, kKernelsFolder);
  }
  std::unique_ptr<LoadedKernels> tested;
};

/// What the set gives beside the reference in double.
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

} // namespace triax::testing
