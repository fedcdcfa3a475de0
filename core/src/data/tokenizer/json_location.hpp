// SPDX-License-Identifier: Apache-2.0
// A value in a JSON file together with its path, for error messages: "model.merges[5]".
//
// Errors: Error with file and path.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace triax::data {

class JsonLocation {
 public:
  using Json = nlohmann::json;
  /// `hint`: the next step of errors that have no other; text that outlives the object.
  JsonLocation(const std::filesystem::path& file, const Json& value, const char* hint, std::string path = {})
      : file_(file.string()), value_(&value), hint_(hint), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  /// Throws Error if the object does not have the key.
  JsonLocation at(const std::string& key) const;
  JsonLocation at(std::size_t index) const;

  const JsonLocation& object() const;
  const JsonLocation& list() const;
  const std::string& string() const;
  bool boolean() const;
  bool boolean_or(const char* key, bool otherwise) const;
  std::int32_t id() const;
  /// Throws Error if there are other keys.
  void keys(std::initializer_list<std::string_view> known) const;
  /// Throws Error if the key exists and its value is neither null nor one of these JSON texts.
  void only(const char* key, std::initializer_list<std::string_view> taken, const char* hint) const;

  /// "FILE: PATH MESSAGE".
  [[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) const;
  /// The value as text, truncated.
  std::string shown() const;

 private:
  std::string file_;
  const Json* value_;
  const char* hint_;
  std::string path_;
};

/// Throws Error if the file cannot be read or is not valid JSON. `hint`: the next step.
nlohmann::json parse_json(const std::filesystem::path& file, const std::string& bytes, const std::string& hint);

/// The contents of a file. Throws Error with the file.
std::string read_whole(const std::filesystem::path& file, const std::string& hint);

} // namespace triax::data
