// SPDX-License-Identifier: Apache-2.0
#include "executor/layer_check.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "executor/model_error.hpp"

namespace triax::executor {

namespace {

bool are_equal(const ParamSpec& a, const ParamSpec& b) {
  return a.name == b.name && a.global == b.global && a.local == b.local && a.cuts == b.cuts && a.partial == b.partial;
}
bool are_equal(const StashSpec& a, const StashSpec& b) {
  return a.name == b.name && a.shape == b.shape && a.dtype == b.dtype && a.life == b.life && a.row_dim == b.row_dim;
}
bool are_equal(const TensorSpec& a, const TensorSpec& b) {
  return a.name == b.name && a.shape == b.shape && a.dtype == b.dtype && a.life == b.life && a.sharded == b.sharded &&
         a.row_dim == b.row_dim;
}

/// `list`: a function of the layer, called twice.
template <class List>
void check_repeats(const Layer& layer, const char* name, List list) {
  const auto listed = list();
  using Spec = typename decltype(listed)::value_type;
  const std::vector<Spec> first(listed.begin(), listed.end());
  const bool repeats = std::ranges::equal(first, list(), [](const Spec& a, const Spec& b) { return are_equal(a, b); });
  require_of_model(repeats, "{}: {}() lists other tensors at its second call", layer.name(), name);
}

template <class Spec>
void check_types(const Layer& layer, std::span<const Spec> specs) {
  for (const Spec& spec : specs)
    require_of_model(spec.dtype <= DType::u8, "{}: \"{}\" has the type {}, which is not a DType", layer.name(),
                     spec.name, static_cast<int>(spec.dtype));
}

} // namespace

void check_layer(const Layer& layer) {
  check_repeats(layer, "params", [&] { return layer.params(); });
  check_repeats(layer, "stash", [&] { return layer.stash(); });
  check_repeats(layer, "inputs", [&] { return layer.inputs(); });
  check_repeats(layer, "outputs", [&] { return layer.outputs(); });
  check_types(layer, layer.stash());
  check_types(layer, layer.inputs());
  check_types(layer, layer.outputs());
  std::set<std::string_view> names;
  for (const TensorSpec& output : layer.outputs())
    require_of_model(names.insert(output.name).second, "{} makes \"{}\" twice", layer.name(), output.name);
}

} // namespace triax::executor
