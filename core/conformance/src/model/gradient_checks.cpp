// SPDX-License-Identifier: Apache-2.0
// Gradients against slopes. A slope along a direction d of unit length is the four-point difference
//   (8 (L(h d) - L(-h d)) - (L(2h d) - L(-2h d))) / 12h,
// whose error is of the order of e |L| / h by rounding and h^4 by the formula, with e the precision of the type. With
// h = e^(1/5) both are of the order of e^(4/5) |L|: the tolerance is 1000 times that. The step is half of it, because
// norms of small values have a large fifth derivative; the error by rounding is far below the tolerance.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr std::uint32_t kDirectionSite = 1u << 29;
constexpr int kDirections = 2; // of each tensor, besides its gradient

/// Tensors that can be moved, with their gradients.
struct Movable {
  std::string name;
  TensorView value, gradient;
  const ParamSpec* spec = nullptr; // set for a parameter: its padding is not changed
};

class Slopes {
 public:
  /// `scalar`: computes the function from the values of tensors.
  Slopes(const ModelShape& shape, std::function<double()> scalar, Report& report)
      : shape_(shape),
        scalar_(std::move(scalar)),
        report_(report),
        epsilon_(epsilon_of(shape.compute)),
        step_(std::pow(epsilon_, 0.2) / 2),
        value_(scalar_()) {}

  void compare(const Movable& of, std::uint32_t number) {
    for (int direction = 0; direction <= kDirections; ++direction) {
      std::vector<double> along = values_of(of.gradient);
      if (direction < kDirections)
        for (std::size_t i = 0; i < along.size(); ++i)
          along[i] =
              drawn_value(kDirectionSite + static_cast<std::uint32_t>(direction), number, static_cast<std::int64_t>(i));
      if (of.spec) clear_padding(*of.spec, along);
      const double length = std::sqrt(std::inner_product(along.begin(), along.end(), along.begin(), 0.0));
      if (length == 0) continue;
      for (double& element : along) element /= length;
      const std::vector<double> gradient = values_of(of.gradient);
      expect_slope(of, std::inner_product(along.begin(), along.end(), gradient.begin(), 0.0), along,
                   direction < kDirections ? "a random direction" : "itself");
    }
  }

 private:
  static void clear_padding(const ParamSpec& spec, std::vector<double>& along) {
    for (std::size_t i = 0; i < along.size(); ++i)
      if (global_element(spec, static_cast<std::int64_t>(i)) < 0) along[i] = 0;
  }

  void expect_slope(const Movable& of, double computed, const std::vector<double>& along, const char* direction) {
    const std::vector<double> before = values_of(of.value);
    const auto moved = [&](double by) {
      set_elements(of.value, [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return before[at] + by * step_ * along[at];
      });
      return scalar_();
    };
    const double slope = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step_);
    set_elements(of.value, [&](std::int64_t i) { return before[static_cast<std::size_t>(i)]; });
    const double tolerance = 1000 * std::pow(epsilon_, 0.8) * (std::abs(value_) + std::abs(slope));
    report_.expect(std::abs(computed - slope) <= tolerance,
                   "{}: {}: the gradient along {} is {}, but the slope of the result {} (tolerance {})",
                   to_text(shape_), of.name, direction, computed, slope, tolerance);
  }

  const ModelShape shape_;
  const std::function<double()> scalar_;
  Report& report_;
  const double epsilon_, step_, value_;
};

void add_parameters(std::vector<Movable>& out, const ModelRun& run, std::size_t at) {
  const auto& params = run.model().specs(at).params;
  for (std::size_t i = 0; i < params.size(); ++i)
    out.push_back({text("{}, {}", run.model().name(at), params[i].name), run.views(at).params[i],
                   run.views(at).grads[i], &params[i]});
}

std::vector<Movable> movables_of_layer(const ModelRun& run, std::size_t at) {
  std::vector<Movable> out;
  add_parameters(out, run, at);
  const auto& inputs = run.model().specs(at).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_data(inputs[i]))
      out.push_back({text("{}, input {}", run.model().name(at), inputs[i].name), run.views(at).in[i],
                     run.views(at).din[i], nullptr});
  return out;
}

/// The product of a layer's outputs with the gradients that it gets; of a loss, with loss_gradient.
double scalar_of_layer(ModelRun& run, std::size_t at, const std::vector<std::vector<double>>& weights) {
  run.run(Pass::forward, at);
  double out = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::vector<double> values = values_of(run.views(at).out[i]);
    out += weights[i].empty() ? run.settings().loss_gradient * std::accumulate(values.begin(), values.end(), 0.0)
                              : std::inner_product(values.begin(), values.end(), weights[i].begin(), 0.0);
  }
  return out;
}

void gradients_of_layers(const ModelSubject& subject, Report& report) {
  const ModelShape shape = most_precise_shape(subject);
  ModelRun run(subject, shape);
  for (std::size_t at = 0; at < run.count(); ++at) {
    run.fill_boundaries(at);
    std::vector<std::vector<double>> weights; // a backward may write to the views
    for (const TensorView& dout : run.views(at).dout)
      weights.push_back(dout.empty() ? std::vector<double>() : values_of(dout));
    for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight}) run.run(pass, at);
    Slopes slopes(
        shape, [&] { return scalar_of_layer(run, at, weights); }, report);
    std::uint32_t number = 0;
    for (const Movable& of : movables_of_layer(run, at)) slopes.compare(of, number++);
  }
}

