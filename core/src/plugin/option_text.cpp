// SPDX-License-Identifier: Apache-2.0
// The only file of this module that includes toml++. Defaults are TOML text, so TOML parses them.
#include "plugin/option_text.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>

#include "base/printable.hpp"
#include "plugin/toml_nesting.hpp"

namespace triax::plugin {

namespace {

template <class T>
constexpr bool kIsVector = false;
template <class T>
constexpr bool kIsVector<std::vector<T>> = true;

std::uint32_t element_type(const triax_option& option) {
  return option.type & ~static_cast<std::uint32_t>(TRIAX_OPTION_LIST);
}
bool is_list(const triax_option& option) {
  return (option.type & TRIAX_OPTION_LIST) != 0;
}
bool is_number(const triax_option& option) {
  return element_type(option) == TRIAX_OPTION_INT || element_type(option) == TRIAX_OPTION_FLOAT;
}
bool is_text(const triax_option& option) {
  return element_type(option) == TRIAX_OPTION_STRING || element_type(option) == TRIAX_OPTION_PATH;
}

const char* type_phrase(std::uint32_t type) {
  switch (type) {
    case TRIAX_OPTION_BOOL:
      return "true or false";
    case TRIAX_OPTION_INT:
      return "an integer";
    case TRIAX_OPTION_FLOAT:
      return "a number";
    case TRIAX_OPTION_STRING:
      return "a string";
    case TRIAX_OPTION_PATH:
      return "a path";
    case TRIAX_OPTION_LIST | TRIAX_OPTION_BOOL:
      return "a list of true and false";
    case TRIAX_OPTION_LIST | TRIAX_OPTION_INT:
      return "a list of integers";
    case TRIAX_OPTION_LIST | TRIAX_OPTION_FLOAT:
      return "a list of numbers";
    case TRIAX_OPTION_LIST | TRIAX_OPTION_STRING:
      return "a list of strings";
    case TRIAX_OPTION_LIST | TRIAX_OPTION_PATH:
      return "a list of paths";
    default:
      return "of a known type";
  }
}

[[noreturn]] void refuse(const triax_option& option, std::string_view text) {
  throw Error(
      triax::text("{} = {} is not {}", option.name, text.empty() ? "\"\"" : shortened(text), type_phrase(option.type)));
}

/// One element as T; an integer is accepted as a float.
template <class T>
std::optional<T> scalar(const toml::node& node) {
  if constexpr (std::is_same_v<T, std::filesystem::path>) {
    if (const auto* value = node.as_string()) return std::filesystem::path(value->get());
  } else if constexpr (std::is_same_v<T, double>) {
    if (const auto* value = node.as_integer()) return static_cast<double>(value->get());
    if (const auto* value = node.as_floating_point()) return value->get();
  } else {
    if (const auto* value = node.as<T>()) return value->get();
  }
  return std::nullopt;
}

template <class T>
OptionValue convert(const triax_option& option, const toml::node& node, std::string_view text) {
  if (!is_list(option)) {
    if (const auto value = scalar<T>(node)) return *value;
    refuse(option, text);
  }
  std::vector<T> list;
  if (!node.is_array()) refuse(option, text);
  for (const auto& element : *node.as_array()) {
    const auto value = scalar<T>(element);
    if (!value) refuse(option, text);
    list.push_back(*value);
  }
  return list;
}

/// Text without quotes is the string itself.
bool is_bare(const triax_option& option, std::string_view text) {
  return is_text(option) && !is_list(option) && !text.starts_with('"') && !text.starts_with('\'');
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '\n', ' '); // a second line could set another key
  return out;
}

std::vector<std::string> split_choices(const char* choices) {
  std::vector<std::string> out;
  std::istringstream in(choices);
  for (std::string choice; std::getline(in, choice, '|');) out.push_back(choice);
  return out;
}

/// "one of fp32, bf16 or fp64"
std::string listed(const std::vector<std::string>& choices) {
  std::string out = choices.size() > 1 ? "one of " : "";
  for (std::size_t at = 0; at < choices.size(); ++at)
    out += (at == 0 ? "" : at + 1 == choices.size() ? " or " : ", ") + choices[at];
  return out;
}

std::string number_text(const triax_option& option, double value) {
  // Integers in full: 1000000, not 1e+06.
  const bool whole = element_type(option) == TRIAX_OPTION_INT && std::abs(value) < 9e15;
  return whole ? std::to_string(static_cast<long long>(value)) : to_text(value);
}

/// An integer that was written for a float in its own digits: a float may have others.
template <class T>
std::string shown_number(const T& value, std::string_view written) {
  const bool whole = !written.empty() && written.find_first_not_of("+-0123456789_") == std::string_view::npos;
  return std::is_same_v<T, double> && whole ? shortened(written) : to_text(value);
}

template <class T>
Refusals check_element(const triax_option& option, const T& value, std::string_view written) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>) {
    const auto number = static_cast<double>(value);
    if (std::isnan(number)) return make_refusal(ErrorCode::kInvalidValue, {}, "{} = nan is not a number", option.name);
    if (option.min <= option.max && !(number >= option.min && number <= option.max)) {
      const std::string shown = shown_number(value, written);
      if (std::isinf(option.max))
        return make_refusal(ErrorCode::kOutOfRange, {}, "{} must be at least {}, got {}", option.name,
                            number_text(option, option.min), shown);
      if (std::isinf(option.min))
        return make_refusal(ErrorCode::kOutOfRange, {}, "{} must be at most {}, got {}", option.name,
                            number_text(option, option.max), shown);
      return make_refusal(ErrorCode::kOutOfRange, {}, "{} must be in [{}, {}], got {}", option.name,
                          number_text(option, option.min), number_text(option, option.max), shown);
    }
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    if (value.native().find('\0') != std::string::npos)
      return make_refusal(ErrorCode::kMalformed, {}, "{} contains a NUL character, which paths cannot have",
                          option.name);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (value.find('\0') != std::string::npos)
      return make_refusal(ErrorCode::kMalformed, {}, "{} contains a NUL character, which strings cannot have",
                          option.name);
    if (!option.choices) return {};
    const auto choices = split_choices(option.choices);
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
      return make_refusal(ErrorCode::kInvalidValue, {}, "{} must be {}, got \"{}\"", option.name, listed(choices),
                          shortened(value));
    }
  }
  return {};
}

