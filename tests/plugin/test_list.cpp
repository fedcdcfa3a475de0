// Listing loads strangers in a process of their own; this one survives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "plugin/describe.hpp"
#include "plugin/helper.hpp"
#include "scratch.hpp"
#include "triax/error.hpp"

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
  std::vector<Row> listed(const std::vector<SearchFolder>& folders) { return list(folders, {HELPER}); }
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
  EXPECT_EQ(rows[0].problem, "its descriptor does not begin with the door's magic number");
  EXPECT_EQ(rows[1].name, "honest");
  EXPECT_EQ(rows[1].problem, "");
  EXPECT_EQ(rows[1].kind, "scheduler");
  EXPECT_EQ(rows[1].version, "1.2.3");
  EXPECT_EQ(rows[1].description, "a fixture");
  EXPECT_EQ(rows[2].problem, "does not load: killed by signal 9 (Killed)");
  EXPECT_EQ(rows[3].problem, "does not load: the process that tried it ended with status 0");
}

TEST_F(List, TheFirstInPathOrderShadowsTheOthers) {
  const fs::path first = put("b", "honest");
  const fs::path second = put("a", "honest");
  const auto rows =
      listed({{scratch_ / "b", ""}, {scratch_ / "gone", ""}, {scratch_ / "a", ""}, {scratch_ / "b", "once more"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].file, first);
  EXPECT_EQ(rows[0].shadowed_by, "");
  EXPECT_EQ(rows[1].file, second);
  EXPECT_EQ(rows[1].shadowed_by, first);
  EXPECT_EQ(find("honest", {{scratch_ / "b", ""}, {scratch_ / "a", ""}}), first);
}

TEST(Describe, TellsAllOfAPlugin) {
  const auto told = describe(fs::path(FIXTURES) / "told.so");
  ASSERT_NE(told.library, nullptr);
  EXPECT_EQ(told.problem, "");
  const std::string json = to_json(told);
  for (const char* part :
       {R"("name": "told")", R"("kind": "scheduler")", R"("description": "a fixture with \"quotes\"")",
        R"("interface_version": 1)", R"("type": "list of int")", R"("default": "[1, 2]")", R"("required": true)",
        R"("choices": "spin|yield")", R"("note": "triax=)", R"("door": "1.0")"}) {
    EXPECT_THAT(json, testing::HasSubstr(part));
  }
}

TEST(Describe, TellsWhatItCanOfABrokenOne) {
  const auto told = describe(fs::path(FIXTURES) / "unresolved-symbol.so");
  EXPECT_EQ(told.library, nullptr);
  EXPECT_EQ(told.note.triax, "0.0.9");
  EXPECT_THAT(told.problem, testing::HasSubstr("undefined symbol triax::what_this_engine_lacks(triax::Action const&)"));
  EXPECT_THAT(told.needed, testing::Contains(testing::StartsWith("libtriax_core.so")));
}

TEST(Helper, ReadsWhatIsPrintedAndTheStatus) {
  const auto result = run_helper({"/bin/sh", "-c", "echo one; echo two >&2; exit 3"});
  EXPECT_EQ(result.output, "one\n");
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.failure, "");
}

TEST(Helper, EndsWhatDoesNotAnswer) {
  const auto result = run_helper({"/bin/sh", "-c", "exec sleep 1000"}, std::chrono::seconds(1));
  EXPECT_EQ(result.failure, "no answer after 1 s");
}

TEST(Helper, SaysWhatCouldNotBeStarted) {
  EXPECT_THROW(run_helper({"/no/such/program"}), Error);
}

} // namespace

} // namespace triax::plugin
