// SPDX-License-Identifier: Apache-2.0
// Text formatting, errors, Refusals, options, the null log, and wait deadlines.
#include <gmock/gmock.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

#include "base/caught_error.hpp"
#include "base/printable.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"
#include "triax/options.hpp"
#include "triax/text.hpp"
#include "triax/wait_deadline.hpp"

namespace triax {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Text, FillsInTheHoles) {
  EXPECT_EQ(text("m = {} is not a multiple of p = {}", 6, 4), "m = 6 is not a multiple of p = 4");
  EXPECT_EQ(text("{} {} {} {}", true, 'x', "word", std::string("more")), "true x word more");
  EXPECT_EQ(text("{}", static_cast<const char*>(nullptr)), "(null)");
  EXPECT_EQ(text("no hole"), "no hole");
}

TEST(Text, AMistakeStillShowsItsValues) {
  EXPECT_EQ(text("{}", 1, 2, 3), "1 2 3");
  EXPECT_EQ(text("{} and {}", 1), "1 and {}");
  EXPECT_EQ(text("{}", "a {} in a value"), "a {} in a value");
  EXPECT_EQ(text("{}", "a {} in a value", 2), "a {} in a value 2");
}

TEST(Text, NumbersReadBackToTheSameBits) {
  for (const double value : {0.1, 1.0 / 3, 1e300, -5e-324, 123456789.0}) {
    EXPECT_EQ(std::strtod(to_text(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(to_text(0.1f), "0.1");
  EXPECT_EQ(std::strtof(to_text(1.0f / 3).c_str(), nullptr), 1.0f / 3);
}

TEST(Printable, KnowsUtf8) {
  for (const char* good :
       {"", "plain", "\xC3\xBC", "\xE2\x82\xAC", "\xED\x9F\xBF", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\xFF", "a\x80", "\xC3", "\xC0\xAF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xE2\x82", "\xE2\x28\xA1"})
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
}

TEST(Printable, EscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("f\xC3\xBCr\t\xE2\x82\xAC"), "f\xC3\xBCr\t\xE2\x82\xAC");
  EXPECT_EQ(printable("\x1b[31mred\r\x7f\a"), "\\u001B[31mred\\u000D\\u007F\\u0007");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m\xC2\xA0"),
            "\\u009B31m\xC2\xA0");
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA9\xE2\x80\xA8\xEF\xBB\xBF\xF3\xA0\x81\x81"),
            "a\\u202Eb\\u2069\\u2028\\uFEFF\\U000E0041")
      << "text that runs backwards or is invisible";
  EXPECT_EQ(printable("\xE2\x80\x8D"), "\xE2\x80\x8D") << "a joiner";
  EXPECT_EQ(printable("a\xFF\xC3"), "a\\xFF\\xC3");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\u0000x");
}

TEST(Printable, OnlyHintsBeginALine) {
  EXPECT_EQ(printable("message\n  hint\n    more"), "message\n  hint\n    more");
  EXPECT_EQ(printable("key\nrun.toml:1:1: forged\n"), "key\\u000Arun.toml:1:1: forged\\u000A");
}

TEST(Error, IsWhereMessageAndHint) {
  const Error error("m must be a multiple of p", "run.toml:12:10", "use batch.global 16");
  EXPECT_STREQ(error.what(), "run.toml:12:10: m must be a multiple of p\n  use batch.global 16");
  EXPECT_EQ(error.message(), "m must be a multiple of p");
  EXPECT_EQ(error.where(), "run.toml:12:10");
  EXPECT_EQ(error.hint(), "use batch.global 16");
  EXPECT_STREQ(Error("alone").what(), "alone");
}

TEST(Require, ReportsTheMessageOrTheCondition) {
  const int n = 3;
  EXPECT_NO_THROW(TRIAX_REQUIRE(n == 3, "n = {}", n));
  try {
    TRIAX_REQUIRE(n == 4, "n = {}", n);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "n = 3");
    EXPECT_THAT(error.where(), HasSubstr("test_base.cpp:"));
  }
  try {
    TRIAX_REQUIRE(n == 4, "");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "n == 4 does not hold");
  }
}

TEST(Refusals, AreEmptyOrReasonsAsData) {
  Refusals all;
  EXPECT_TRUE(all.empty());
  all.add(make_refusal(ErrorCode::kOutOfRange, {"parallel.chunks"}, "chunks = {}", 2).with_hint("use {}", "sched-x"));
  all.add(Refusals(make_refusal(ErrorCode::kConflict, {}, "a conflict")));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.front(), (Refusal{ErrorCode::kOutOfRange, {"parallel.chunks"}, "chunks = 2", "use sched-x"}));
  EXPECT_STREQ(to_error(all, "here").what(), "here: chunks = 2; a conflict\n  use sched-x");
}

