// SPDX-License-Identifier: Apache-2.0
// The changes of interfaces are read from docs/plugins/changelog.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/interface_changes.hpp"
#include "plugin/plugin_kinds.hpp"

namespace triax::doctor {

namespace {

using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kPage = R"(# Changes
Text.
- not below a heading of versions

## Unreleased

### scheduler 3, model 12

- `rows()` returns a `Table`. It has
  more columns.

  | before | now |
  |---|---|
  | a | b |

- Two lines
  in one sentence.

### scheduler 2

- An older one.
)";

std::vector<std::string> texts(std::string_view kind, std::uint32_t from, std::uint32_t to) {
  std::vector<std::string> out;
  for (const InterfaceChange& change : interface_changes(kPage, kind, from, to))
    out.push_back(std::to_string(change.version) + ": " + change.text);
  return out;
}

TEST(InterfaceChanges, AreThoseBetweenTwoVersions) {
  EXPECT_THAT(texts("scheduler", 1, 3), testing::ElementsAre("3: `rows()` returns a `Table`.",
                                                             "3: Two lines in one sentence.", "2: An older one."));
  EXPECT_THAT(texts("scheduler", 2, 3), testing::SizeIs(2));
  EXPECT_THAT(texts("scheduler", 1, 2), testing::ElementsAre("2: An older one."));
  EXPECT_THAT(texts("model", 3, 12), testing::SizeIs(2));
  EXPECT_THAT(texts("scheduler", 3, 3), IsEmpty());
  EXPECT_THAT(texts("kernels", 0, 9), IsEmpty());
}

/// Who raises the version of an interface says what changed.
TEST(InterfaceChanges, ThePageHasTheCurrentVersionOfEachKind) {
  for (const plugin::PluginKind& kind : plugin::plugin_kinds())
    EXPECT_THAT(interface_changes(kind.name, kind.version - 1, kind.version), Not(IsEmpty()))
        << "docs/plugins/changelog.md needs a heading with " << kind.name << " " << kind.version;
}

} // namespace

} // namespace triax::doctor
