// SPDX-License-Identifier: Apache-2.0
// JSON texts from outside: what is read, and what is refused although other parsers read it.
#include <gtest/gtest.h>

#include <string>

#include "checkpoint/strict_json.hpp"

namespace triax::checkpoint {
namespace {

std::string problem_of(const std::string& json) {
  Json out;
  return parse_strict(json, out);
}

TEST(StrictJson, ReadsAllValues) {
  constexpr const char* kText = R"( {"a": [1, -2, 18446744073709551615, 0.5, 1e300, -0.0, 1e-999], "b": {"c": null},
    "d": [true, false, "\u00e4\n", {}, []], "": ""}  )";
  Json out;
  EXPECT_EQ(parse_strict(kText, out), "");
  EXPECT_EQ(out, Json::parse(kText));
  EXPECT_EQ(out.dump(), Json::parse(kText).dump()); // the order of keys, too
  for (const char* single : {"3", "null", "\"text\"", "[]"}) {
    EXPECT_EQ(problem_of(single), "") << single;
  }
}

TEST(StrictJson, RefusesWhatIsNotJson) {
  EXPECT_EQ(problem_of(""), "is not valid JSON at line 1, column 1");
  EXPECT_EQ(problem_of("{\"a\": 1,\n \"b\": }"), "is not valid JSON at line 2, column 7");
  EXPECT_EQ(problem_of("{}\n{}"), "is not valid JSON at line 2, column 1");
  for (const char* json : {"NaN",      "[NaN]",       "[Infinity]",     "[-Infinity]", "[nan]",  "{'a': 1}",
                           "[1,]",     "{\"a\": 1,}", "[01]",           "[+1]",        "[.5]",   "[1.]",
                           "[0x10]",   "// text\n1",  "[1 /* text */]", "[1",          "{\"a\"", "\"\\ud800\"",
                           "\"\xff\"", "\"\n\"",      "{} x",           "[1] 2",       "tru",    "{1: 2}"})
    EXPECT_TRUE(problem_of(json).starts_with("is not valid JSON at line 1, column ") ||
                problem_of(json).starts_with("is not valid JSON at line 2, column "))
        << json << ": " << problem_of(json);
  EXPECT_EQ(problem_of("\xef\xbb\xbf{}"), "is not valid JSON: it begins with a byte order mark");
}

/// The parser takes a zero byte for the end of the text.
TEST(StrictJson, RefusesZeroBytes) {
  using namespace std::string_literals;
  EXPECT_EQ(problem_of("{}\0"s), "is not valid JSON at line 1, column 3");
  EXPECT_EQ(problem_of("{}\n\0 and {more}"s), "is not valid JSON at line 2, column 1");
  EXPECT_EQ(problem_of("{\"a\0\": 1}"s), "is not valid JSON at line 1, column 4");
  EXPECT_EQ(problem_of("\0"s), "is not valid JSON at line 1, column 1");
  EXPECT_EQ(problem_of(R"({"a\u0000": 1})"), "");
}

TEST(StrictJson, RefusesKeysThatOccurTwice) {
  EXPECT_EQ(problem_of(R"({"a": 1, "b": {"a": 2, "c": [{"x": 1}, {"x": 2, "\u0078": 3}]}})"),
            "has the key \"x\" twice");
  EXPECT_EQ(problem_of(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 1}]})"), "");
  EXPECT_EQ(problem_of("{\"\\n  x\": 1, \"\\n  x\": 2}"), "has the key \"\n  x\" twice");
}

TEST(StrictJson, RefusesNumbersThatLoseTheirValue) {
  EXPECT_EQ(problem_of("[18446744073709551616]"), "has an integer that does not fit into 64 bits");
  EXPECT_EQ(problem_of("[-9223372036854775809]"), "has an integer that does not fit into 64 bits");
  EXPECT_EQ(problem_of("[" + std::string(1000, '9') + "]"), "has a number that is too large at line 1, column 1001");
  EXPECT_EQ(problem_of("{\"a\":\n1e999}"), "has a number that is too large at line 2, column 5");
}

TEST(StrictJson, RefusesDeepNesting) {
  const std::string too_deep = "is nested too deeply (more than 16 levels)";
  const auto nested = [](int depth, const std::string& open, const std::string& close) {
    std::string out;
    for (int i = 0; i < depth; ++i) out += open;
    out += "1";
    for (int i = 0; i < depth; ++i) out += close;
    return out;
  };
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\": ", "}")}) {
    EXPECT_EQ(problem_of(nested(kMaxJsonDepth, open, close)), "");
    EXPECT_EQ(problem_of(nested(kMaxJsonDepth + 1, open, close)), too_deep);
    EXPECT_EQ(problem_of(nested(1'000'000, open, close)), too_deep);
  }
}

/// An object with many keys takes linear time: a search among all keys before would take hours.
TEST(StrictJson, ReadsManyKeys) {
  constexpr int kKeys = 300'000;
  std::string json = "{";
  for (int i = 0; i < kKeys; ++i) json += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  Json out;
  EXPECT_EQ(parse_strict(json + "}", out), "");
  EXPECT_EQ(out.size(), static_cast<std::size_t>(kKeys));
  EXPECT_EQ(problem_of(json + ",\"7\":0}"), "has the key \"7\" twice");
}

} // namespace
} // namespace triax::checkpoint
