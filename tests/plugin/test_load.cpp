// SPDX-License-Identifier: Apache-2.0
// Loading valid plugins, and creating their objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "plugin/loader.hpp"
#include "scratch.hpp"
#include "triax/scheduler.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

TEST(Load, ASecondLoadIsTheFirst) {
  const Library& first = load(fixture("honest"), "scheduler");
  EXPECT_EQ(&load(fixture("honest"), ""), &first);
  EXPECT_EQ(&load(fs::path(FIXTURES) / "." / "honest.so", "scheduler"), &first);
  EXPECT_STREQ(first.descriptor->name, "honest");
  EXPECT_EQ(first.file, fixture("honest"));
}

TEST(Load, ManyThreadsAtOnceLoadOnce) {
  std::vector<const Library*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& slot : seen) threads.emplace_back([&slot] { slot = &load(fixture("described"), "scheduler"); });
  }
  EXPECT_THAT(seen, testing::Each(seen.front()));
}

TEST(Load, RefusesASymlinkOfAnotherName) {
  const Scratch scratch;
  load(fixture("honest"), "");
  fs::create_symlink(fixture("honest"), scratch / "alias.so");
  EXPECT_THROW(load(scratch / "alias.so", ""), Error);
  fs::create_symlink(fixture("honest"), scratch / "honest.so");
  EXPECT_STREQ(load(scratch / "honest.so", "").descriptor->name, "honest");
}

TEST(Load, FieldsOfALaterMinorAreNotRead) {
  const Library& grown = load(fixture("grown"), "scheduler");
  EXPECT_EQ(grown.descriptor->abi_minor, 7U);
  ASSERT_EQ(grown.options.size(), 3U);
  EXPECT_STREQ(grown.options[0].name, "depth");
  EXPECT_STREQ(grown.options[1].name, "share");
  EXPECT_STREQ(grown.options[2].name, "wait");
  EXPECT_EQ(grown.options[2].default_value, nullptr);
}

TEST(Load, FindsAnOptionByItsName) {
  const Library& grown = load(fixture("grown"), "scheduler");
  EXPECT_EQ(find_option(grown, "share"), &grown.options[1]);
  EXPECT_EQ(find_option(grown, "shar"), nullptr);
}

TEST(Create, HandsOverTheContext) {
  Options options;
  options.set("steps", std::int64_t{12});
  const Layout layout = Layout::ptd(2, 1, 3);
  const Library& library = load(fixture("described"), "scheduler");
  const auto scheduler = create<Scheduler>(library, PluginContext{options, null_log(), layout, 5, 2});
  EXPECT_EQ(scheduler->supports({}).front().message, "rank 5 of 6, steps 12, log false");
}

TEST(Create, KeepsTheTypeOfExceptionsOfAPlugin) {
  Options options;
  options.set("steps", std::int64_t{1});
  const Layout layout;
  const auto scheduler = create<Scheduler>(load(fixture("described"), ""), PluginContext{options, null_log(), layout});
  try {
    static_cast<void>(scheduler->rows({4, 1, 8}));
    FAIL() << "it did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "p = 4 is too much");
    EXPECT_EQ(error.hint(), "ask for less");
  }
}

TEST(Create, SaysWhichOptionThePluginAsksForInVain) {
  const Options none;
  const Layout layout;
  const Library& library = load(fixture("described"), "");
  try {
    create<Scheduler>(library, PluginContext{none, null_log(), layout});
    FAIL() << "it was created";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::StartsWith("described could not be created: option \"steps\" has no value"));
  }
}

} // namespace

} // namespace triax::plugin
