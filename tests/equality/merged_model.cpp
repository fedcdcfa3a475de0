// SPDX-License-Identifier: Apache-2.0
// Assembles tensors from shards.
#include "equality/merged_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "triax/text.hpp"

namespace triax::equality {

namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

double element(const KeptParameter& parameter, const std::vector<std::byte>& bytes, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  if (parameter.dtype == DType::f64) {
    double value = 0;
    std::memcpy(&value, bytes.data() + at * sizeof value, sizeof value);
    return value;
  }
  float value = 0;
  std::memcpy(&value, bytes.data() + at * sizeof value, sizeof value);
  return value;
}

/// Index in the global tensor of an element as stored; -1: padding.
std::int64_t global_index(const ParamSpec& spec, std::int64_t local) {
  std::int64_t rest = local, index = 0, stride = 1;
  for (int dim = spec.local.rank() - 1; dim >= 0; --dim) {
    std::int64_t at = rest % spec.local[dim];
    rest /= spec.local[dim];
    if (const Cut* cut = spec.cut_along(dim)) {
      at += cut->begin;
      if (at >= cut->end) return -1;
    }
    index += at * stride;
    stride *= spec.global[dim];
  }
  return index;
}

void put(std::vector<double>& whole, const std::string& name, const KeptParameter& parameter,
         const std::vector<std::byte>& bytes) {
  if (whole.empty()) whole.assign(static_cast<std::size_t>(parameter.spec.global.elements()), kUnset);
  for (std::int64_t local = 0; local < parameter.spec.local.elements(); ++local) {
    const double value = element(parameter, bytes, local);
    const std::int64_t index = global_index(parameter.spec, local);
    if (index < 0) {
      if (value != 0) throw std::runtime_error(text("{}: padding holds {}", name, value));
      continue;
    }
    double& held = whole.at(static_cast<std::size_t>(index));
    if (!std::isnan(held) && held != value)
      throw std::runtime_error(text("{}: element {} is {} on one rank and {} on another", name, index, held, value));
    held = value;
  }
}

MergedModel assemble(const std::vector<KeptRank>& ranks, std::vector<std::byte> KeptParameter::*bytes) {
  MergedModel out;
  for (const KeptRank& rank : ranks)
    for (const auto& [name, parameter] : rank.parameters) put(out[name], name, parameter, parameter.*bytes);
  for (const auto& [name, values] : out)
    if (std::ranges::any_of(values, [](double value) { return std::isnan(value); }))
      throw std::runtime_error(text("{}: an element is on no rank, or is not a number", name));
  return out;
}

} // namespace

MergedModel merged_gradient(const std::vector<KeptRank>& ranks) {
  return assemble(ranks, &KeptParameter::gradient);
}

MergedModel merged_weights(const std::vector<KeptRank>& ranks) {
  return assemble(ranks, &KeptParameter::weights);
}

void split_qkv(MergedModel& model, const std::string& of_model) {
  // Rows are ordered [key head, its query heads and key and value, columns].
  const bool is_llama = of_model == "model-llama";
  const std::size_t queries = is_llama ? 2 : 1, columns = is_llama ? 4 : kHeadDim;
  const auto third = [&](std::size_t row) {
    const std::size_t head = row / columns % (queries + 2);
    return head < queries ? "query" : head == queries ? "key" : "value";
  };
  MergedModel thirds;
  for (const auto& [name, values] : model) {
    if (name.find("/attention.qkv.") == std::string::npos) continue;
    const std::size_t width = values.size() / (static_cast<std::size_t>(kHeads) * (queries + 2) * columns);
    for (std::size_t at = 0; at < values.size(); ++at)
      thirds[text("{}, {}", name, third(at / width))].push_back(values[at]);
  }
  std::erase_if(model, [](const auto& entry) { return entry.first.find("/attention.qkv.") != std::string::npos; });
  model.merge(thirds);
}

bool is_key_bias(const std::string& name, const std::string& of_model) {
  return of_model == "model-gpt" && name.ends_with("/attention.qkv.bias, key");
}

double distance(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.size() != other.size()) throw std::runtime_error(text("{} elements, and {}", one.size(), other.size()));
  double between = 0, length = 0;
  for (std::size_t at = 0; at < one.size(); ++at) {
    between += (one[at] - other[at]) * (one[at] - other[at]);
    length += other[at] * other[at];
  }
  return between == 0 ? 0 : std::sqrt(between / length);
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

} // namespace triax::equality
