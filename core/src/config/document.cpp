// SPDX-License-Identifier: Apache-2.0
// The only file of this module that includes toml++.
#include "config/document.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <tuple>

#include "base/printable.hpp"
#include "config/text_file.hpp"
#include "config/toml_error.hpp"
#include "plugin/option_text.hpp"
#include "plugin/toml_nesting.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

struct Source {
  const std::string& shown;
  int layer;
  Position at(const toml::source_region& region) const {
    return {shown, layer, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  }
};

/// A date, a time or both. Keys never have this type.
std::string dated(const toml::node& node) {
  std::ostringstream out;
  if (const auto* date = node.as_date()) out << date->get();
  if (const auto* time = node.as_time()) out << time->get();
  if (const auto* both = node.as_date_time()) out << both->get();
  return out.str();
}

/// Messages quote strings, so that a file of another kind would fill the terminal.
const std::string& checked(const std::string& string, const Position& at) {
  constexpr std::size_t kMaxString = 4096; // bytes: no path is longer
  if (string.size() <= kMaxString) return string;
  throw SyntaxError(
      text("a string of {} bytes; the limit is {}: \"{}\"", string.size(), kMaxString, shortened(string, 40)), at,
      "check that this is the TOML of a run");
}

Written written(const toml::node& node, const Source& source) {
  using Type = Written::Type;
  Written out;
  out.at = source.at(node.source());
  const auto set = [&out](Type type, std::string text) {
    out.type = type;
    out.text = std::move(text);
  };
  if (const auto* boolean = node.as_boolean()) {
    set(Type::boolean, triax::to_text(boolean->get()));
  } else if (const auto* integer = node.as_integer()) {
    set(Type::integer, triax::to_text(integer->get()));
  } else if (const auto* floating = node.as_floating_point()) {
    set(Type::floating, plugin::to_toml(OptionValue(floating->get())));
  } else if (const auto* string = node.as_string()) {
    set(Type::string, checked(string->get(), out.at));
  } else if (const auto* array = node.as_array()) {
    out.type = Type::list;
    for (const toml::node& item : *array) out.items.push_back(written(item, source));
  } else if (node.is_table()) {
    set(Type::table, "a table");
  } else {
    set(Type::other, dated(node));
  }
  return out;
}

void flatten(const toml::table& table, const std::string& name, const Source& source, Document& out) {
  for (auto&& [key, node] : table) {
    const std::string word = shortened(key.str()); // no key of Triax or of a plugin is as long
    const Position key_at = source.at(key.source());
    if (const toml::table* inner = node.as_table()) {
      const std::string full = name.empty() ? word : text("{}.{}", name, word);
      out.tables.emplace(full, key_at);
      flatten(*inner, full, source, out);
    } else {
      out.entries.push_back({name, word, key_at, written(node, source)});
    }
  }
}

[[noreturn]] void not_toml(const toml::parse_error& error, const std::string& bytes, const Source& source) {
  Position at = source.at(error.source());
  const TomlError explained = explain_toml_error(bytes, at.line, at.column, error.description());
  at.line = explained.line;
  at.column = explained.column;
  throw SyntaxError(explained.message, at, explained.hint);
}

void refuse_deep_nesting(const std::string& bytes, const std::string& shown, int layer) {
  const std::optional<plugin::DeepNesting> deep = plugin::find_deep_nesting(bytes);
  if (!deep) return;
  throw SyntaxError(text("nested {} levels deep; the limit is {}", deep->levels, plugin::kMaxTomlNesting),
                    {shown, layer, deep->line, deep->column},
                    "each part of a dotted name, each list and each inline table is a level: use fewer");
}

} // namespace

std::string to_text(const Position& position) {
  if (position.line == 0) return position.file;
  if (position.column == 0) return text("{}:{}", position.file, position.line);
  return text("{}:{}:{}", position.file, position.line, position.column);
}

std::string to_toml(const Written& value) {
  if (value.type == Written::Type::string) return plugin::to_toml(OptionValue(value.text));
  if (value.type != Written::Type::list) return value.text;
  std::string out;
  for (const Written& item : value.items) out.append(out.empty() ? "" : ", ").append(to_toml(item));
  return "[" + out + "]";
}

Document read_document(const std::filesystem::path& file, const std::string& shown, int layer) {
  return parse_document(read_text(file, shown), shown, layer);
}

Document parse_document(const std::string& bytes, const std::string& shown, int layer) {
  refuse_deep_nesting(bytes, shown, layer);
  const Source source{shown, layer};
  Document out;
  try {
    flatten(toml::parse(bytes, std::string_view(shown)), {}, source, out);
  } catch (const toml::parse_error& error) {
    not_toml(error, bytes, source);
  }
  std::sort(out.entries.begin(), out.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.key_at.line, a.key_at.column) < std::tie(b.key_at.line, b.key_at.column);
  });
  return out;
}

} // namespace triax::config