bool is_key(std::string_view name) {
  return !name.empty() && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_'; });
}

std::string quoted(const std::string& value) {
  using Flags = toml::format_flags;
  const toml::value<std::string> node(value);
  std::ostringstream out; // with double quotes, on one line, whatever the value
  out << toml::toml_formatter(
      node, toml::toml_formatter::default_flags & ~(Flags::allow_literal_strings | Flags::allow_multi_line_strings));
  return out.str();
}

template <class T>
std::string element_toml(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return quoted(value);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return quoted(value.string());
  } else {
    const std::string out = to_text(value);
    const bool whole = std::is_same_v<T, double> && out.find_first_not_of("-0123456789") == std::string::npos;
    return whole ? out + ".0" : out; // so that a float is read back as a float
  }
}

} // namespace

std::string type_name(std::uint32_t type) {
  static constexpr const char* kNames[] = {"", "bool", "int", "float", "string", "path"};
  const std::uint32_t element = type & ~static_cast<std::uint32_t>(TRIAX_OPTION_LIST);
  if (element == 0 || element >= std::size(kNames)) return {};
  return (type & TRIAX_OPTION_LIST) != 0 ? text("list of {}", kNames[element]) : kNames[element];
}

OptionValue parse_option(const triax_option& option, std::string_view text) {
  if (is_bare(option, text)) {
    if (element_type(option) == TRIAX_OPTION_PATH) return std::filesystem::path(text);
    return std::string(text);
  }
  toml::table table;
  const std::string assignment = "value = " + one_line(text);
  if (const auto deep = find_deep_nesting(assignment))
    throw Error(
        triax::text("{} is nested {} levels deep; the limit is {}", option.name, deep->levels, kMaxTomlNesting));
  try {
    table = toml::parse(assignment);
  } catch (const toml::parse_error&) {
    refuse(option, text);
  }
  const toml::node& node = *table.get("value");
  switch (element_type(option)) {
    case TRIAX_OPTION_BOOL:
      return convert<bool>(option, node, text);
    case TRIAX_OPTION_INT:
      return convert<std::int64_t>(option, node, text);
    case TRIAX_OPTION_FLOAT:
      return convert<double>(option, node, text);
    case TRIAX_OPTION_STRING:
      return convert<std::string>(option, node, text);
    case TRIAX_OPTION_PATH:
      return convert<std::filesystem::path>(option, node, text);
    default:
      refuse(option, text);
  }
}