void gradients_of_the_model(const ModelSubject& subject, Report& report) {
  const ModelShape shape = most_precise_shape(subject);
  ModelRun run(subject, shape);
  const auto loss = [&run] {
    run.forward();
    const std::vector<double> losses = values_of(run.views(run.count() - 1).out.front());
    return run.settings().loss_gradient * std::accumulate(losses.begin(), losses.end(), 0.0);
  };
  loss();
  run.backward_input();
  run.backward_weight();
  std::vector<Movable> all;
  for (std::size_t at = 0; at < run.count(); ++at) add_parameters(all, run, at);
  Slopes slopes(shape, loss, report);
  std::uint32_t number = 0;
  for (const Movable& of : all) slopes.compare(of, number++);
}

/// Requires the same gradients of two objects, whose descriptions may differ.
void require_same_gradients(const ModelRun& a, const ModelRun& b) {
  bool are_equal = a.count() == b.count();
  for (std::size_t at = 0; are_equal && at < a.count(); ++at)
    are_equal = std::ranges::equal(a.views(at).grads, b.views(at).grads,
                                   [](const TensorView& x, const TensorView& y) { return x.shape() == y.shape(); });
  if (!are_equal)
    throw Error(text("{} and {}: two objects have parameters of other shapes", to_text(a.model().shape()),
                     to_text(b.model().shape())));
}

void expect_multiple(Report& report, const ModelShape& shape, const ModelRun& got, const ModelRun& base, double factor,
                     std::string_view what) {
  require_same_gradients(got, base);
  for (std::size_t at = 0; at < base.count(); ++at)
    for (std::size_t i = 0; i < base.views(at).grads.size(); ++i) {
      std::vector<double> expected = values_of(base.views(at).grads[i]);
      for (double& value : expected) value *= factor;
      const std::string differs = difference(values_of(got.views(at).grads[i]), expected, 0);
      report.expect(differs.empty(), "{}: with {}, the gradient of {}, {}: {}", to_text(shape), what,
                    base.model().name(at), base.model().specs(at).params[i].name, differs);
    }
}

/// Factors are powers of two: exact in every type.
void factors_multiply_gradients(const ModelSubject& subject, Report& report) {
  const ModelShape shape = most_precise_shape(subject);
  ModelRun base(subject, shape), factor(subject, shape), scaled(subject, shape);
  base.train();
  factor.settings().loss_gradient *= 2;
  factor.train();
  expect_multiple(report, shape, factor, base, 2, "twice the loss_gradient");
  scaled.settings().loss_scale = 8;
  scaled.train();
  expect_multiple(report, shape, scaled, base, 8, "loss_scale = 8");
}

/// Accumulators have the master type, so what is added to them is not rounded to 16 bits.
void gradients_are_added(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun base(subject, shape), added(subject, shape);
    require_same_gradients(base, added);
    const auto initial = [](std::int64_t i) { return 0.25 * drawn_value(kDirectionSite, 0, i); };
    for (std::size_t at = 0; at < added.count(); ++at)
      for (const TensorView& grad : added.views(at).grads) set_elements(grad, initial);
    base.train();
    added.train();
    for (std::size_t at = 0; at < base.count(); ++at)
      for (std::size_t i = 0; i < base.views(at).grads.size(); ++i) {
        std::vector<double> expected = values_of(base.views(at).grads[i]);
        const double tolerance = 1000 * epsilon_of(master_type(shape.compute)) * (0.25 + magnitude_of(expected));
        for (std::size_t e = 0; e < expected.size(); ++e) expected[e] += initial(static_cast<std::int64_t>(e));
        const std::string differs = difference(values_of(added.views(at).grads[i]), expected, tolerance);
        report.expect(differs.empty(), "{}: the gradient of {}, {}, in an accumulator that is not zero: {}",
                      to_text(shape), base.model().name(at), base.model().specs(at).params[i].name, differs);
      }
  }
}

double norm_of(std::span<const double> values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

/// Weights and activations are rounded a few dozen times between the tokens and a gradient.
void gradients_of_types_are_equal(const ModelSubject& subject, Report& report) {
  constexpr double kRoundingsOfAType = 32;
  ModelRun fine(subject, most_precise_shape(subject));
  fine.train();
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    run.train();
    require_same_gradients(fine, run);
    double largest = 0;
    for (std::size_t at = 0; at < fine.count(); ++at)
      for (const TensorView& grad : fine.views(at).grads) largest = std::max(largest, norm_of(values_of(grad)));
    for (std::size_t at = 0; at < fine.count(); ++at)
      for (std::size_t i = 0; i < fine.views(at).grads.size(); ++i) {
        std::vector<double> distance = values_of(run.views(at).grads[i]);
        const std::vector<double> expected = values_of(fine.views(at).grads[i]);
        for (std::size_t e = 0; e < distance.size(); ++e) distance[e] -= expected[e];
        const double tolerance = kRoundingsOfAType * epsilon_of(shape.compute) * largest;
        report.expect(norm_of(distance) <= tolerance,
                      "{}: the gradient of {}, {} differs from that in {} by {} (norm), more than {}", to_text(shape),
                      fine.model().name(at), fine.model().specs(at).params[i].name,
                      name_of(fine.model().shape().compute), norm_of(distance), tolerance);
      }
  }
}

constexpr ModelCheck kGradientChecks[] = {
    {"Gradients.OfEachLayerAreItsSlope", "M8", nullptr, gradients_of_layers},
    {"Gradients.OfTheModelAreTheSlopeOfTheLoss", "M8", nullptr, gradients_of_the_model},
    {"Gradients.EachTypeMatchesTheMostPrecise", "M8", nullptr, gradients_of_types_are_equal},
    {"Gradients.HaveTheFactorsOfTheLoss", "M9", nullptr, factors_multiply_gradients},
    {"Gradients.AreAdded", "M10", nullptr, gradients_are_added},
};

} // namespace

std::span<const ModelCheck> gradient_checks() {
  return kGradientChecks;
}

} // namespace triax::conformance
