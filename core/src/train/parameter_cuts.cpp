// SPDX-License-Identifier: Apache-2.0
#include "train/parameter_cuts.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "executor/model_error.hpp"
#include "executor/model_parameters.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

/// The coordinates that decide which part a rank holds: "data 0, tensor 1".
std::string part_text(const Layout& layout, int rank) {
  std::string out;
  for (const Axis& axis : layout.axes())
    if (axis.size > 1 && axis.divides != Divides::layers)
      out = text("{} {}{}{}", axis.name, layout.coordinate(rank, axis.name), out.empty() ? "" : ", ", out);
  return out.empty() ? layout.describe(rank) : out;
}

/// A parameter as one rank describes it.
struct DescribedPart {
  int rank = 0;
  const ParamSpec* spec = nullptr;
};

class DividedParameter {
 public:
  DividedParameter(const Layer& layer, const Layout& layout, std::vector<DescribedPart> parts)
      : layer_(layer), layout_(layout), parts_(std::move(parts)), first_(*parts_.front().spec) {}

  void check() const {
    for (const DescribedPart& part : parts_) check_declaration(part);
    for (const Cut& cut : first_.cuts) check_covered(cut.dim, cut.axis);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(std::string_view pattern, const Args&... arguments) const {
    throw executor::ModelError(
        text("{}/{} is {}{}", layer_.name(), first_.name, first_.global, text(pattern, arguments...)));
  }
  std::string on(const DescribedPart& part) const { return part_text(layout_, part.rank); }

  /// Ranks agree on the dimensions that axes cut, and hold all of the others.
  void check_declaration(const DescribedPart& part) const {
    const ParamSpec& spec = *part.spec;
    executor::check_spec(spec, layout_);
    if (spec.global != first_.global) fail(" on {}, but {} on {}", on(parts_.front()), spec.global, on(part));
    if (spec.local.rank() != spec.global.rank()) fail(", but is stored as {} on {}", spec.local, on(part));
    for (int dim = 0; dim < spec.global.rank(); ++dim) {
      const Cut *const cut = spec.cut_along(dim), *const of_first = first_.cut_along(dim);
      if (!cut != !of_first || (cut && cut->axis != of_first->axis))
        fail(": {} cuts dimension {} on {}, but {} on {}", of_first ? of_first->axis : "no axis", dim,
             on(parts_.front()), cut ? cut->axis : "no axis", on(part));
      if (!cut && spec.local[dim] != spec.global[dim])
        fail(", but is stored as {} on {}: no axis cuts dimension {}, so each rank holds all of it", spec.local,
             on(part), dim);
    }
  }

  void check_covered(int dim, const std::string& axis) const {
    const auto cut_of = [dim](const DescribedPart& part) -> const Cut& { return *part.spec->cut_along(dim); };
    std::map<int, DescribedPart> by_coordinate;
    std::vector<DescribedPart> held; // without the ranks that have padding only
    for (const DescribedPart& part : parts_) {
      const auto [same, is_new] = by_coordinate.emplace(layout_.coordinate(part.rank, axis), part);
      const Cut &one = cut_of(same->second), &other = cut_of(part);
      if (one != other)
        fail(": {} holds [{}, {}) of dimension {}, but {} holds [{}, {}) of it", on(same->second), one.begin, one.end,
             dim, on(part), other.begin, other.end);
      if (is_new && other.end > other.begin) held.push_back(part);
    }
    std::ranges::stable_sort(held, {}, [&](const DescribedPart& part) { return cut_of(part).begin; });
    std::int64_t next = 0;
    const auto fail_gap = [&](std::int64_t end) {
      fail(": no rank of axis {} holds [{}, {}) of dimension {}", axis, next, end, dim);
    };
    for (std::size_t at = 0; at < held.size(); ++at) {
      const Cut& cut = cut_of(held[at]);
      if (cut.begin > next) fail_gap(cut.begin);
      if (cut.begin < next)
        fail(": {} and {} both hold [{}, {}) of dimension {}", on(held[at - 1]), on(held[at]), cut.begin,
             std::min(next, cut.end), dim);
      next = cut.end;
    }
    if (next < first_.global[dim]) fail_gap(first_.global[dim]);
  }

  const Layer& layer_;
  const Layout& layout_;
  const std::vector<DescribedPart> parts_;
  const ParamSpec& first_;
};

std::unique_ptr<Layer> layer_on(const Model& model, int number, LayerContext context, int rank) {
  context.rank = rank;
  std::unique_ptr<Layer> out = call_plugin("layer", typeid(model), [&] { return model.layer(number, context); });
  if (!out) throw executor::ModelError(text("no layer {} on {}", number, context.layout.describe(rank)));
  return out;
}

/// The axes over which ranks may hold different parts of a layer, in the order of the layout.
std::vector<std::string> dividing_axes(const Layer& layer, const Layout& layout) {
  std::vector<std::string> out;
  for (const Axis& axis : layout.axes()) {
    const auto is_cut = [&axis](const ParamSpec& spec) {
      return std::ranges::find(spec.cuts, axis.name, &Cut::axis) != spec.cuts.end();
    };
    const bool divides = axis.divides == Divides::tensors || std::ranges::any_of(layer.params(), is_cut);
    if (divides && axis.size > 1 && axis.divides != Divides::layers) out.push_back(axis.name);
  }
  return out;
}

void check_layer_cuts(const Model& model, int number, const LayerContext& context) {
  const Layout& layout = context.layout;
  const std::unique_ptr<Layer> first = layer_on(model, number, context, context.rank);
  const auto params = first->params();
  std::vector<std::unique_ptr<Layer>> others;
  std::vector<std::vector<DescribedPart>> parts(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) parts[i].push_back({context.rank, &params[i]});
  for (const int rank : layout.group(context.rank, dividing_axes(*first, layout)).ranks) {
    if (rank == context.rank) continue;
    const auto described = others.emplace_back(layer_on(model, number, context, rank))->params();
    if (!std::ranges::equal(described, params, {}, &ParamSpec::name, &ParamSpec::name))
      throw executor::ModelError(text("layer {}: {} has parameters of other names on {} than on {}", number,
                                      first->name(), part_text(layout, rank), part_text(layout, context.rank)));
    for (std::size_t i = 0; i < params.size(); ++i) parts[i].push_back({rank, &described[i]});
  }
  for (std::vector<DescribedPart>& of : parts) DividedParameter(*first, layout, std::move(of)).check();
}

} // namespace

void check_cuts(const Model& model, const LayerContext& context) {
  for (int number = 0; number < model.count(); ++number) check_layer_cuts(model, number, context);
}

} // namespace triax::train
