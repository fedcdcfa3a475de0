// SPDX-License-Identifier: Apache-2.0
// A model assembled from the shards of its ranks, in double.
//
// Errors: std::runtime_error if ranks that hold the same element (replicas over data and tensor ranks, both sides of a
// tie) have different bits, if an element is missing, or if padding is not zero.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "equality/harness.hpp"

namespace triax::equality {

/// Elements of the global tensors, by the parameter's name.
using MergedModel = std::map<std::string, std::vector<double>>;

MergedModel merged_gradient(const std::vector<KeptRank>& ranks);
MergedModel merged_weights(const std::vector<KeptRank>& ranks);

/// Replaces every parameter of attention.qkv by its three thirds (such as "block 0/attention.qkv.bias, key"). Their
/// sizes differ by orders of magnitude, and an error in a small one would not show in the whole. `of_model`: plugin,
/// whose heads have the sizes of the harness.
void split_qkv(MergedModel& model, const std::string& of_model);
/// True for the bias of keys of model-gpt. Its exact gradient is zero, because attention does not change when all keys
/// move together; its computed gradient is rounding error.
bool is_key_bias(const std::string& name, const std::string& of_model);

/// |one - other| / |other|, as vectors.
double distance(const std::vector<double>& one, const std::vector<double>& other);
double largest(const std::vector<double>& values);

} // namespace triax::equality
