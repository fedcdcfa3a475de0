// SPDX-License-Identifier: Apache-2.0
// The values of a ModelRun: parameters, tokens, boundaries, and what checks fill tensors with.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "model_run.hpp"
#include "triax/random.hpp"

namespace triax::conformance {

namespace {

constexpr double kMaxAmplitude = 0.4;             // of parameters
constexpr std::uint32_t kBoundarySite = 1u << 30; // of random values that are not parameters
constexpr std::uint32_t kTokenSite = kBoundarySite + 1;

/// Keeps activations in the range of the nonlinear functions for wide layers too.
double amplitude_of(const ParamSpec& spec) {
  if (spec.global.rank() < 2) return kMaxAmplitude;
  return std::min(kMaxAmplitude, 1 / std::sqrt(static_cast<double>(spec.global[spec.global.rank() - 1])));
}

} // namespace

std::string wrong_range(const ParamSpec& spec) {
  if (spec.local.rank() != spec.global.rank()) return text("local {}, global {}", spec.local, spec.global);
  for (int dim = 0; dim < spec.global.rank(); ++dim) {
    const Cut* const cut = spec.cut_along(dim);
    const std::int64_t begin = cut ? cut->begin : 0, end = cut ? cut->end : spec.local[dim];
    if (begin < 0 || end < begin || end > spec.global[dim])
      return text("the range [{}, {}) of dimension {} is not in [0, {})", begin, end, dim, spec.global[dim]);
  }
  return {};
}

std::int64_t global_element(const ParamSpec& spec, std::int64_t local) {
  std::int64_t out = 0, stride = 1, rest = local;
  for (int dim = spec.local.rank() - 1; dim >= 0; --dim) {
    std::int64_t index = rest % spec.local[dim];
    rest /= spec.local[dim];
    if (const Cut* const cut = spec.cut_along(dim)) {
      index += cut->begin;
      if (index >= cut->end) return -1;
    }
    out += index * stride;
    stride *= spec.global[dim];
  }
  return out;
}

double drawn_value(std::uint32_t site, std::uint32_t sample, std::int64_t element) {
  constexpr PhiloxKey kKey = philox_key(1, RandomPurpose::test);
  const auto e = static_cast<std::uint64_t>(element);
  return 2 * static_cast<double>(uniform(philox_at(kKey, e, site, sample)[e % 4])) - 1;
}

void ModelRun::fill() {
  for (std::size_t at = 0; at < count(); ++at) {
    const auto& params = model_.specs(at).params;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const ParamSpec& spec = params[i];
      const std::uint32_t site = model_.value_site(at, spec);
      const double center = spec.init.kind == Init::Kind::ones ? 1 : 0, amplitude = amplitude_of(spec);
      set_elements(layers_[at].front().params[i], [&](std::int64_t local) {
        const std::int64_t global = global_element(spec, local);
        return global < 0 ? 0 : center + amplitude * drawn_value(site, 0, global); // padding is zeros
      });
    }
  }
  clear_gradients();
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(model_.shape().micro));
  for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
    std::iota(numbers.begin(), numbers.end(), 3 + 10 * microbatch);
    put_samples(microbatch, numbers, numbers);
  }
}

void ModelRun::put_samples(int microbatch, std::span<const std::int64_t> texts, std::span<const std::int64_t> numbers) {
  const PhiloxKey key = philox_key(2, RandomPurpose::test);
  const Data& data = data_[index(microbatch)];
  const std::int64_t micro = model_.shape().micro;
  const auto token = [&](std::int64_t position, std::int64_t of_text) {
    const PhiloxBlock block =
        philox_at(key, static_cast<std::uint64_t>(position) * 4, kTokenSite, static_cast<std::uint32_t>(of_text));
    return static_cast<std::int32_t>(block[0] % static_cast<std::uint32_t>(model_.context().vocab));
  };
  for (std::int64_t b = 0; b < micro; ++b) {
    const auto which = static_cast<std::size_t>(b);
    data.samples.as<std::int64_t>()[b] = numbers[which];
    for (std::int64_t s = 0; s < model_.context().sequence; ++s) {
      data.tokens.as<std::int32_t>()[s * micro + b] = token(s, texts[which]);
      data.targets.as<std::int32_t>()[s * micro + b] = token(s + 1, texts[which]);
    }
  }
}

void ModelRun::fill_boundaries(std::size_t at, int microbatch) {
  const LayerViews& views = layers_[at][index(microbatch)];
  const auto& inputs = model_.specs(at).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_data(inputs[i]))
      set_elements(views.in[i], [&](std::int64_t element) {
        return drawn_value(kBoundarySite, static_cast<std::uint32_t>(2 * i), element);
      });
  for (std::size_t i = 0; i < views.dout.size(); ++i)
    if (!views.dout[i].empty())
      set_elements(views.dout[i], [&](std::int64_t element) {
        return drawn_value(kBoundarySite, static_cast<std::uint32_t>(2 * i + 1), element);
      });
}

void ModelRun::clear_gradients() {
  for (const std::vector<LayerViews>& layer : layers_)
    for (const TensorView& grad : layer.front().grads) fill_bytes(grad, std::byte{0});
}

void ModelRun::fill_bytes(const TensorView& view, std::byte value) {
  std::fill_n(view.as<std::byte>(), view.bytes(), value);
}

void ModelRun::fill_scratch(std::byte value) {
  std::fill_n(scratch_->data(), scratch_->bytes(), value);
}

void ModelRun::poison(std::byte value) {
  for (const std::vector<LayerViews>& layer : layers_)
    for (const LayerViews& views : layer)
      for (const auto* const some : {&views.out, &views.dout, &views.stash})
        for (const TensorView& view : *some)
          if (!view.empty()) fill_bytes(view, value);
  fill_scratch(value);
}

} // namespace triax::conformance
