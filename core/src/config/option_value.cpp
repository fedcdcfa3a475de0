// SPDX-License-Identifier: Apache-2.0
#include "config/option_value.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/printable.hpp"
#include "plugin/did_you_mean.hpp"
#include "plugin/option_text.hpp"
#include "triax/error.hpp"

namespace triax::config {

namespace {

bool is_list(const triax_option& option) {
  return (option.type & TRIAX_OPTION_LIST) != 0;
}
std::uint32_t element_type(const triax_option& option) {
  return option.type & ~static_cast<std::uint32_t>(TRIAX_OPTION_LIST);
}
bool is_text(const triax_option& option) {
  return element_type(option) == TRIAX_OPTION_STRING || element_type(option) == TRIAX_OPTION_PATH;
}

std::filesystem::path located(const std::filesystem::path& path, const std::filesystem::path& base) {
  if (path.empty()) return path;
  const std::filesystem::path whole = std::filesystem::absolute(base / path);
  std::error_code unreadable; // name too long or cyclic links: reported when the path is opened
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(whole, unreadable);
  return unreadable ? whole.lexically_normal() : canonical;
}

void locate(OptionValue& value, const std::filesystem::path& base) {
  if (auto* path = std::get_if<std::filesystem::path>(&value)) *path = located(*path, base);
  if (auto* paths = std::get_if<std::vector<std::filesystem::path>>(&value)) {
    for (std::filesystem::path& path : *paths) path = located(path, base);
  }
}

bool finite(const OptionValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return std::isfinite(*number);
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    for (const double number : *numbers) {
      if (!std::isfinite(number)) return false;
    }
  }
  return true;
}

bool readable(const triax_option& option, const std::string& toml) {
  try {
    return plugin::check_option(option, plugin::parse_option(option, toml)).empty();
  } catch (const Error&) {
    return false;
  }
}

/// "write an integer (1..65536), such as 8" for a key with one number; its default is the example.
std::string number_hint(const triax_option& option) {
  if (option.type != TRIAX_OPTION_INT && option.type != TRIAX_OPTION_FLOAT) return {};
  std::string out = option.type == TRIAX_OPTION_INT ? "write an integer" : "write a number";
  if (const std::string limits = plugin::limits_text(option); !limits.empty()) out += text(" ({})", limits);
  return option.default_value ? text("{}, such as {}", out, option.default_value) : out;
}

/// The value to write instead, if that is clear.
std::string hint_for(const triax_option& option, const Written& value) {
  if (is_list(option) && value.type != Written::Type::list) {
    const std::string listed = "[" + to_toml(value) + "]";
    return readable(option, listed) ? text("write {}", shortened(listed)) : std::string();
  }
  // A number or boolean in quotes.
  if (value.type == Written::Type::string && !value.text.empty() && readable(option, value.text))
    return text("write {}", shortened(value.text));
  if (element_type(option) != TRIAX_OPTION_INT || value.type != Written::Type::floating) return number_hint(option);
  const double number = std::strtod(value.text.c_str(), nullptr);
  const bool whole = std::abs(number) < 1e15 && number == std::floor(number);
  return whole ? text("write {}", static_cast<std::int64_t>(number)) : number_hint(option);
}

/// For a value that should be a string.
std::string text_hint(const triax_option& option, const Written& value) {
  if (option.choices) return text("write one of {}, in quotes", option.choices);
  return value.type == Written::Type::list ? std::string() : text("write \"{}\"", shortened(to_toml(value)));
}

std::string trimmed(std::string_view text, std::string_view characters) {
  const std::size_t begin = std::min(text.find_first_not_of(characters), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(characters) + 1 - begin));
}

/// For a list of strings without quotes, which a shell may have removed: the list with quotes that the shell keeps.
std::string quoted_list_hint(const Entry& entry) {
  const std::string& flag = entry.value.text;
  if (flag.find('\'') != std::string::npos) return text("write the list as TOML: [\"...\", \"...\"]");
  std::string list;
  std::istringstream items(trimmed(flag, " []"));
  for (std::string item; std::getline(items, item, ',');)
    list.append(list.empty() ? "" : ", ").append(plugin::to_toml(OptionValue(trimmed(item, " \""))));
  return text("write --set '{}.{}=[{}]'", entry.table, entry.key, list.empty() ? "\"...\"" : shortened(list));
}

