// SPDX-License-Identifier: Apache-2.0
// Listing and describing plugins loads and creates them in a separate process; a crash does not affect this one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "plugin/describe.hpp"
#include "scratch.hpp"
#include "triax/error.hpp"
#include "triax/version.h"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

class List : public testing::Test {
 protected:
  fs::path put(const fs::path& folder, const char* fixture) {
    fs::create_directories(scratch_ / folder);
    const fs::path file = scratch_ / folder / (std::string(fixture) + ".so");
    fs::copy_file(fs::path(FIXTURES) / file.filename(), file);
    return file;
  }
  std::vector<Row> listed(const std::vector<SearchFolder>& folders) {
    return list(folders, {std::chrono::milliseconds(500), std::chrono::seconds(10)});
  }
  Scratch scratch_;
};

TEST_F(List, ACrashIsARow) {
  put("a", "honest");
  put("a", "killed");
  put("a", "leaves");
  put("a", "bad-magic");
  const auto rows = listed({{scratch_ / "a", ""}});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].name, "bad-magic");
  EXPECT_EQ(rows[0].problem, "its descriptor does not begin with the magic number of the plugin ABI");
  EXPECT_EQ(rows[1].name, "honest");
  EXPECT_EQ(rows[1].problem, "");
  EXPECT_EQ(rows[1].kind, "scheduler");
  EXPECT_EQ(rows[1].version, "1.2.3");
  EXPECT_EQ(rows[1].description, "a fixture");
  EXPECT_EQ(rows[2].problem, "its library initializer was killed by SIGKILL (Killed)");
  EXPECT_EQ(rows[3].problem, "its library initializer called exit(0)");
}

TEST_F(List, TheFirstInPathOrderShadowsTheOthers) {
  const fs::path first = put("b", "honest");
  const fs::path second = put("a", "honest");
  const auto rows =
      listed({{scratch_ / "b", ""}, {scratch_ / "gone", ""}, {scratch_ / "a", ""}, {scratch_ / "b", "once more"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].file, first);
  EXPECT_EQ(rows[0].shadowed_by, "");
  EXPECT_THAT(rows[0].shadows, testing::ElementsAre(second));
  EXPECT_EQ(rows[1].file, second);
  EXPECT_EQ(rows[1].shadowed_by, first);
  EXPECT_THAT(rows[1].shadows, testing::IsEmpty());
  const Found found = find("honest", {{scratch_ / "b", ""}, {scratch_ / "a", ""}, {scratch_ / "b", "once more"}});
  EXPECT_EQ(found.file, first);
  EXPECT_THAT(found.shadowed, testing::ElementsAre(second));
  const std::string json = to_json(rows);
  EXPECT_THAT(json, testing::HasSubstr("\"shadowed_by\": \"" + first.string()));
  EXPECT_THAT(json, testing::HasSubstr("\"shadows\": [\n        \"" + second.string()));
}

TEST_F(List, APluginThatCannotBeMadeIsBroken) {
  put("a", "crashing-create");
  put("a", "leaving-create");
  put("a", "looping-create");
  put("a", "throwing-create");
  put("a", "described");
  const auto rows = listed({{scratch_ / "a", ""}});
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].problem, "its constructor crashed with SIGSEGV (Segmentation fault)");
  EXPECT_EQ(rows[1].problem, "") << "an option of it has no default";
  EXPECT_EQ(rows[2].problem, "its constructor called exit(3); it printed: no licence found");
  EXPECT_EQ(rows[3].problem, "its constructor did not return within 0.5 s");
  EXPECT_EQ(rows[4].problem, "throwing-create could not be created: the fixture: no schedule today");
}

TEST_F(List, ADanglingSymlinkIsBrokenAndShadows) {
  const fs::path second = put("a", "honest");
  fs::create_directory(scratch_ / "b");
  fs::create_symlink("gone.so", scratch_ / "b" / "honest.so");
  const auto rows = listed({{scratch_ / "b", ""}, {scratch_ / "a", ""}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].problem, "is a dangling symlink to gone.so");
  EXPECT_THAT(rows[0].shadows, testing::ElementsAre(second));
  EXPECT_EQ(rows[1].shadowed_by, scratch_ / "b" / "honest.so");
}

TEST(Describe, ReportsAllOfAPlugin) {
  const auto description = describe(fs::path(FIXTURES) / "described.so");
  ASSERT_NE(description.library, nullptr);
  EXPECT_EQ(description.problem, "");
  const std::string json = to_json(description);
  for (const char* part :
       {R"("name": "described")", R"("kind": "scheduler")", R"("description": "a fixture with \"quotes\"")",
        R"("interface_version": 2)", R"("type": "list of int")", R"("default": "[1, 2]")", R"("required": true)",
        R"("choices": "spin|yield")", R"("note": "triax=)", R"("abi": "1.1")"}) {
    EXPECT_THAT(json, testing::HasSubstr(part));
  }
}

TEST(Describe, ReportsTheReadablePartsOfABrokenPlugin) {
  const auto description = describe(fs::path(FIXTURES) / "unresolved-symbol.so");
  EXPECT_EQ(description.library, nullptr);
  EXPECT_EQ(description.note.triax, "0.0.9");
  EXPECT_THAT(description.problem,
              testing::HasSubstr("undefined symbol triax::what_this_engine_lacks(triax::Action const&)"));
  EXPECT_THAT(description.needed, testing::Contains(testing::StartsWith("libtriax_core.so")));
}

TEST(Describe, DoesNotLoadWhatIsRejectedInAChild) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no exception passes through a sanitizer's dlopen()";
#endif
  setenv("TRIAX_FIXTURE_PROCESS", std::to_string(getpid()).c_str(), 1);
  const auto described = describe(fs::path(FIXTURES) / "rejected-elsewhere.so");
  EXPECT_EQ(described.library, nullptr);
  EXPECT_TRUE(described.is_library);
  EXPECT_THAT(described.problem, testing::HasSubstr("its library initializer threw an exception: not here"));
}

TEST(Describe, SaysThatTheConstructorCrashes) {
  const fs::path file = fs::path(FIXTURES) / "crashing-create.so";
  const auto described = describe(file);
  EXPECT_EQ(described.library, nullptr);
  EXPECT_EQ(described.note.triax, TRIAX_VERSION);
  EXPECT_THAT(described.problem,
              testing::StartsWith(file.string() + ": its constructor crashed with SIGSEGV (Segmentation fault)\n"
                                                  "  this is a defect of the plugin: "));
  EXPECT_THAT(described.problem, testing::HasSubstr("--args triax plugins describe " + file.string()));
}

} // namespace

} // namespace triax::plugin
