// SPDX-License-Identifier: Apache-2.0
// Plugins compiled against the frozen ABI 1.0 load in today's core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/describe.hpp"
#include "plugin/loader.hpp"
#include "triax/optimizer.hpp"
#include "triax/scheduler.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

std::string error_of(const fs::path& file, std::string_view kind) {
  try {
    load(file, kind);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Abi10, APluginInCIsReadAndDescribed) {
  const Library& library = load(C_PLUGIN, "");
  EXPECT_STREQ(library.descriptor->name, "c-plugin");
  ASSERT_EQ(library.options.size(), 2U);
  EXPECT_STREQ(library.options[1].choices, "spin|yield");
  EXPECT_EQ(describe(C_PLUGIN).problem, "");
}

TEST(Abi10, APluginInCIsNotTakenForAScheduler) {
  EXPECT_EQ(error_of(C_PLUGIN, "scheduler"), C_PLUGIN
            ": the descriptor of c-plugin is written in C and cannot create a C++ object: a scheduler is a C++ class\n"
            "  compile the file with the descriptor as C++");
  const Options options;
  const Layout layout;
  EXPECT_THROW(create_object(load(C_PLUGIN, ""), PluginContext{options, null_log(), layout}), Error);
}

TEST(Abi10, APluginInCxxWorks) {
  const Options options;
  const Layout layout = Layout::ptd(4, 1, 1);
  const Library& library = load(CXX_PLUGIN, "scheduler");
  const auto scheduler = create<Scheduler>(library, PluginContext{options, null_log(), layout, 3});
  EXPECT_EQ(scheduler->supports({}).front().message, "ABI 1.0 works");
  EXPECT_THROW(create<Scheduler>(library, PluginContext{options, null_log(), layout, 2}), Error);
}

/// Fields at the end of a struct that the core passes by reference do not break a plugin without them.
TEST(OlderInterface, APluginWithoutTheNewestFieldOfItsRequestWorks) {
  const Options options;
  const Layout layout = Layout::ptd(1, 1, 1);
  const Library& library = load(OLDER_OPTIMIZER, "optimizer");
  const auto optimizer = create<Optimizer>(library, PluginContext{options, null_log(), layout});
  EXPECT_TRUE(optimizer->supports({.master = DType::f64, .device = DeviceKind::cuda}).empty());
  EXPECT_EQ(optimizer->supports({.master = DType::f32, .device = DeviceKind::cuda}).front().message, "f64 only");
  EXPECT_THAT(optimizer->traits().state, testing::ElementsAre("momentum"));
}

} // namespace

} // namespace triax::plugin
