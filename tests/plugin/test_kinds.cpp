// SPDX-License-Identifier: Apache-2.0
// The table of kinds, and which versions of an interface are accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/loader.hpp"
#include "plugin/plugin_kinds.hpp"
#include "triax/version.h"

namespace triax::plugin {

namespace {

using testing::HasSubstr;

TEST(PluginKinds, EachIsFoundByItsName) {
  EXPECT_EQ(plugin_kind_names(), "communicator, scheduler, kernels, model, optimizer, planner");
  for (const PluginKind& kind : plugin_kinds()) EXPECT_EQ(find_plugin_kind(kind.name), &kind);
  EXPECT_EQ(find_plugin_kind("tokenizer"), nullptr);
}

TEST(PluginKinds, BeforeOneEachAcceptsItsOwnVersionOnly) {
  if (!std::string_view(TRIAX_VERSION).starts_with("0.")) GTEST_SKIP() << "this is " TRIAX_VERSION;
  for (const PluginKind& kind : plugin_kinds()) EXPECT_EQ(kind.oldest_version, kind.version) << kind.name;
}

TEST(PluginKinds, VersionsFromTheOldestToTheCurrentAreAccepted) {
  PluginKind kind = *find_plugin_kind("scheduler");
  kind.oldest_version = 3;
  kind.version = 5;
  for (const std::uint32_t version : {3U, 4U, 5U}) EXPECT_TRUE(check_interface_version(kind, version).empty());
  const Refusals older = check_interface_version(kind, 2), newer = check_interface_version(kind, 6);
  ASSERT_EQ(older.size(), 1U);
  EXPECT_EQ(older.front().message,
            "it is built for version 2 of the scheduler interface; this triax has versions 3 to 5");
  EXPECT_THAT(older.front().hint, HasSubstr("docs/plugins/changelog.md"));
  ASSERT_EQ(newer.size(), 1U);
  EXPECT_THAT(newer.front().hint, HasSubstr("use the Triax that it was built for"));
}

TEST(CoreSoname, HasTheMinorVersionBeforeOneOnly) {
  EXPECT_EQ(core_soname("0.1.0"), "libtriax_core.so.0.1");
  EXPECT_EQ(core_soname("0.12.3"), "libtriax_core.so.0.12");
  EXPECT_EQ(core_soname("1.0.0"), "libtriax_core.so.1");
  EXPECT_EQ(core_soname("12.3.4"), "libtriax_core.so.12");
}

} // namespace

} // namespace triax::plugin
