// The plugin on any machine: what it says of itself, what it refuses, and how a run that names it is refused where
// there is no driver.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/program.hpp"
#include "on_gpu.hpp"
#include "support/places.hpp"
#include "support/temp_folder.hpp"

namespace triax::cublas {
namespace {

using ::testing::HasSubstr;

class Plugin : public ::testing::Test {
 protected:
  plugin::Instance<KernelSet> make() {
    options_.set("tf32", false);
    return plugin::create<KernelSet>(plugin::load(test::plugin_file("kernels-cublas"), "kernels"),
                                     {options_, null_log(), layout_, 0, 1});
  }
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
};

TEST_F(Plugin, LoadsWithoutADriverAndSaysWhatItNeeds) {
  const auto set = make();
  EXPECT_EQ(set->device_kind(), DeviceKind::cuda);
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver != 0) GTEST_SKIP() << "this machine has a CUDA driver";
  EXPECT_EQ(set->device_available({}).reason(), "no CUDA driver on this machine");
}

TEST_F(Plugin, TakesThreeTypesAndRefusesOthersInWords) {
  const auto set = make();
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    EXPECT_TRUE(set->supports(KernelRequest{.compute = type, .master = DType::f32})) << name_of(type);
  const Support doubles = set->supports(KernelRequest{.compute = DType::f64, .master = DType::f64});
  EXPECT_EQ(doubles.reason(),
            "kernels-cublas computes in f32, bf16 and f16, and what layers compute in is f64 (train.precision)");
  EXPECT_FALSE(set->supports(KernelRequest{.compute = DType::bf16, .master = DType::bf16}));
}

/// Refused before anything is launched, so on any machine.
TEST_F(Plugin, EveryOperationIsRefusedInDouble) {
  const auto set = make();
  int refused = 0;
  for (const auto& one : triax::testing::operation_cases(DType::f64)) {
    if (one.name.starts_with("step_control")) continue; // whose views are f64 in every set
    triax::testing::CaseViews views;
    for (const auto& tensor : one.tensors) {
      const DType type = tensor.kind == triax::testing::Kind::own ? tensor.dtype : DType::f64;
      views.set(tensor.name, TensorView(nullptr, type, tensor.shape));
    }
    one.build(views, triax::testing::UseCall([&](const OpCall& call) {
                const Support answer = set->supports(call);
                EXPECT_FALSE(answer) << one.name;
                EXPECT_THAT(answer.reason(), HasSubstr("is f64 (train.precision)")) << one.name;
                ++refused;
              }));
  }
  EXPECT_GT(refused, 100);
}

TEST_F(Plugin, ScratchIsThatOfTheShapeAlone) {
  const auto set = make();
  const auto view = [](Shape shape, DType type = DType::f32) { return TensorView(nullptr, type, shape); };
  const auto scratch = [&](const auto& args) { return set->scratch_bytes(call_of(args)); };
  EXPECT_EQ(scratch(BiasBwd{view({33}), view({1, 33})}), 33 * sizeof(float));
  EXPECT_EQ(scratch(BiasBwd{view({33}), view({65, 33})}), 2 * 33 * sizeof(float));
  EXPECT_EQ(scratch(BiasBwd{view({33}), view({100'000, 33})}), 128 * 33 * sizeof(float));
  EXPECT_EQ(scratch(SumSquares{view({1}, DType::f64), view({16 * 1024 + 1})}), 2 * sizeof(double));
  const Gemm product{.d = view({2, 3}), .a = view({2, 4}), .b = view({4, 3})};
  EXPECT_EQ(scratch(product), std::size_t{32} << 20);
  EXPECT_GE(scratch(LinearFwd{.y = view({2, 3}), .x = view({2, 4}), .w = view({3, 4})}), scratch(product));
}

/// A run of one rank on this set; its data is there.
class NoDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0) GTEST_SKIP() << "this machine has a CUDA driver";
    std::string toml = test::read_file(TRIAX_SOURCE_DIR "/tests/golden/base.toml");
    test::replace_all(toml, "kernels-reference", "kernels-cublas");
    test::write_file(work_ / "run.toml", toml);
    test::write_file(work_ / "text.txt", std::string(1000, 'x'));
    ASSERT_EQ(run("data prepare --input text.txt --output text --tokenizer byte").status, 0);
  }
  test::Outcome run(const std::string& arguments, const std::string& streams = "2>&1") const {
    return test::run(work_.path(), arguments, streams);
  }
  test::TempFolder work_;
};

constexpr const char* kRefusal =
    "run.toml:19:10: kernels.plugin \"kernels-cublas\": no CUDA driver on this machine\n"
    "  install NVIDIA's driver (nvidia-smi comes with it), or use a kernel set that computes on the host; triax check "
    "--no-device leaves this machine out of the question\n";

TEST_F(NoDriver, CheckRefusesTheRunAndSaysWhere) {
  const test::Outcome refused = run("check run.toml", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.text, kRefusal);
  EXPECT_EQ(run("check run.toml", "2>/dev/null").text, "");
}

TEST_F(NoDriver, CheckOfTheRunAlonePasses) {
  const test::Outcome told = run("check run.toml --no-device");
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("lib/triax/plugins/kernels-cublas.so\n"));
  EXPECT_THAT(told.text, HasSubstr("model: 34,720 parameters"));
}

TEST_F(NoDriver, TrainRefusesBeforeAnythingStarts) {
  const test::Outcome refused = run("train run.toml", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.text, kRefusal);
  EXPECT_FALSE(std::filesystem::exists(work_ / "runs"));
}

TEST_F(NoDriver, OtherRefusalsComeWithIt) {
  const test::Outcome refused = run("check run.toml --set parallel.tensor=2 --set log.timeline=3", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("no CUDA driver on this machine"));
  EXPECT_THAT(refused.text, HasSubstr("the kernel set's device is cuda")) << "comm-local";
  EXPECT_THAT(refused.text,
              HasSubstr("log.timeline = 3 (--set): kernels.plugin \"kernels-cublas\" computes on a cuda device"));
}

TEST_F(NoDriver, DescribeAndListNeedNone) {
  const test::Outcome described = run("plugins describe kernels-cublas");
  EXPECT_EQ(described.status, 0) << described.text;
  EXPECT_THAT(described.text, HasSubstr("tf32"));
  const test::Outcome listed = run("plugins list");
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.text, HasSubstr("kernels-cublas"));
}

} // namespace
} // namespace triax::cublas
