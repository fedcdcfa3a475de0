// SPDX-License-Identifier: Apache-2.0
// Every key's value after all layers, with its origin, in the order in which a run is described.
//
// Threads: one. Ownership: values. Blocking: never. Errors: none; a key whose value was refused has a place and no
// value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/document.hpp"
#include "config/loaded.hpp"
#include "triax/options.hpp"

namespace triax::config {

class Values {
 public:
  /// Gives `key` the next place in the list; its value may come later.
  void declare(const std::string& key) { order_.push_back(key); }
  /// `at` may be nowhere, then `origin` tells where the value came from: "default".
  void set(const std::string& key, OptionValue value, std::string_view origin, const Position& at = {});

  bool has(const std::string& key) const { return items_.count(key) != 0; }
  /// Null where the key has no value.
  template <class T>
  const T* find(const std::string& key) const {
    const auto item = items_.find(key);
    return item == items_.end() ? nullptr : std::get_if<T>(&item->second.value);
  }
  /// The value of a key that is known to have one.
  template <class T>
  const T& get(const std::string& key) const {
    return std::get<T>(items_.at(key).value);
  }
  /// Where the value was written; nowhere for a default and for an unknown key.
  Position at(const std::string& key) const;
  std::vector<ResolvedValue> list() const;
  /// The keys of texts and paths that are no UTF-8.
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

/// A refusal's whole text, and the key whose position it begins with (may be empty).
struct Annotated {
  std::string text;
  std::string lead;
};
Annotated annotate(const Support& support, const std::vector<ResolvedValue>& values);

} // namespace triax::config
