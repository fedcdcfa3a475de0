// SPDX-License-Identifier: Apache-2.0
// The suite of models, and what its checks share.
#include <algorithm>
#include <cmath>
#include <limits>

#include "checks.hpp"

namespace triax::conformance {

namespace {

constexpr std::int64_t kVocabularies[] = {11, 16, 64, 257, 50257};
constexpr DType kTypesByPrecision[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

ModelSupport support_of_types(const Model& model, const KernelSet& kernels, std::int64_t vocab) {
  ModelSupport out;
  out.vocab = vocab;
  const Layout one = Layout::ptd(1, 1, 1);
  for (const DType type : kTypesByPrecision)
    if (kernels.supports({type, master_type(type)}).empty() &&
        model.supports(request_of({.compute = type}, vocab), one).empty())
      out.types.push_back(type);
  return out;
}

void add_ranks(const Model& model, ModelSupport& out) {
  ModelShape shape{.compute = out.types.front()};
  const auto accepts = [&](const ModelShape& of) {
    return model.supports(request_of(of, out.vocab), Layout::ptd(of.pipeline, of.tensor, 1)).empty();
  };
  for (const int tensor : {2, 4}) {
    shape.tensor = tensor;
    shape.sequence_parallel = false;
    if (!accepts(shape)) continue;
    out.tensor.push_back(tensor);
    shape.sequence_parallel = true;
    if (accepts(shape)) out.sequence.push_back(tensor);
  }
  out.generate = accepts({.compute = out.types.front(), .purpose = Purpose::generate});
  out.pipeline = accepts({.compute = out.types.front(), .pipeline = 2});
  ModelRequest recompute = request_of({.compute = out.types.front()}, out.vocab);
  recompute.recompute = true;
  out.recompute = model.supports(recompute, Layout::ptd(1, 1, 1)).empty();
}

} // namespace

ModelSupport find_support(const ModelSubject& subject, Refusals& refusals) {
  const Layout one = Layout::ptd(1, 1, 1);
  const Object<Model> model = subject.model({subject.options, null_log(), one, 0, 1});
  const Object<KernelSet> kernels = subject.kernels();
  if (kernels->device_kind() != DeviceKind::host || !kernels->computes()) {
    refusals.add(make_refusal(ErrorCode::kUnsupported, {"--kernels"}, "the kernel set does not compute on the host")
                     .with_hint("use kernels-reference or kernels-cpu"));
    return {};
  }
  for (const std::int64_t vocab : kVocabularies) {
    ModelSupport out = support_of_types(*model, *kernels, vocab);
    if (out.types.empty()) continue;
    add_ranks(*model, out);
    return out;
  }
  refusals.add(model->supports(request_of({}, kVocabularies[0]), one));
  if (refusals.empty())
    refusals.add(
        make_refusal(ErrorCode::kUnsupported, {}, "no type is supported by both {} and the kernel set", subject.name));
  return {};
}

std::vector<Check> model_checks(const ModelSubject& subject) {
  std::vector<Check> out;
  for (const auto table : {answer_checks(), description_checks(), gradient_checks(), order_checks(), memory_checks(),
                           sample_checks(), planning_checks(), rank_checks(), generating_checks()})
    for (Check& check : bind_checks(table, subject)) out.push_back(std::move(check));
  return out;
}

std::vector<ModelShape> shapes_of_types(const ModelSubject& subject) {
  std::vector<ModelShape> out;
  for (const DType type : subject.support.types) out.push_back({.compute = type});
  return out;
}

ModelShape finest_shape(const ModelSubject& subject) {
  return shapes_of_types(subject).at(0);
}

std::vector<ModelShape> shapes_of_ranks(const ModelSubject& subject) {
  std::vector<ModelShape> out = {finest_shape(subject)};
  for (const bool sequence : {false, true})
    for (const int tensor : sequence ? subject.support.sequence : subject.support.tensor) {
      out.push_back(out.front());
      out.back().tensor = tensor;
      out.back().sequence_parallel = sequence;
    }
  return out;
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::epsilon();
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

double magnitude_of(std::span<const double> values) {
  double out = 0;
  for (const double value : values) out = std::max(out, std::abs(value));
  return out;
}

std::string difference(std::span<const double> got, std::span<const double> expected, double tolerance) {
  if (got.size() != expected.size()) return text("{} elements, must be {}", got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= tolerance)) // NaN differs
      return text("element {} is {}, must be {} up to {}", i, got[i], expected[i], tolerance);
  return {};
}

std::string unless_backend(const ModelSubject& subject) {
  if (!subject.ranks.backend) return "this program has no communicator";
  return subject.support.tensor.empty() ? "the model supports neither 2 nor 4 tensor ranks with these options" : "";
}

} // namespace triax::conformance
