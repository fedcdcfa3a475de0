// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/json_location.hpp"

#include <algorithm>

#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

constexpr std::int64_t kMaxId = (1 << 24) - 1; // tables have an entry for each id
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;
constexpr std::size_t kShown = 60;
constexpr int kMaxDepth = 100; // traversal is recursive

/// Nesting depth of lists and objects.
int depth_of(std::string_view bytes) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '"') in_text = !in_text;
    if (in_text) {
      if (c == '\\') ++i;
      continue;
    }
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

} // namespace

JsonLocation JsonLocation::at(const std::string& key) const {
  object();
  if (!value_->contains(key)) refuse(text("has no key \"{}\"", key));
  return {file_, (*value_)[key], hint_, path_.empty() ? key : path_ + "." + key};
}

JsonLocation JsonLocation::at(std::size_t index) const {
  return {file_, (*value_)[index], hint_, text("{}[{}]", path_, index)};
}

const JsonLocation& JsonLocation::object() const {
  if (!value_->is_object()) refuse(text("is {}: it must be an object", shown()));
  return *this;
}

const JsonLocation& JsonLocation::list() const {
  if (!value_->is_array()) refuse(text("is {}: it must be a list", shown()));
  return *this;
}

const std::string& JsonLocation::string() const {
  if (!value_->is_string()) refuse(text("is {}: it must be a string", shown()));
  return value_->get_ref<const std::string&>();
}

bool JsonLocation::boolean() const {
  if (!value_->is_boolean()) refuse(text("is {}: it must be true or false", shown()));
  return value_->get<bool>();
}

bool JsonLocation::boolean_or(const char* key, bool otherwise) const {
  return has(key) ? at(key).boolean() : otherwise;
}

std::int32_t JsonLocation::id() const {
  if (!value_->is_number_integer() || *value_ < 0 || *value_ > kMaxId) {
    refuse(text("is {}: an id must be an integer in [0, {}]", shown(), kMaxId));
  }
  return value_->get<std::int32_t>();
}

void JsonLocation::keys(std::initializer_list<std::string_view> known) const {
  object();
  for (const auto& item : value_->items()) {
    if (std::ranges::find(known, item.key()) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known) names.append(names.empty() ? "" : ", ").append(name);
    refuse(text("has the unknown key \"{}\"", item.key()), "known: " + names);
  }
}

void JsonLocation::only(const char* key, std::initializer_list<std::string_view> taken, const char* hint) const {
  if (!has(key)) return;
  const JsonLocation location = at(key);
  if (location.value().is_null() || std::ranges::find(taken, location.value().dump()) != taken.end()) return;
  location.refuse(text("is {}, which is not supported", location.shown()), hint);
}

void JsonLocation::refuse(const std::string& message, const std::string& hint) const {
  throw Error(path_.empty() ? message : path_ + " " + message, file_, hint.empty() ? hint_ : hint);
}

std::string JsonLocation::shown() const {
  std::string out = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (out.size() <= kShown) return out;
  out.resize(kShown);
  while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
  if (!out.empty() && (static_cast<unsigned char>(out.back()) & 0x80) != 0) out.pop_back();
  return out + "...";
}

nlohmann::json parse_json(const std::filesystem::path& file, const std::string& bytes, const std::string& hint) {
  if (depth_of(bytes) > kMaxDepth)
    throw Error(text("is nested more than {} levels deep", kMaxDepth), file.string(), hint);
  try {
    return nlohmann::json::parse(bytes);
  } catch (const nlohmann::json::parse_error& error) { // the library's own text would not help the user
    if (bytes.empty()) throw Error("is empty", file.string(), hint);
    const bool cut = error.byte > bytes.size();
    throw Error(text("is not valid JSON: {} at byte {}", cut ? "unexpected end of file" : "error", error.byte),
                file.string(), hint);
  } catch (const nlohmann::json::exception&) {
    throw Error("is not valid JSON: a number in it is out of range", file.string(), hint);
  }
}

std::string read_whole(const std::filesystem::path& file, const std::string& hint) {
  const os::InputFile in(file, hint);
  if (in.bytes() > kMaxFile)
    throw Error(text("has {} bytes: too large for the file of a tokenizer", in.bytes()), file.string(), hint);
  std::string out(static_cast<std::size_t>(in.bytes()), '\0');
  in.read_at(0, std::as_writable_bytes(std::span(out)));
  return out;
}

} // namespace triax::data
