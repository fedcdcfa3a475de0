// SPDX-License-Identifier: Apache-2.0
// memory.offload = "optimizer" on a device that is not the host: runs that the host cannot update. tests/equality
// trains the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/preflight_run.hpp"

namespace triax {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HostUpdatePlan : public test::PreflightTest {
 protected:
  HostUpdatePlan() {
    run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
    run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
    run_.keys["memory.offload"] = "\"optimizer\"";
    run_.keys["train.precision"] = "\"bf16\"";
  }
  /// Reasons that name a key of offloaded state.
  std::vector<std::string> of_offload() {
    std::vector<std::string> out;
    for (const std::string& refusal : refusals())
      if (refusal.find("memory.offload") != std::string::npos) out.push_back(refusal);
    return out;
  }
};

/// The host updates the weights of a device.
TEST_F(HostUpdatePlan, RefusesWhatTheHostCannotUpdate) {
  EXPECT_THAT(of_offload(), IsEmpty());
  struct Refused {
    const char *key, *value, *reason;
  };
  for (const Refused& of :
       {Refused{"train.precision", "\"fp32\"", "train.precision = \"fp32\" layers read the master weights"},
        Refused{"train.cuda_graph", "true", "train.cuda_graph cannot be combined with memory.offload"},
        Refused{"optimizer.plugin", "\"optim-lamb\"", "\"optim-lamb\" needs values of whole parameters"},
        Refused{"memory.offload_kernels", "\"kernels-elsewhere\"", "does not compute on the CPU"},
        Refused{"memory.offload_kernels", "\"kernels-reference\"", "with master weights in fp32 was requested"}}) {
    SCOPED_TRACE(of.key);
    const auto before = run_.keys;
    run_.keys[of.key] = of.value;
    const std::vector<std::string> reasons = of_offload();
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_THAT(reasons.front(), HasSubstr(of.reason));
    run_.keys = before;
  }
}

/// The training would be another one than the file says.
TEST_F(HostUpdatePlan, RefusesDelayedUpdatesWithoutAHostThatUpdates) {
  run_.keys["memory.offload_delayed_update"] = "true";
  EXPECT_THAT(of_offload(), IsEmpty());
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  const std::vector<std::string> on_cpu = of_offload();
  ASSERT_EQ(on_cpu.size(), 1u);
  EXPECT_THAT(on_cpu.front(),
              HasSubstr("memory.offload_delayed_update = true: kernels.plugin \"kernels-cpu\" computes"));
  run_.keys["memory.offload"] = "\"disk\"";
  const config::LoadResult loaded = run_.load();
  ASSERT_EQ(loaded.refusals.size(), 1u);
  EXPECT_THAT(loaded.refusals.front().text,
              HasSubstr("needs a host that updates the weights, but memory.offload = \"disk\""));
}

/// Its state and master weights are not on the device.
TEST_F(HostUpdatePlan, HasTheStateOnTheHost) {
  const config::RunConfig config = run_.config();
  const train::Preflight planned = train::preflight(config, train::choose_placement(config), null_log());
  ASSERT_FALSE(planned.plans.empty());
  std::size_t hosted = 0;
  for (const train::MemoryRow& row : planned.plans.front().memory) {
    if (row.what == "optimizer state" && row.is_on_host) hosted = row.bytes;
    if (row.what == "weights" || (row.what == "optimizer state" && !row.is_on_host)) {
      EXPECT_EQ(row.bytes, 0u) << row.what;
    }
    EXPECT_NE(row.what, "checkpoint staging"); // a checkpoint is written from the state
  }
  EXPECT_GE(hosted, 12 * static_cast<std::size_t>(planned.parameters));
}

} // namespace
} // namespace triax
