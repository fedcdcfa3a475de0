// SPDX-License-Identifier: Apache-2.0
// The value of every key after all layers, with its origin, in the order in which `triax check` prints a run.
//
// A key with an invalid value is listed without a value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/document.hpp"
#include "config/load.hpp"
#include "triax/options.hpp"

namespace triax::config {

class Values {
 public:
  /// Appends `key` to the list; its value may be set later.
  void declare(const std::string& key) { order_.push_back(key); }
  /// Without a position `at`, `origin` says where the value came from: "default".
  void set(const std::string& key, OptionValue value, std::string_view origin, const Position& at = {});

  bool has(const std::string& key) const { return items_.count(key) != 0; }
  /// Null if the key has no value.
  template <class T>
  const T* find(const std::string& key) const {
    const auto item = items_.find(key);
    return item == items_.end() ? nullptr : std::get_if<T>(&item->second.value);
  }
  const OptionValue* find(const std::string& key) const {
    const auto item = items_.find(key);
    return item == items_.end() ? nullptr : &item->second.value;
  }
  /// The key must have a value.
  template <class T>
  const T& get(const std::string& key) const {
    return std::get<T>(items_.at(key).value);
  }
  /// Where the value was written; no position for a default or an unknown key.
  Position at(const std::string& key) const;
  std::vector<ResolvedValue> list() const;
  /// Keys of strings and paths that are not valid UTF-8.
  std::vector<std::string> not_utf8() const;

 private:
  struct Item {
    OptionValue value;
    std::string origin;
    Position at;
  };
  std::map<std::string, Item> items_;
  std::vector<std::string> order_;
};

} // namespace triax::config
