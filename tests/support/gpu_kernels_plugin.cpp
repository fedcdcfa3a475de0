// SPDX-License-Identifier: Apache-2.0
// A GPU kernel set on any machine: its description, its refusals, and the refusal of a run without a driver.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/installation.hpp"
#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

using ::testing::HasSubstr;

class Plugin : public ::testing::Test {
 protected:
  plugin::Instance<KernelSet> make() {
    const plugin::Library& library = plugin::load(test::plugin_file(TRIAX_KERNELS), "kernels");
    options_ = default_options(library);
    return plugin::create<KernelSet>(library, {options_, null_log(), layout_, 0, 1});
  }
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
};

TEST_F(Plugin, LoadsWithoutADriverAndReportsThatItIsMissing) {
  const auto set = make();
  EXPECT_EQ(set->device_kind(), DeviceKind::cuda);
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver != 0) GTEST_SKIP() << "this machine has a CUDA driver";
  EXPECT_EQ(set->device_available({}).front().message, "no CUDA driver on this machine");
}

TEST_F(Plugin, AcceptsThreeTypesAndRefusesOthers) {
  const auto set = make();
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    EXPECT_TRUE(set->supports(KernelRequest{.compute = type, .master = DType::f32}).empty()) << name_of(type);
  const Refusals doubles = set->supports(KernelRequest{.compute = DType::f64, .master = DType::f64});
  EXPECT_EQ(doubles.front().message, TRIAX_KERNELS " computes in fp32, bf16 and fp16, but the compute type is fp64");
  EXPECT_FALSE(set->supports(KernelRequest{.compute = DType::bf16, .master = DType::bf16}).empty());
}

/// Refused before any launch, so on any machine.
TEST_F(Plugin, EveryOperationIsRefusedInDouble) {
  const auto set = make();
  int refused = 0;
  for (const auto& one : operation_cases(DType::f64)) {
    if (one.name.starts_with("step_control")) continue; // its views are f64 in every set
    CaseViews views;
    for (const auto& tensor : one.tensors) {
      const DType type = tensor.kind == Kind::own ? tensor.dtype : DType::f64;
      views.set(tensor.name, TensorView(nullptr, type, tensor.shape));
    }
    one.build(views, UseCall([&](const OpCall& call) {
                const Refusals answer = set->supports(call);
                EXPECT_FALSE(answer.empty()) << one.name;
                EXPECT_THAT(answer.front().message, HasSubstr("is fp64")) << one.name;
                ++refused;
              }));
  }
  EXPECT_GT(refused, 100);
}

/// A run of one rank on this kernel set, with its data.
class NoDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0) GTEST_SKIP() << "this machine has a CUDA driver";
    std::string toml = test::read_file(test::test_file("base.toml"));
    test::replace_all(toml, "kernels-reference", TRIAX_KERNELS);
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
    "run.toml:19:10: kernels.plugin \"" TRIAX_KERNELS
    "\": no CUDA driver on this machine\n"
    "  install NVIDIA's driver (nvidia-smi comes with it), or use a kernel set that computes on the host";

TEST_F(NoDriver, CheckRefusesTheRunAndSaysWhere) {
  const test::Outcome refused = run("check run.toml", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.text, kRefusal + std::string("; triax check --no-device skips the checks of this machine\n"));
  EXPECT_EQ(run("check run.toml", "2>/dev/null").text, "");
}

TEST_F(NoDriver, CheckOfTheRunAlonePasses) {
  const test::Outcome outcome = run("check run.toml --no-device");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("lib/triax/plugins/" TRIAX_KERNELS ".so\n"));
  EXPECT_THAT(outcome.text, HasSubstr("model: 34,720 parameters"));
  EXPECT_THAT(outcome.text, HasSubstr("run.toml: configuration is valid; the devices and memory of this machine"));
}

TEST_F(NoDriver, TrainRefusesBeforeAnythingStarts) {
  const test::Outcome refused = run("train run.toml", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.text, kRefusal + std::string("\n"));
  EXPECT_FALSE(std::filesystem::exists(work_ / "runs"));
}

TEST_F(NoDriver, OtherRefusalsComeWithIt) {
  const test::Outcome refused = run("check run.toml --set parallel.tensor=2 --set log.timeline=3", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("no CUDA driver on this machine"));
  EXPECT_THAT(refused.text, HasSubstr("the kernel set's device is CUDA")) << "comm-local";
  EXPECT_THAT(refused.text,
              HasSubstr("log.timeline = 3: kernels.plugin \"" TRIAX_KERNELS "\" computes on a CUDA device"));
}

TEST_F(NoDriver, TheConformanceSuiteRunsOnTheGpuStandIn) {
  const test::Outcome outcome = run("plugins test " TRIAX_KERNELS " --filter Device.IsOfTheKind");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("1 check of " TRIAX_KERNELS ", on the GPU stand-in: no GPU on this machine\n"));
}

TEST_F(NoDriver, DescribeAndListNeedNone) {
  const test::Outcome described = run("plugins describe " TRIAX_KERNELS);
  EXPECT_EQ(described.status, 0) << described.text;
  EXPECT_THAT(described.text, HasSubstr("tf32"));
  const test::Outcome listed = run("plugins list");
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.text, HasSubstr(TRIAX_KERNELS));
}

} // namespace
} // namespace triax::test
