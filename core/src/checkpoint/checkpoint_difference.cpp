// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "checkpoint/blocks.hpp"
#include "checkpoint/weights.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

using Values = std::map<std::string, std::string>;

std::vector<ValueDifference> differences(const Values& first, const Values& second) {
  std::vector<ValueDifference> out;
  Values all = first;
  all.insert(second.begin(), second.end());
  const auto value = [](const Values& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::optional<std::string>() : found->second;
  };
  for (const auto& [key, unused] : all) {
    ValueDifference of{key, value(first, key), value(second, key)};
    if (of.first != of.second) out.push_back(std::move(of));
  }
  return out;
}

Values values_of(const Manifest& manifest) {
  const TrainingState& of = manifest.training;
  Values out = {{"step", to_text(of.step)},
                {"samples", to_text(of.samples)},
                {"tokens", to_text(manifest.tokens)},
                {"optimizer_steps", to_text(of.optimizer_steps)},
                {"loss_scale", to_text(of.loss_scale)},
                {"good_steps", to_text(of.good_steps)},
                {"hysteresis", to_text(of.hysteresis)}};
  for (const auto& [use, state] : of.plugins) out["state of " + use] = state;
  return out;
}

/// By name, and for each parameter the weights first.
std::vector<const SavedTensor*> sorted(const Manifest& manifest, bool weights_only) {
  std::vector<const SavedTensor*> out;
  for (const SavedTensor& tensor : manifest.content.tensors)
    if (!weights_only || tensor.state == kMasterState) out.push_back(&tensor);
  std::ranges::sort(out, [](const SavedTensor* a, const SavedTensor* b) {
    if (a->parameter != b->parameter) return is_before(a->parameter, b->parameter);
    const bool a_is_master = a->state == kMasterState, b_is_master = b->state == kMasterState;
    return a_is_master != b_is_master ? a_is_master : is_before(a->state, b->state);
  });
  return out;
}

/// One side of a comparison, block by block.
class Side {
 public:
  Side(TensorReader& reader, const SavedTensor& tensor) : reader_(reader), tensor_(tensor) {}

  void read(const Shape& begin, const Shape& size) {
    const auto count = static_cast<std::size_t>(size.elements());
    bytes_.resize(count * bytes_of(tensor_.dtype));
    reader_.read(tensor_, begin, size, bytes_.data());
    are_converted_ = false;
    values_.resize(count);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  const std::vector<double>& values() {
    if (!are_converted_) to_doubles(tensor_.dtype, bytes_.data(), values_);
    are_converted_ = true;
    return values_;
  }

 private:
  TensorReader& reader_;
  const SavedTensor& tensor_;
  std::vector<std::byte> bytes_;
  std::vector<double> values_;
  bool are_converted_ = false;
};

void add_element(TensorDifference& to, double a, double b) {
  ++to.differing;
  if (!std::isfinite(a) || !std::isfinite(b)) {
    ++to.not_finite;
    return;
  }
  const double absolute = std::fabs(a - b), largest = std::max(std::fabs(a), std::fabs(b));
  to.max_absolute = std::max(to.max_absolute, absolute);
  if (largest > 0) to.max_relative = std::max(to.max_relative, absolute / largest);
}

void compare_block(TensorDifference& to, Side& first, Side& second) {
  const bool same_type = to.first_type == to.second_type;
  if (same_type && first.bytes() == second.bytes()) return;
  const std::vector<double>&a = first.values(), &b = second.values();
  const std::size_t width = bytes_of(to.first_type);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool equal = same_type ? std::memcmp(&first.bytes()[i * width], &second.bytes()[i * width], width) == 0
                                 : a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!equal) add_element(to, a[i], b[i]);
  }
}

TensorDifference compare_tensor(TensorReader& first, const SavedTensor& a, TensorReader& second, const SavedTensor& b) {
  TensorDifference out{a.parameter, a.state, a.shape, b.shape, a.dtype, b.dtype};
  if (!out.is_same_shape()) return out;
  Side one(first, a), other(second, b);
  for_each_block(a.shape, [&](const Shape& begin, const Shape& size) {
    one.read(begin, size);
    other.read(begin, size);
    compare_block(out, one, other);
  });
  return out;
}

bool differs(const TensorDifference& of) {
  return !of.is_same_shape() || of.first_type != of.second_type || of.differing > 0;
}

} // namespace

CheckpointDifference compare(TensorReader& first, TensorReader& second, bool weights_only) {
  CheckpointDifference out;
  out.config = differences(first.manifest().config, second.manifest().config);
  if (!weights_only) out.training = differences(values_of(first.manifest()), values_of(second.manifest()));
  for (const SavedTensor* a : sorted(first.manifest(), weights_only)) {
    const SavedTensor* b = second.find(a->parameter, a->state);
    if (!b) {
      out.only_first.push_back(name_of(*a));
      continue;
    }
    ++out.compared;
    TensorDifference of = compare_tensor(first, *a, second, *b);
    if (differs(of)) out.tensors.push_back(std::move(of));
  }
  for (const SavedTensor* b : sorted(second.manifest(), weights_only))
    if (!first.find(b->parameter, b->state)) out.only_second.push_back(name_of(*b));
  return out;
}

} // namespace triax::checkpoint
