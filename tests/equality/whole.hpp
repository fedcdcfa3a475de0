// A model put together from the shards of its ranks, in double.
//
// Threads: pure. Ownership: values. Blocking: never. Errors: std::runtime_error where two ranks that hold the same
// element (replicas over data and tensor ranks, both sides of a tie) do not have the same bits, where an element is
// missing, and where padding is not zero.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "equality/world.hpp"

namespace triax::equality {

/// Elements of the global tensors, by the parameter's name.
using Whole = std::map<std::string, std::vector<double>>;

Whole whole_gradient(const std::vector<KeptRank>& ranks);
Whole whole_weights(const std::vector<KeptRank>& ranks);

/// Replaces every parameter of attention.qkv by its three thirds ("block 0/attention.qkv.bias, key"), which differ in
/// size by orders: what is wrong with a small one would not show in the whole.
void split_qkv(Whole& model);
/// The exact gradient of a key's bias is zero, as attention does not change when all keys move together: what there is
/// comes from rounding.
bool is_key_bias(const std::string& name);

/// |one - other| / |other|, as vectors.
double distance(const std::vector<double>& one, const std::vector<double>& other);
double largest(const std::vector<double>& values);

} // namespace triax::equality
