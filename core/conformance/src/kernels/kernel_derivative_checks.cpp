// SPDX-License-Identifier: Apache-2.0
// Backward operations as derivatives: compared with differences of the forward, by the set under test itself.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernel_check_tables.hpp"
#include "triax/conformance/case_builder.hpp"

namespace triax::conformance::cases {

namespace {

using V = const CaseViews&;
using Use = const UseCall&;

/// A forward and its backward in one case. The loss is the sum of `output` times "c", or of `output` if there is no c.
struct Differentiated {
  OperationCase one;
  std::string output;
  std::vector<std::pair<const char*, const char*>> gradients; // by an input, in a tensor
};

/// Begins as zeros.
CaseTensor sum_target(const char* name, Shape shape) {
  CaseTensor tensor = in_out(name, shape);
  tensor.low = tensor.high = 0;
  return tensor;
}

Differentiated activation_of(DType type, Activation act, const char* name, std::int64_t factor) {
  const Shape wide{3, 10 * factor}, narrow{3, 10};
  return {{text("act_bwd/{}", name),
           type,
           {in("x", wide), in("c", narrow), out("y", narrow), out("dx", wide)},
           [act](V v, Use use) {
             use(ActFwd{act, v["y"], v["x"]});
             use(ActBwd{act, v["dx"], v["c"], v["x"]});
           }},
          "y",
          {{"x", "dx"}}};
}

Differentiated layer_norm_of(DType type) {
  const Shape shape{5, 7};
  return {{"norm_bwd/layer",
           type,
           {in("x", shape), in("w", {7}), in("b", {7}), in("c", shape), out("y", shape), statistic_out("mean", {5}),
            statistic_out("rstd", {5}), out("dx", shape), sum_target("dw", {7}), sum_target("db", {7})},
           [](V v, Use use) {
             use(NormFwd{NormKind::layer, v["y"], v["x"], v["w"], v["b"], v["mean"], v["rstd"], 1e-5});
             use(NormBwdInput{NormKind::layer, v["dx"], v["c"], v["x"], v["w"], v["mean"], v["rstd"], {}});
             use(NormBwdWeight{NormKind::layer, v["dw"], v["db"], v["c"], v["x"], v["mean"], v["rstd"]});
           }},
          "y",
          {{"x", "dx"}, {"w", "dw"}, {"b", "db"}}};
}

Differentiated rms_norm_of(DType type) {
  const Shape shape{5, 7};
  return {{"norm_bwd/rms",
           type,
           {in("x", shape), in("w", {7}), in("c", shape), out("y", shape), statistic_out("rstd", {5}), out("dx", shape),
            sum_target("dw", {7})},
           [](V v, Use use) {
             use(NormFwd{NormKind::rms, v["y"], v["x"], v["w"], {}, {}, v["rstd"], 1e-5});
             use(NormBwdInput{NormKind::rms, v["dx"], v["c"], v["x"], v["w"], {}, v["rstd"], {}});
             use(NormBwdWeight{NormKind::rms, v["dw"], {}, v["c"], v["x"], {}, v["rstd"]});
           }},
          "y",
          {{"x", "dx"}, {"w", "dw"}}};
}

Differentiated softmax_of(DType type) {
  const Shape shape{1, 2, 5, 6};
  return {{"softmax_bwd/causal",
           type,
           {in("x", shape), in("c", shape), out("y", shape), out("dx", shape)},
           [](V v, Use use) {
             use(SoftmaxFwd{v["y"], v["x"], 0.7, {Mask::Kind::causal, 1, 0, {}}, {}});
             use(SoftmaxBwd{v["dx"], v["c"], v["y"], 0.7, {}});
           }},
          "y",
          {{"x", "dx"}}};
}

Differentiated linear_of(DType type) {
  return {{"linear_bwd/gelu",
           type,
           {in("x", {4, 5}), in("w", {6, 5}), in("b", {6}), in("c", {4, 6}), out("y", {4, 6}), out("z", {4, 6}),
            out("dz", {4, 6}), out("dx", {4, 5}), sum_target("dw", {6, 5}), sum_target("db", {6})},
           [](V v, Use use) {
             use(LinearFwd{v["y"], v["z"], v["x"], v["w"], v["b"], Activation::gelu_tanh});
             use(ActBwd{Activation::gelu_tanh, v["dz"], v["c"], v["z"]});
             use(LinearBwdInput{v["dx"], v["dz"], v["w"], {}, Activation::none});
             use(LinearBwdWeight{v["dw"], v["db"], v["dz"], v["x"]});
           }},
          "y",
          {{"x", "dx"}, {"w", "dw"}, {"b", "db"}}};
}

Differentiated attention_of(DType type) {
  const Shape q{5, 2, 4, 3}, k{7, 2, 2, 3};
  return {{"attention_bwd/causal, dropout",
           type,
           {in("q", q), in("k", k), in("v", k), in("c", q), out("o", q), statistic_out("lse", {2, 4, 5}), out("dq", q),
            out("dk", k), out("dv", k), samples(2)},
           [](V v, Use use) {
             const Mask mask{Mask::Kind::causal, 2, 0, {}};
             const Drop drop{.p = 0.3f, .key = kCaseKey, .site = 5, .samples = v["samples"], .rows = 7, .width = 7};
             use(AttentionFwd{v["o"], v["lse"], v["q"], v["k"], v["v"], 0.6, mask, drop});
             use(AttentionBwd{v["dq"], v["dk"], v["dv"], v["c"], v["q"], v["k"], v["v"], v["o"], v["lse"], 0.6, mask,
                              drop});
           }},
          "o",
          {{"q", "dq"}, {"k", "dk"}, {"v", "dv"}}};
}

Differentiated embedding_of(DType type) {
  return {{"embed_bwd/range",
           type,
           {in("table", {6, 3}), own("t", Role::in, DType::i32, {4, 2}, tokens(8, 11)), in("c", {4, 2, 3}),
            out("y", {4, 2, 3}), sum_target("dtable", {6, 3})},
           [](V v, Use use) {
             use(EmbedFwd{v["y"], v["table"], v["t"], 4, 5});
             use(EmbedBwd{v["dtable"], v["c"], v["t"], 4, 5});
           }},
          "y",
          {{"table", "dtable"}}};
}

/// xent_bwd replaces logits by their gradient, so it gets a copy of them.
Differentiated cross_entropy_of(DType type) {
  const Shape shape{6, 11};
  CaseTensor zeros = in("zeros", shape);
  zeros.low = zeros.high = 0;
  return {{"xent_bwd/whole",
           type,
           {in("logits", shape), own("t", Role::in, DType::i32, {6}, tokens(6, 9)), zeros, out("gradient", shape),
            own("loss", Role::out, DType::f64, {2}), statistic_out("max", {6}), statistic_out("sum", {6}),
            statistic_out("target", {6})},
           [](V v, Use use) {
             use(XentFused{v["loss"], v["max"], v["sum"], v["target"], v["logits"], v["t"], 9});
             use(Add{v["gradient"], v["logits"], v["zeros"]});
             use(XentBwd{v["gradient"], v["max"], v["sum"], v["t"], 0, 9, 1, nullptr});
           }},
          "loss",
          {{"logits", "gradient"}}};
}

Differentiated rope_of(DType type) {
  const Shape shape{5, 2, 3, 8};
  return {{"rope/inverse",
           type,
           {in("x", shape), in("c", shape), out("y", shape), out("dx", shape)},
           [](V v, Use use) {
             use(Rope{v["y"], v["x"], 7, 10000, false});
             use(Rope{v["dx"], v["c"], 7, 10000, true});
           }},
          "y",
          {{"x", "dx"}}};
}

std::vector<Differentiated> differentiated(DType type) {
  return {activation_of(type, Activation::gelu_tanh, "gelu", 1),
          activation_of(type, Activation::silu_mul, "silu_mul", 2),
          layer_norm_of(type),
          rms_norm_of(type),
          softmax_of(type),
          linear_of(type),
          attention_of(type),
          embedding_of(type),
          cross_entropy_of(type),
          rope_of(type)};
}

const CaseTensor& tensor_of(const OperationCase& one, const std::string& name) {
  return *std::ranges::find(one.tensors, name, &CaseTensor::name);
}

/// A fixed direction, each component 1 or -1.
double direction(std::size_t i) {
  return (philox_at(kCaseKey, i, 77, 0)[i % 4] & 1) != 0 ? 1 : -1;
}

double loss_of(const Differentiated& of, const CaseResults& results) {
  const std::vector<double>& y = results.at(of.output);
  const bool has_factors = std::ranges::find(of.one.tensors, "c", &CaseTensor::name) != of.one.tensors.end();
  const std::vector<double> c = has_factors ? values_of(of.one, tensor_of(of.one, "c")) : std::vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * (has_factors ? c[i] : 1);
  return sum;
}

/// The step is a power of two. In f32 it is large, because the forward is rounded.
struct Precision {
  double step, tolerance;
};
Precision precision_of(DType type) {
  return type == DType::f64 ? Precision{0x1p-16, 1e-7} : Precision{0x1p-6, 5e-3};
}

void check_gradient(KernelSession& session, const Differentiated& of, const char* input, const char* gradient,
                    const CaseResults& results, Report& report) {
  const auto [step, tolerance] = precision_of(of.one.dtype);
  const auto loss_at = [&](double distance) {
    Differentiated moved = of;
    for (CaseTensor& tensor : moved.one.tensors) {
      tensor.values = values_of(of.one, tensor);
      if (tensor.name != input) continue;
      for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] += distance * direction(i);
    }
    return loss_of(moved, session.run(moved.one).results);
  };
  const double difference = (loss_at(step) - loss_at(-step)) / (2 * step);
  double derivative = 0, magnitude = 1e-3;
  const std::vector<double>& values = results.at(gradient);
  for (std::size_t i = 0; i < values.size(); ++i) {
    derivative += values[i] * direction(i);
    magnitude += std::abs(values[i]);
  }
  report.expect(std::abs(difference - derivative) <= tolerance * magnitude,
                "{}: by {}, differences of the forward give {}, but the backward gives {}", to_text(of.one), input,
                difference, derivative);
}

void backward_is_the_derivative(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for (const DType type : subject.answers.types) {
    if (type != DType::f32 && type != DType::f64) continue; // differences of 16-bit results are too coarse
    for (const Differentiated& of : differentiated(type)) {
      const CaseRun run = session.run(of.one);
      if (!run.refusals.empty()) continue;
      for (const auto& [input, gradient] : of.gradients)
        check_gradient(session, of, input, gradient, run.results, report);
    }
  }
}

std::string unless_wide_types(const KernelSubject& subject) {
  if (std::string reason = unless_computes(subject); !reason.empty()) return reason;
  const auto is_wide = [](DType type) { return type == DType::f32 || type == DType::f64; };
  return std::ranges::any_of(subject.answers.types, is_wide) ? "" : "the set computes in 16-bit types only";
}

constexpr KernelCheck kKernelDerivativeChecks[] = {
    {"Backward.IsTheDerivativeOfTheForward", "K14", unless_wide_types, backward_is_the_derivative},
};

} // namespace

std::span<const KernelCheck> kernel_derivative_checks() {
  return kKernelDerivativeChecks;
}

} // namespace triax::conformance::cases
