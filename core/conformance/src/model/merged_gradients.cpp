// SPDX-License-Identifier: Apache-2.0
#include "merged_gradients.hpp"

#include <algorithm>

namespace triax::conformance {

namespace {

bool is_partial(const ParamSpec& spec) {
  return std::ranges::find(spec.partial, kTensorAxis) != spec.partial.end();
}

bool is_split(const ParamSpec& spec) {
  return std::ranges::find(spec.cuts, kTensorAxis, &Cut::axis) != spec.cuts.end();
}

/// The loss, boundaries that are not parted with their gradients, and gradients of replicated parameters.
Tensors shared_tensors(const ModelRun& run) {
  Tensors out;
  for (std::size_t at = 0; at < run.count(); ++at) {
    const Layer& layer = run.model().layer(at);
    const auto outputs = layer.outputs();
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) {
      const LayerViews& views = run.views(at, microbatch);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].parted) continue;
        const std::string name = text("{} of {}, microbatch {}", outputs[i].name, layer.name(), microbatch);
        out["the output " + name] = bytes_of_tensor(views.out[i]);
        if (!views.dout[i].empty()) out["the gradient of the output " + name] = bytes_of_tensor(views.dout[i]);
      }
    }
    const auto params = layer.params();
    for (std::size_t i = 0; i < params.size(); ++i)
      if (!is_split(params[i]) && !is_partial(params[i]))
        out[text("the gradient of {}, {}", layer.name(), params[i].name)] = bytes_of_tensor(run.views(at).grads[i]);
  }
  return out;
}

} // namespace

void MergedGradients::compare_shared(const ModelRun& run, Report& report) {
  Tensors shared = shared_tensors(run);
  if (!shared_) {
    shared_ = std::move(shared);
    return;
  }
  const std::string differs = difference(shared, *shared_);
  report.expect(differs.empty(), "{}: ranks differ: on rank {}, {}", to_text(run.model().shape()),
                run.model().context().rank, differs);
}

void MergedGradients::add_gradient(const ModelRun& run, std::size_t at, std::size_t parameter, Report& report) {
  const ParamSpec& spec = run.model().layer(at).params()[parameter];
  const std::string name = text("the gradient of {}, {}", run.model().name(at), spec.name);
  const std::vector<double> local = values_of(run.views(at).grads[parameter]);
  std::vector<double>& whole = values[name];
  whole.resize(static_cast<std::size_t>(spec.global.elements()));
  for (std::size_t i = 0; i < local.size(); ++i) {
    const std::int64_t global = global_element(spec, static_cast<std::int64_t>(i));
    if (global < 0) {
      report.expect(local[i] == 0, "{}, rank {}: {} is {} at element {}, which is padding",
                    to_text(run.model().shape()), run.model().context().rank, name, local[i], i);
      continue;
    }
    double& element = whole[static_cast<std::size_t>(global)];
    element = is_partial(spec) ? element + local[i] : local[i];
  }
}

void MergedGradients::add(const ModelRun& run, Report& report) {
  const std::lock_guard lock(mutex_);
  compare_shared(run, report);
  for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch)
    values[text("the loss of microbatch {}", microbatch)] =
        values_of(run.views(run.count() - 1, microbatch).out.front());
  for (std::size_t at = 0; at < run.count(); ++at)
    for (std::size_t i = 0; i < run.model().layer(at).params().size(); ++i) add_gradient(run, at, i, report);
}

} // namespace triax::conformance
