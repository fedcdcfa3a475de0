// SPDX-License-Identifier: Apache-2.0
// The results of a ModelRun, by name.
#include <algorithm>

#include "model_run.hpp"

namespace triax::conformance {

namespace {

void add_views(Tensors& out, const std::string& name, const std::vector<TensorView>& views) {
  for (std::size_t i = 0; i < views.size(); ++i)
    if (!views[i].empty()) out[text("{} {}", name, i)] = bytes_of_tensor(views[i]);
}

} // namespace

Tensors ModelRun::losses() const {
  Tensors out;
  for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch)
    out[text("the loss of microbatch {}", microbatch)] = bytes_of_tensor(views(count() - 1, microbatch).out.front());
  return out;
}

Tensors ModelRun::gradients() const {
  Tensors out;
  for (std::size_t at = 0; at < count(); ++at)
    for (std::size_t i = 0; i < views(at).grads.size(); ++i)
      out[text("{}, gradient of {}", model_.name(at), model_.specs(at).params[i].name)] =
          bytes_of_tensor(views(at).grads[i]);
  return out;
}

Tensors ModelRun::results() const {
  Tensors out = losses();
  out.merge(gradients());
  return out;
}

Tensors ModelRun::results_of(std::size_t at, int microbatch) const {
  const std::string name = model_.name(at);
  const LayerViews& of = views(at, microbatch);
  Tensors out;
  add_views(out, name + ", output", of.out);
  add_views(out, name + ", gradient of input", of.din);
  for (std::size_t i = 0; i < of.grads.size(); ++i)
    out[text("{}, gradient of {}", name, model_.specs(at).params[i].name)] = bytes_of_tensor(of.grads[i]);
  return out;
}

std::vector<std::vector<std::byte>> ModelRun::everything() const {
  std::vector<std::vector<std::byte>> out;
  out.reserve(named_.size());
  for (const auto& [name, view] : named_) out.push_back(bytes_of_tensor(view).bytes);
  return out;
}

std::vector<std::string> ModelRun::changed(const std::vector<std::vector<std::byte>>& since,
                                           std::span<const TensorView> may) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < named_.size(); ++i) {
    const auto& [name, view] = named_[i];
    const auto is_same = [&view = view](const TensorView& other) { return other.data() == view.data(); };
    if (std::ranges::none_of(may, is_same) && bytes_of_tensor(view).bytes != since[i]) out.push_back(name);
  }
  return out;
}

} // namespace triax::conformance
