// Drawing initial weights.
#include "executor/init.hpp"

#include <cmath>
#include <numbers>

#include "triax/error.hpp"
#include "triax/random.hpp"

namespace triax::executor {

namespace {

/// In (0, 1]: its logarithm is finite.
double positive_uniform(std::uint32_t word) {
  return (static_cast<double>(word) + 1) / 4294967296.0;
}

template <class T>
void draw(T* out, const ParamSpec& spec, std::uint64_t seed) {
  const std::int64_t count = spec.local.elements();
  for (std::int64_t local = 0; local < count; ++local) {
    std::int64_t rest = local, element = 0, stride = 1;
    bool padding = false;
    for (int dim = spec.local.rank() - 1; dim >= 0; --dim) {
      std::int64_t index = rest % spec.local[dim];
      rest /= spec.local[dim];
      if (dim == spec.dim) {
        index += spec.begin;
        padding |= index >= spec.end;
      }
      element += index * stride;
      stride *= spec.global[dim];
    }
    out[local] =
        padding ? T{0} : static_cast<T>(initial_value(spec.init, seed, spec.site, static_cast<std::uint64_t>(element)));
  }
}

} // namespace

double initial_value(const Init& init, std::uint64_t seed, std::uint32_t site, std::uint64_t element) {
  switch (init.kind) {
    case Init::Kind::zeros:
      return 0;
    case Init::Kind::ones:
      return 1;
    case Init::Kind::normal:
      break;
  }
  const PhiloxBlock block = philox_at(philox_key(seed, RandomPurpose::weights), element, site, 0);
  const std::size_t pair = element % 4 / 2 * 2;
  const double radius = std::sqrt(-2 * std::log(positive_uniform(block[pair])));
  const double angle = 2 * std::numbers::pi * (static_cast<double>(block[pair + 1]) / 4294967296.0);
  return init.std * radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

void draw_weights(const TensorView& host, const ParamSpec& spec, std::uint64_t seed) {
  TRIAX_REQUIRE(host.shape() == spec.local, "{} is {}, not {}", spec.name, spec.local, host.shape());
  if (host.dtype() == DType::f64) return draw(host.as<double>(), spec, seed);
  TRIAX_REQUIRE(host.dtype() == DType::f32, "master weights are f32 or f64, not {}", name_of(host.dtype()));
  draw(host.as<float>(), spec, seed);
}

} // namespace triax::executor
