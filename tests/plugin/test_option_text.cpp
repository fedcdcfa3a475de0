// SPDX-License-Identifier: Apache-2.0
// Option values as TOML text: parsing, limits, and checks of option tables.
#include <gtest/gtest.h>

#include <limits>

#include "plugin/option_text.hpp"
#include "triax/plugin.hpp"

namespace triax::plugin {

namespace {

using Path = std::filesystem::path;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const triax_option kBool = option_bool("eager", "true", "doc");
const triax_option kInt = option_int("steps", "600", 1, 1000000, "doc");
const triax_option kFloat = option_float("share", "0.5", 0, 1, "doc");
const triax_option kString = option_string("wait", "spin", "spin|yield", "doc");
const triax_option kPath = option_path("table", "", "doc");

std::string refusal(const triax_option& option, const char* text) {
  try {
    parse_option(option, text);
  } catch (const Error& error) {
    return error.message();
  }
  return "it is read";
}

TEST(ParseOption, ReadsTomlOfEachType) {
  EXPECT_EQ(parse_option(kBool, "false"), OptionValue(false));
  EXPECT_EQ(parse_option(kInt, "1_000"), OptionValue(std::int64_t{1000}));
  EXPECT_EQ(parse_option(kInt, "-3"), OptionValue(std::int64_t{-3}));
  EXPECT_EQ(parse_option(kFloat, "1e-3"), OptionValue(1e-3));
  EXPECT_EQ(parse_option(kFloat, "1"), OptionValue(1.0));
  EXPECT_EQ(parse_option(option_list(kInt), "[1, 2]"), OptionValue(std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(parse_option(option_list(kFloat), "[1, 0.5]"), OptionValue(std::vector<double>{1, 0.5}));
  EXPECT_EQ(parse_option(option_list(kBool), "[]"), OptionValue(std::vector<bool>{}));
  EXPECT_EQ(parse_option(option_list(kString), "[\"a b\", 'c']"), OptionValue(std::vector<std::string>{"a b", "c"}));
  EXPECT_EQ(parse_option(option_list(kPath), "[\"a/b\"]"), OptionValue(std::vector<Path>{"a/b"}));
}

TEST(ParseOption, TextNeedsNoQuotes) {
  EXPECT_EQ(parse_option(kString, "spin"), OptionValue(std::string("spin")));
  EXPECT_EQ(parse_option(kString, "\"sp in\\n\""), OptionValue(std::string("sp in\n")));
  EXPECT_EQ(parse_option(kString, "600"), OptionValue(std::string("600")));
  EXPECT_EQ(parse_option(kString, ""), OptionValue(std::string()));
  EXPECT_EQ(parse_option(kPath, "../a b.txt"), OptionValue(Path("../a b.txt")));
}

TEST(ParseOption, NamesTheExpectedType) {
  EXPECT_EQ(refusal(kBool, "yes"), "eager = yes is not true or false");
  EXPECT_EQ(refusal(kInt, "1.5"), "steps = 1.5 is not an integer");
  EXPECT_EQ(refusal(kInt, "many"), "steps = many is not an integer");
  EXPECT_EQ(refusal(kInt, ""), "steps = \"\" is not an integer");
  EXPECT_EQ(refusal(kInt, "99999999999999999999"), "steps = 99999999999999999999 is not an integer");
  EXPECT_EQ(refusal(kFloat, "\"1\""), "share = \"1\" is not a number");
  EXPECT_EQ(refusal(kString, "\"open"), "wait = \"open is not a string");
  EXPECT_EQ(refusal(option_list(kInt), "1"), "steps = 1 is not a list of integers");
  EXPECT_EQ(refusal(option_list(kInt), "[1, 2.5]"), "steps = [1, 2.5] is not a list of integers");
}

TEST(ParseOption, CannotSmuggleASecondKey) {
  EXPECT_NE(refusal(kInt, "1\nother = 2"), "it is read");
}

TEST(CheckOption, TextWithANulCharacterIsRefused) {
  const triax_option path = option_path("metrics", nullptr, "doc");
  const triax_option words = option_string("transports", nullptr, nullptr, "doc");
  EXPECT_EQ(check_option(path, std::filesystem::path(std::string("a\0b", 3))).front().message,
            "metrics contains a NUL character, which paths cannot have");
  EXPECT_EQ(check_option(words, std::string("tcp\0x", 5)).front().message,
            "transports contains a NUL character, which strings cannot have");
}

TEST(CheckOption, LimitsAndChoices) {
  EXPECT_TRUE(check_option(kInt, std::int64_t{1}).empty());
  EXPECT_TRUE(check_option(kInt, std::int64_t{1000000}).empty());
  EXPECT_EQ(check_option(kInt, std::int64_t{0}).front().message, "steps must be in [1, 1000000], got 0");
  EXPECT_EQ(check_option(kFloat, 1.5).front().message, "share must be in [0, 1], got 1.5");
  EXPECT_EQ(check_option(kFloat, std::numeric_limits<double>::quiet_NaN()).front().message,
            "share = nan is not a number");
  EXPECT_EQ(check_option(kString, std::string("rush")).front().message,
            "wait must be one of spin or yield, got \"rush\"");
  EXPECT_EQ(check_option(option_list(kInt), std::vector<std::int64_t>{3, 0}).front().message,
            "steps must be in [1, 1000000], got 0");
  EXPECT_EQ(check_option(option_list(kString), std::vector<std::string>{"spin", ""}).front().message,
            "wait must be one of spin or yield, got \"\"");
  EXPECT_TRUE(check_option(kPath, Path("anything")).empty());
}

TEST(CheckOption, NoLimitsWhereMinIsAboveMax) {
  EXPECT_TRUE(check_option(option_int("any", "0", 1, 0, "doc"), std::int64_t{-7}).empty());
  EXPECT_EQ(limits_text(option_int("any", "0", 1, 0, "doc")), "");
}

TEST(LimitsText, IsReadable) {
  EXPECT_EQ(limits_text(kInt), "1..1000000");
  EXPECT_EQ(limits_text(kString), "spin|yield");
  EXPECT_EQ(limits_text(option_float("x", "1", 0, kInfinity, "doc")), "0 and more");
  EXPECT_EQ(limits_text(option_float("x", "1", -kInfinity, 2, "doc")), "2 and less");
  EXPECT_EQ(limits_text(kBool), "");
}

TEST(TypeName, OfListsAndUnknownTypes) {
  EXPECT_EQ(type_name(TRIAX_OPTION_PATH), "path");
  EXPECT_EQ(type_name(TRIAX_OPTION_LIST | TRIAX_OPTION_FLOAT), "list of float");
  EXPECT_EQ(type_name(0), "");
  EXPECT_EQ(type_name(99), "");
  EXPECT_EQ(type_name(TRIAX_OPTION_LIST), "");
}

TEST(ToToml, ReadsBackToTheSameValue) {
  const std::vector<std::pair<triax_option, OptionValue>> cases = {
      {kBool, true},
      {kInt, std::int64_t{-12}},
      {kFloat, 0.1},
      {kFloat, 3.0},
      {kFloat, 1e300},
      {kString, std::string("a \"quoted\"\nline \\")},
      {kPath, Path("/a b/c")},
      {option_list(kFloat), std::vector<double>{1, 0.1}},
      {option_list(kBool), std::vector<bool>{true, false}},
      {option_list(kString), std::vector<std::string>{"a", "b, c"}},
  };
  for (const auto& [option, value] : cases) EXPECT_EQ(parse_option(option, to_toml(value)), value) << to_toml(value);
  EXPECT_EQ(to_toml(3.0), "3.0");
  EXPECT_EQ(to_toml(std::string("auto")), "\"auto\"");
}

TEST(CheckRow, AnHonestRowIsFine) {
  for (const auto& option :
       {kBool, kInt, kFloat, kString, kPath, option_list(option_int("n", "[1, 2]", 1, 2, "doc"))}) {
    EXPECT_TRUE(check_row(option).empty());
  }
}

TEST(CheckRow, ExplainsInvalidRows) {
  const auto with = [](triax_option option, auto change) {
    change(option);
    const Refusals refused = check_row(option);
    return refused.empty() ? std::string() : refused.front().message;
  };
  EXPECT_EQ(with(kInt, [](auto& o) { o.name = "timeoutSeconds"; }),
            "option \"timeoutSeconds\" is not a key in lower_snake_case");
  EXPECT_EQ(with(kInt, [](auto& o) { o.name = nullptr; }), "option \"\" is not a key in lower_snake_case");
  EXPECT_EQ(with(kInt, [](auto& o) { o.name = "2fast"; }), "option \"2fast\" is not a key in lower_snake_case");
  EXPECT_EQ(with(kInt, [](auto& o) { o.name = "plugin"; }), "option \"plugin\" is the core's own key");
  EXPECT_EQ(with(kInt, [](auto& o) { o.type = 77; }), "option \"steps\" has the unknown type 77");
  EXPECT_EQ(with(kInt, [](auto& o) { o.doc = ""; }), "option \"steps\" has no doc");
  EXPECT_EQ(with(kInt, [](auto& o) { o.min = std::numeric_limits<double>::quiet_NaN(); }),
            "option \"steps\" has a limit that is not a number");
  EXPECT_EQ(with(kInt, [](auto& o) { o.choices = "1|2"; }), "option \"steps\" is not a string, but has choices");
  EXPECT_EQ(with(kString, [](auto& o) { o.choices = "spin||yield"; }),
            "option \"wait\" has an empty choice or one twice: spin||yield");
  EXPECT_EQ(with(kString, [](auto& o) { o.choices = "spin|spin"; }),
            "option \"wait\" has an empty choice or one twice: spin|spin");
  EXPECT_EQ(with(kInt, [](auto& o) { o.default_value = "0"; }), "the default steps must be in [1, 1000000], got 0");
  EXPECT_EQ(with(kInt, [](auto& o) { o.default_value = "soon"; }), "the default steps = soon is not an integer");
  EXPECT_EQ(with(kString, [](auto& o) { o.default_value = "rush"; }),
            "the default wait must be one of spin or yield, got \"rush\"");
}

} // namespace

} // namespace triax::plugin
