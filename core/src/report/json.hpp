// SPDX-License-Identifier: Apache-2.0
// JSON objects that keep their keys in the order of set(); for metrics.jsonl and --json.
//
// Threads: one per object. Errors: Error for a number that JSON cannot represent.
//
// Floats are the shortest text that reads back to the same bits. Implemented with nlohmann-json, whose header is only
// included in json.cpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace triax::report {

class JsonObject {
 public:
  JsonObject();
  ~JsonObject();
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;

  JsonObject& set(std::string_view key, std::string_view value); // invalid UTF-8 becomes U+FFFD
  JsonObject& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  /// Throws Error with the key unless `value` is finite: JSON has no other numbers.
  JsonObject& set(std::string_view key, double value);
  template <std::integral Value>
  JsonObject& set(std::string_view key, Value value) {
    if constexpr (std::same_as<Value, bool>) {
      return set_bool(key, value);
    } else if constexpr (std::signed_integral<Value>) {
      return set_signed(key, value);
    } else {
      return set_unsigned(key, value);
    }
  }
  JsonObject& set_null(std::string_view key);
  JsonObject& set(std::string_view key, JsonObject value);
  JsonObject& set(std::string_view key, std::vector<JsonObject> values);
  JsonObject& set(std::string_view key, const std::vector<std::string>& values);

  /// One line, without a newline.
  std::string line() const;

 private:
  JsonObject& set_bool(std::string_view key, bool value);
  JsonObject& set_signed(std::string_view key, std::int64_t value);
  JsonObject& set_unsigned(std::string_view key, std::uint64_t value);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::report
