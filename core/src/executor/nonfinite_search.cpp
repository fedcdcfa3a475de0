// SPDX-License-Identifier: Apache-2.0
#include "executor/nonfinite_search.hpp"

#include <algorithm>
#include <cmath>

#include "triax/element_type.hpp"
#include "triax/error.hpp"

namespace triax::executor {

using schedule::Kind;

namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 20; // bytes

std::int64_t count_on_host(const TensorView& values) {
  std::int64_t out = 0;
  with_type_among<float, double, Bf16, F16>(values.dtype(), [&]<class T>(T) {
    const T* const all = values.as<const T>();
    for (std::int64_t i = 0; i < values.elements(); ++i) out += std::isfinite(static_cast<double>(all[i])) ? 0 : 1;
  });
  return out;
}

} // namespace

NonfiniteSearch::NonfiniteSearch(Device& device, Stream& stream, int layers)
    : device_(device), stream_(stream), layers_(layers), block_(device.allocate(kBlock, MemoryKind::pinned)) {}

void NonfiniteSearch::inspect(const LayerResults& of) {
  const int order = of.kind == Kind::forward ? of.number : 2 * layers_ - 1 - of.number;
  if (order >= order_) return;
  find_in_results(of, order, of.kind == Kind::forward ? "output" : "gradient of the input");
  if (of.kind != Kind::forward) find_in_gradients(of, order);
}

std::int64_t NonfiniteSearch::count(const TensorView& values) {
  const TensorView all = values.flat();
  const std::int64_t most = kBlock / static_cast<std::int64_t>(bytes_of(all.dtype()));
  std::int64_t out = 0;
  for (std::int64_t begin = 0; begin < all.elements(); begin += most) {
    const TensorView part = all.slice(0, begin, std::min(begin + most, all.elements()));
    const TensorView host(block_->data(), part.dtype(), part.shape());
    device_.download(host, part, stream_);
    device_.wait(stream_.record(), deadline_in(device_.default_timeout()));
    out += count_on_host(host);
  }
  return out;
}

void NonfiniteSearch::find_in_results(const LayerResults& of, int order, const char* what) {
  for (const TensorView& values : of.results) {
    if (values.empty() || order >= order_) continue;
    const std::int64_t found = count(values);
    if (found == 0) continue;
    order_ = order;
    const std::string in_weights = this->in_weights(of);
    is_in_weights_ = !in_weights.empty();
    text_ = triax::text("the {} of {} in microbatch {} ({} of {} values){}", what, of.layer.name(), of.microbatch,
                        found, values.elements(), in_weights);
  }
}

/// The cause, if a weight is the first value that is not finite.
std::string NonfiniteSearch::in_weights(const LayerResults& of) {
  for (std::size_t i = 0; i < of.weights.size(); ++i) {
    if (of.weights[i].empty()) continue;
    if (const std::int64_t found = count(of.weights[i]); found > 0)
      return triax::text("; {}/{} has {} such value{}", of.layer.name(), of.layer.params()[i].name, found,
                         found == 1 ? "" : "s");
  }
  return {};
}

void NonfiniteSearch::find_in_gradients(const LayerResults& of, int order) {
  for (std::size_t i = 0; i < of.weight_gradients.size(); ++i) {
    const TensorView& values = of.weight_gradients[i];
    if (values.empty() || order >= order_) continue;
    const std::int64_t found = count(values);
    if (found == 0) continue;
    order_ = order;
    is_in_weights_ = false;
    text_ = triax::text("the gradient of {}/{} in microbatch {} ({} of {} values)", of.layer.name(),
                        of.layer.params()[i].name, of.microbatch, found, values.elements());
  }
}

} // namespace triax::executor