std::string flag_hint(const triax_option& option, const Entry& entry) {
  if (is_list(option) && is_text(option)) return quoted_list_hint(entry);
  if (!is_list(option)) return number_hint(option);
  const std::string listed = "[" + entry.value.text + "]";
  const bool brackets = !entry.value.text.empty() && readable(option, listed);
  return brackets ? text("write {}", shortened(listed)) : std::string();
}

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

std::string choice_hint(const triax_option& option, const OptionValue& value) {
  const auto* chosen = std::get_if<std::string>(&value);
  if (!chosen || !option.choices) return {};
  std::vector<std::string> choices(1);
  for (const char* letter = option.choices; *letter; ++letter) {
    if (*letter == '|') {
      choices.emplace_back();
    } else {
      choices.back().push_back(*letter);
    }
  }
  const std::string small = lower_case(*chosen);
  std::vector<std::string> near = plugin::nearest(small, choices);
  if (std::find(choices.begin(), choices.end(), small) != choices.end()) near = {small}; // "BF16"
  constexpr std::size_t kMinPart = 3;
  const auto is_longer = [&](const std::string& choice) { // "warning" for warn, "err" for error
    return std::min(choice.size(), small.size()) >= kMinPart &&
           (small.starts_with(choice) || choice.starts_with(small));
  };
  if (const auto other = std::find_if(choices.begin(), choices.end(), is_longer);
      near.empty() && other != choices.end())
    near = {*other};
  // "f16" has the same distance from bf16 and fp16.
  const auto farther = [&](const std::string& choice) {
    return plugin::edit_distance(small, choice) > plugin::edit_distance(small, near.front());
  };
  near.erase(std::find_if(near.begin(), near.end(), farther), near.end());
  std::string out;
  for (const std::string& choice : near) out += text("{}\"{}\"", out.empty() ? "" : " or ", choice);
  return out.empty() ? out : text("did you mean {}?", out);
}

/// `written`: the value as TOML.
Reading checked(const triax_option& option, OptionValue value, const std::filesystem::path& base,
                std::string_view written) {
  if (!finite(value))
    return {{},
            ErrorCode::kInvalidValue,
            text("{} = {} is not a finite number", option.name, shortened(plugin::to_toml(value))),
            {}};
  if (const Refusals answer = plugin::check_option(option, value, written); !answer.empty()) {
    return {{}, answer.front().code, answer.front().message, choice_hint(option, value)};
  }
  locate(value, base);
  return {std::move(value), {}, {}, {}};
}

} // namespace

bool is_written_as_list(const Setting& setting) {
  const Written& value = setting.entry.value;
  return setting.flag ? trimmed(value.text, " ").starts_with('[') : value.type == Written::Type::list;
}

Reading read_setting(const triax_option& option, const Setting& setting) {
  const Written& value = setting.entry.value;
  const std::string toml = setting.flag ? value.text : to_toml(value);
  const bool bare = !setting.flag && is_text(option) && !is_list(option) && value.type != Written::Type::string;
  if (bare) { // parse_option would accept it as a string
    const char* wanted = element_type(option) == TRIAX_OPTION_PATH ? "a path" : "a string";
    return {{},
            ErrorCode::kWrongType,
            text("{} = {} is not {}", option.name, shortened(toml), wanted),
            text_hint(option, value)};
  }
  try {
    return checked(option, plugin::parse_option(option, toml), setting.base, toml);
  } catch (const Error& error) {
    return {{},
            ErrorCode::kWrongType,
            error.message(),
            setting.flag ? flag_hint(option, setting.entry) : hint_for(option, value)};
  }
}

Reading read_default(const triax_option& option) {
  try {
    return checked(option, plugin::parse_option(option, option.default_value), std::filesystem::current_path(),
                   option.default_value);
  } catch (const Error& error) {
    return {{}, ErrorCode::kWrongType, error.message(), {}};
  }
}

} // namespace triax::config
