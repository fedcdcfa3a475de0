// SPDX-License-Identifier: Apache-2.0
// The value of a key that takes one value for all stages, or a list with one for each.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/option_text.hpp"

namespace triax::config {

template <class Value>
class PerStage {
 public:
  PerStage(Value of_all) : values_{std::move(of_all)} {} // implicit: a value is for all stages
  static PerStage listed(std::vector<Value> of_each) { return PerStage(std::move(of_each), true); }

  const Value& of(int stage) const { return is_list_ ? values_.at(static_cast<std::size_t>(stage)) : values_.front(); }
  bool is_list() const { return is_list_; }
  const std::vector<Value>& values() const { return values_; }
  /// Whether all stages have this value; whether one has.
  /// @{
  bool all(const Value& value) const { return std::ranges::all_of(values_, std::bind_front(std::equal_to<>(), value)); }
  bool any(const Value& value) const { return std::ranges::find(values_, value) != values_.end(); }
  /// @}
  /// Whether each stage has the same value, listed or not.
  bool operator==(const PerStage& other) const {
    if (is_list_ == other.is_list_) return values_ == other.values_;
    return is_list_ ? all(other.values_.front()) : other.all(values_.front());
  }

 private:
  PerStage(std::vector<Value> values, bool is_list) : values_(std::move(values)), is_list_(is_list) {}

  std::vector<Value> values_; // by stage, or one
  bool is_list_ = false;
};

/// As the TOML has it: "full", or ["full", "none"].
template <class Value>
std::string to_toml(const PerStage<Value>& of) {
  return plugin::to_toml(of.is_list() ? OptionValue(of.values()) : OptionValue(of.values().front()));
}

} // namespace triax::config