Refusals check_option(const triax_option& option, const OptionValue& value, std::string_view written) {
  return std::visit(
      [&option, written](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (kIsVector<Held>) {
          for (const auto& element : held) {
            if (auto answer = check_element<typename Held::value_type>(option, element, {}); !answer.empty())
              return answer;
          }
          return Refusals();
        } else {
          return check_element(option, held, written);
        }
      },
      value);
}

std::string limits_text(const triax_option& option) {
  if (option.choices && is_text(option)) return option.choices;
  if (!is_number(option) || !(option.min <= option.max)) return {};
  const bool below = std::isfinite(option.min), above = std::isfinite(option.max);
  if (below && !above) return text("{} and more", number_text(option, option.min));
  if (!below && above) return text("{} and less", number_text(option, option.max));
  if (!below) return {};
  return text("{}..{}", number_text(option, option.min), number_text(option, option.max));
}

std::string to_toml(const OptionValue& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (kIsVector<Held>) {
          std::string out = "[";
          for (const auto& element : held) {
            out += (out.size() > 1 ? ", " : "") + element_toml<typename Held::value_type>(element);
          }
          return out + "]";
        } else {
          return element_toml<Held>(held);
        }
      },
      value);
}

Refusals check_row(const triax_option& option) {
  if (!option.name || !is_key(option.name)) {
    return make_refusal(ErrorCode::kMalformed, {}, "option \"{}\" is not a key in lower_snake_case",
                        option.name ? option.name : "");
  }
  const std::string_view name = option.name;
  if (name == "plugin") return make_refusal(ErrorCode::kMalformed, {}, "option \"plugin\" is the core's own key");
  if (type_name(option.type).empty())
    return make_refusal(ErrorCode::kMalformed, {}, "option \"{}\" has the unknown type {}", name, option.type);
  if (!option.doc || !*option.doc) return make_refusal(ErrorCode::kMalformed, {}, "option \"{}\" has no doc", name);
  if (is_number(option) && (std::isnan(option.min) || std::isnan(option.max))) {
    return make_refusal(ErrorCode::kInvalidValue, {}, "option \"{}\" has a limit that is not a number", name);
  }
  if (option.choices) {
    const auto choices = split_choices(option.choices);
    if (element_type(option) != TRIAX_OPTION_STRING) {
      return make_refusal(ErrorCode::kMalformed, {}, "option \"{}\" is not a string, but has choices", name);
    }
    if (choices.empty() || std::count(choices.begin(), choices.end(), "") != 0 ||
        std::set(choices.begin(), choices.end()).size() != choices.size()) {
      return make_refusal(ErrorCode::kDuplicate, {}, "option \"{}\" has an empty choice or one twice: {}", name,
                          option.choices);
    }
  }
  if (!option.default_value) return {};
  try {
    Refusals answer = check_option(option, parse_option(option, option.default_value));
    for (Refusal& refusal : answer) refusal.message = "the default " + refusal.message;
    return answer;
  } catch (const Error& error) {
    return make_refusal(ErrorCode::kMalformed, {}, "the default {}", error.message());
  }
}

} // namespace triax::plugin
