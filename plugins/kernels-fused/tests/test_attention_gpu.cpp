// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU: every tile width compared with the reference, equal bits in repeated runs, and sequences of a
// model's length compared with the default made of primitives.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "attention_cases.hpp"
#include "support/gpu_kernels_suite.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;

class AttentionOnGpu : public OnGpu, public ::testing::WithParamInterface<DType> {
 protected:
  /// Limits the run time of the reference, and on the GPU stand-in that of the kernels: there, sequences still take
  /// more tiles of a width than are loaded at a time, and end within one.
  std::int64_t longest_sequence(std::int64_t width) {
    if (is_gpu_stand_in(tested->device())) return width <= 64 ? 200 : 100;
    return width <= 64 ? 300 : 150;
  }
  CaseResults run(const OperationCase& one) { return run_case(tested->set(), tested->device(), one, one.dtype); }
};

TEST_P(AttentionOnGpu, AgreesOnEveryWidthOfTile) {
  for (const std::int64_t width : {1, 8, 31, 32, 40, 64, 77, 80, 96, 100, 128, 129, 160, 192, 256}) {
    const std::int64_t longest = longest_sequence(width);
    for (const AttentionShape& shape : random_shapes(static_cast<std::uint32_t>(width), 5, width, longest)) {
      const OperationCase one = backward_case(GetParam(), shape);
      const CaseResults got = run(one);
      EXPECT_EQ(differences(one, got, formula_results(one), attention_tolerance(GetParam())), "") << one.name;
      EXPECT_TRUE(got == run(one)) << one.name;
    }
  }
}

/// The diagonal of the mask enters a tile at several columns.
TEST_P(AttentionOnGpu, AgreesWhereverTheDiagonalEntersATile) {
  for (const std::int64_t width : {16, 40, 128}) {
    for (const std::int64_t k0 : {0, 1, 2, 15}) {
      const OperationCase one = backward_case(GetParam(), {.sq = 100, .sk = 100, .d = width, .k0 = k0});
      EXPECT_EQ(compare(tested->set(), tested->device(), one, attention_tolerance(GetParam())), "") << one.name;
    }
  }
}

TEST_P(AttentionOnGpu, WritesZerosWhereNothingIsSeen) {
  // No key at all; only keys at later positions; gradients of keys that no query sees.
  for (const AttentionShape& shape :
       {AttentionShape{.sq = 5, .sk = 20, .d = 16, .k0 = 30}, AttentionShape{.sq = 3, .sk = 70, .a = 2, .d = 16},
        AttentionShape{.sq = 40, .sk = 40, .b = 2, .d = 16, .lengths = true}}) {
    const OperationCase one = backward_case(GetParam(), shape);
    EXPECT_EQ(compare(tested->set(), tested->device(), one, attention_tolerance(GetParam())), "") << one.name;
  }
}

/// Copies of 16 bytes and copies of single elements give the same result.
TEST_P(AttentionOnGpu, GivesTheSameBitsWhereNothingIsAligned) {
  for (const std::int64_t width : {8, 32, 40, 256}) {
    for (const float p : {0.0f, 0.2f}) {
      const AttentionShape shape{.sq = 40, .sk = 50, .b = 2, .a = 2, .d = width, .q0 = 10, .p = p};
      const OperationCase one = backward_case(GetParam(), shape);
      EXPECT_TRUE(run(one) == run_case(tested->set(), tested->device(), one, GetParam(), 1)) << width;
    }
  }
}

/// NaN propagates, as in the unfused set.
TEST_P(AttentionOnGpu, IsNotANumberIfTheScaleIsNot) {
  const OperationCase one = forward_case(
      GetParam(), {.sq = 3, .sk = 20, .d = 16, .q0 = 30, .scale = std::numeric_limits<double>::quiet_NaN()});
  const CaseResults got = run(one);
  for (const double value : got.at("o")) EXPECT_TRUE(std::isnan(value));
}

/// The default runs in f32, with the same rounded inputs.
TEST_P(AttentionOnGpu, AgreesWithTheDefaultOnLongSequences) {
  LoadedKernels unfused("kernels-cublas");
  const bool stand_in = is_gpu_stand_in(tested->device());
  const std::int64_t length = stand_in ? 200 : 2048, batch = stand_in ? 1 : 2;
  for (const std::int64_t width : {64, 128}) {
    for (const float p : {0.0f, 0.1f}) {
      const AttentionShape shape{.sq = length,
                                 .sk = length,
                                 .b = batch,
                                 .a = 4,
                                 .a_kv = 2,
                                 .d = width,
                                 .p = p,
                                 .scale = 1 / std::sqrt(double(width))};
      const OperationCase one = backward_case(GetParam(), shape);
      const CaseResults want = run_case(unfused.set(), unfused.device(), one, DType::f32), got = run(one);
      for (const auto& [name, values] : want) {
        double largest = 0;
        for (const double value : values) largest = std::max(largest, std::abs(value));
        const double allowed = 2 * attention_tolerance(GetParam()) * largest;
        for (std::size_t i = 0; i < values.size(); ++i)
          ASSERT_LE(std::abs(values[i] - got.at(name)[i]), allowed)
              << one.name << ", " << name << " " << i; // NaN fails
      }
      EXPECT_TRUE(got == run(one)) << one.name;
    }
  }
}

/// Results of every tile width and type, written to a file.
void write_results(LoadedKernels& tested, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t width : {32, 64, 96, 128, 256}) {
      for (const float p : {0.0f, 0.25f}) {
        const AttentionShape shape{.sq = 70, .sk = 75, .b = 2, .a = 4, .a_kv = 2, .d = width, .p = p, .lengths = true};
        const OperationCase one = backward_case(type, shape);
        for (const auto& [name, values] : run_case(tested.set(), tested.device(), one, type))
          out.write(reinterpret_cast<const char*>(values.data()),
                    static_cast<std::streamsize>(values.size() * sizeof(double)));
      }
    }
  }
}

/// GPUs of compute capability 8.6, 8.9 and 12.x allow a block 99 KiB of shared memory, and sm_80 163 KiB.
TEST_F(OnGpu, AttentionGivesTheSameBitsInLessSharedMemory) {
  if (!is_gpu_stand_in(tested->device())) GTEST_SKIP() << "a GPU has the shared memory that it has";
  constexpr const char* kFile = "TRIAX_TEST_ATTENTION_FILE"; // set in the process with less shared memory
  if (const char* file = std::getenv(kFile)) return write_results(*tested, file);
  const TempFolder work;
  const std::string large = (work / "large").string(), small = (work / "small").string();
  write_results(*tested, large);
  const Outcome outcome =
      run_command(text("TRIAX_GPU_SHARED_MEMORY=99K {}='{}' '{}' --gtest_filter=OnGpu.AttentionGivesTheSameBits* 2>&1",
                       kFile, small, std::filesystem::read_symlink("/proc/self/exe").string()));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_GT(std::filesystem::file_size(large), 1u << 20);
  EXPECT_TRUE(read_file(small) == read_file(large));
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionOnGpu, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

} // namespace
} // namespace triax::kernels_fused