TEST(CaughtError, NamesAMissingAllocationAndTheNextStep) {
  const auto caught = [](auto thrown) {
    try {
      throw thrown;
    } catch (...) {
      return std::string(caught_error().what());
    }
  };
  EXPECT_THAT(caught(std::bad_alloc()), StartsWith("out of memory: the system refused an allocation\n  use "));
  EXPECT_EQ(caught(std::runtime_error("a reason")), "a reason");
  EXPECT_EQ(caught(7), "an unknown exception (not derived from std::exception)");
}

TEST(ErrorCodes, HaveUniqueNamesThatReadBack) {
  std::set<std::string_view> names;
  for (const ErrorCodeInfo& info : error_codes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(name_of(info.code), info.name);
    EXPECT_EQ(error_code_of(info.name), info.code);
    EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << info.name;
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kPluginFailed)) << "a code is missing from the table";
}

TEST(Options, GiveValuesByNameAndType) {
  Options options;
  options.set("momentum", 0.9);
  options.set("name", std::string("x"));
  options.set("on", true);
  options.set("depth", std::int64_t{3});
  options.set("file", std::filesystem::path("a/b"));
  options.set("splits", std::vector<std::int64_t>{1, 2});
  EXPECT_EQ(options.number("momentum"), 0.9);
  EXPECT_EQ(options.text("name"), "x");
  EXPECT_TRUE(options.flag("on"));
  EXPECT_EQ(options.integer("depth"), 3);
  EXPECT_EQ(options.path("file"), "a/b");
  EXPECT_THAT(options.list<std::int64_t>("splits"), ElementsAre(1, 2));
  EXPECT_TRUE(options.has("on"));
  EXPECT_FALSE(options.has("off"));
}

TEST(Options, ASlipOfThePluginIsNamed) {
  Options options;
  options.set("depth", std::int64_t{3});
  EXPECT_THROW(options.number("depth"), Error);
  try {
    options.flag("unknown");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr(
            "option \"unknown\" has no value: it is required and not set, or is not in the plugin's option table"));
  }
}

TEST(NullLog, DropsEverything) {
  EXPECT_FALSE(null_log().enabled(LogLevel::error));
  null_log().error("{}", 1);
}

TEST(WaitDeadline, PassesWithoutTheTimeInWhichTheProcessDidNotRun) {
  using std::chrono::milliseconds;
  const Deadline start{milliseconds(5000)};
  const auto at = [&](int ms) { return start + milliseconds(ms); };
  WaitDeadline until(at(2000), start);
  for (int ms = 0; ms < 1500; ms += 100) EXPECT_FALSE(until.passed(at(ms)));
  EXPECT_FALSE(until.passed(at(61400))) << "the minute in which it was stopped counts as half a second";
  EXPECT_FALSE(until.passed(at(61450)));
  EXPECT_TRUE(until.passed(at(61600)));

  WaitDeadline polled(at(2000), start);
  EXPECT_FALSE(polled.passed(at(400)));
  for (int ms = 500; ms < 2000; ms += 100) EXPECT_FALSE(polled.passed(at(ms)));
  EXPECT_TRUE(polled.passed(at(2000)));
  EXPECT_TRUE(WaitDeadline(at(0), at(10)).passed(at(10)));
  WaitDeadline forever(Deadline::max(), start);
  EXPECT_FALSE(forever.passed(at(1 << 30)));
  EXPECT_GT(forever.slice(), milliseconds(0));
  WaitDeadline soon(start + Clock::duration(3), start); // a quarter of it is less than one clock tick
  EXPECT_FALSE(soon.passed(at(1)));
  EXPECT_FALSE(soon.passed(at(2)));
  EXPECT_TRUE(soon.passed(at(3)));
}

TEST(Printable, LongInputIsCutBetweenCharacters) {
  EXPECT_EQ(shortened(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(shortened(std::string(201, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(shortened("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 2), "\xE2\x82\xAC\xE2\x82\xAC...");
  EXPECT_EQ(shortened("\xE2\x82\xAC\xFF", 2), "\xE2\x82\xAC\xFF") << "characters count, not bytes";
}

} // namespace
} // namespace triax
