// SPDX-License-Identifier: Apache-2.0
// With tensor size, data size and microbatch size fixed, pipeline size, chunks and schedule do not change a bit
// (docs/adr/0001), and neither does a second run. Every case is compared with GPipe on one pipeline rank, shard by
// shard: losses, norms, the loss on held-out samples, the gradients of the last step and the weights after it.
#include <gtest/gtest.h>

#include "equality/same_bits.hpp"
#include "support/fake_cuda_device.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

/// With clipping and weight decay, so that their inputs must be equal too.
const Training kTraining{.clip_grad = 0.1};

struct Sizes {
  int tensor = 1, data = 1;
};

class SameBits : public testing::TestWithParam<Sizes> {};

TEST_P(SameBits, AnyPipelineChunksAndSchedule) {
  const std::vector<Case> cases = pipeline_cases(GetParam().tensor, GetParam().data);
  ASSERT_FALSE(cases.empty());
  for (const Case& run : cases) {
    expect_as_expected(run, kTraining);
    if (HasFailure()) break; // the other cases would fail too
  }
}

INSTANTIATE_TEST_SUITE_P(At, SameBits,
                         testing::Values(Sizes{1, 1}, Sizes{2, 1}, Sizes{4, 1}, Sizes{1, 2}, Sizes{2, 2}, Sizes{4, 2},
                                         Sizes{1, 3}, Sizes{2, 3}, Sizes{4, 3}),
                         [](const auto& of) { return text("t{}_d{}", of.param.tensor, of.param.data); });

TEST(SameBits, InBf16) {
  Training bf16 = kTraining;
  bf16.precision = "bf16";
  for (const Case& run :
       {Case{4, 1, 1, 1, "sched-zb-h1", 1, 6, "kernels-cpu"},
        Case{2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-cpu"}, Case{3, 2, 1, 1, "sched-1f1b", 1, 4, "kernels-cpu"},
        Case{.pipeline = 2, .tensor = 4, .kernels = "kernels-cpu", .scatter_gather = true}})
    expect_as_expected(run, bf16);
}

/// The first steps overflow, in every layout.
TEST(SameBits, InFp16) {
  Training fp16 = kTraining;
  fp16.precision = "fp16";
  fp16.initial_scale = 0x1p23;
  fp16.steps = 5;
  for (const Case& run : {Case{4, 1, 1, 1, "sched-zb-h1", 1, 6, "kernels-cpu"},
                          Case{2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-cpu"},
                          Case{3, 2, 1, 1, "sched-1f1b", 1, 4, "kernels-cpu"}}) {
    expect_as_expected(run, fp16);
    const KeptRank& one = expected(run, fp16).front();
    EXPECT_TRUE(one.skipped.front()) << to_text(run);
    EXPECT_FALSE(one.skipped.back()) << to_text(run);
  }
}

#ifdef TRIAX_WITH_UCX
/// The tensor and data axes use comm-local.
TEST(SameBits, WithABackendForThePipelineAlone) {
  Training mixed = kTraining;
  mixed.pipeline_comm = "comm-ucx";
  for (const Case& run : {Case{2, 2, 1, 2, "sched-interleaved", 1, 4, "kernels-reference"},
                          Case{2, 2, 2, 1, "sched-1f1b", 1, 4, "kernels-cpu"},
                          Case{.pipeline = 2, .tensor = 4, .scheduler = "sched-zb-h1", .scatter_gather = true}})
    expect_as_expected(run, mixed);
}
#endif

/// A device with delays, whose memory the host cannot access, must give the same results as the host.
void expect_as_on_the_host(Case run, const Training& training) {
  const Ranks& host = expected(run, kTraining);
  run.kernels = "kernels-fake-cuda";
  expect_as_expected(run, training, &host);
}

TEST(SameBits, OnADeviceThatIsLate) {
  for (const Case& run : {Case{1, 1, 1, 3, "sched-interleaved", 2, 4, "kernels-reference"},
                          Case{1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-reference"}})
    expect_as_on_the_host(run, kTraining);
}

#ifdef TRIAX_WITH_UCX
/// Device memory is staged through pinned host memory, while kernels have delays.
TEST(SameBits, OnDevicesThatAreLateThroughUcx) {
  Training ucx = kTraining;
  ucx.comm = "comm-ucx";
  for (const Case& run :
       {Case{2, 2, 2, 1, "sched-1f1b", 1, 4, "kernels-reference"},
        Case{.pipeline = 2, .tensor = 2, .chunks = 2, .scheduler = "sched-zb-v", .scatter_gather = true}})
    expect_as_on_the_host(run, ucx);
}
#endif

/// As for kernels that are loaded at their first launch (triax/lazy_load_guard.hpp): once in training, once in
/// evaluation.
TEST(SameBits, WhereDevicesLoadModulesLate) {
  const Case run{1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-fake-cuda"};
  const int before = test::fake_first_uses();
  train(run, kTraining);
  EXPECT_EQ(test::fake_first_uses(), before + 2);
}

/// The third step is captured. It, the two after it and an evaluation in between must equal uncaptured ones.
TEST(SameBits, WhereAStepIsRecorded) {
  Training walked = kTraining;
  walked.steps = 5;
  Training recorded = walked;
  recorded.cuda_graph = true;
  for (const Case& run : {Case{1, 1, 1, 3, "sched-interleaved", 2, 4, "kernels-fake-cuda"},
                          Case{1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-fake-cuda"}}) {
    const int before = test::fake_recordings_launched();
    const Ranks expected_bits = train(run, walked);
    EXPECT_EQ(test::fake_recordings_launched(), before);
    expect_as_expected(run, recorded, &expected_bits);
    EXPECT_EQ(test::fake_recordings_launched(), before + 3);
  }
}

TEST(SameBits, RunAgain) {
  for (const char* kernels : {"kernels-reference", "kernels-cpu"}) {
    const Case run{2, 2, 2, 2, "sched-interleaved", 1, 4, kernels};
    const Ranks one = train(run, kTraining), again = train(run, kTraining);
    for (std::size_t rank = 0; rank < one.size(); ++rank) {
      SCOPED_TRACE(text("{}, rank {}", to_text(run), rank));
      expect_same(one[rank], again[rank]);
    }
  }
}

} // namespace
} // namespace triax::equality
