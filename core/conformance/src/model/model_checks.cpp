// SPDX-License-Identifier: Apache-2.0
// The suite of models, and what its checks share.
#include <algorithm>

#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr std::int64_t kVocabularies[] = {11, 16, 64, 257, 50257};
constexpr std::int64_t kUnevenVocabularies[] = {9, 11, 13};
constexpr DType kTypesByPrecision[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

/// Asks the model and the kernel set of a subject, each call under the guard.
class SupportProbe {
 public:
  SupportProbe(const ModelSubject& subject, const CallGuard& guard)
      : subject_(subject),
        guard_(guard),
        model_(subject.model({subject.options, null_log(), one_, 0, 1})),
        kernels_(subject.kernels()) {}

  /// Adds refusals if there is nothing that the model and the kernel set support together.
  ModelSupport run(Refusals& refusals) const {
    if (!computes_on_host()) {
      refusals.add(make_refusal(ErrorCode::kUnsupported, {"--kernels"}, "the kernel set does not compute on the host")
                       .with_hint("use kernels-reference or kernels-cpu"));
      return {};
    }
    for (const std::int64_t vocab : kVocabularies) {
      ModelSupport out;
      out.vocab = vocab;
      for (const DType type : kTypesByPrecision)
        if (has_kernels(type) && accepts({.compute = type}, vocab)) out.types.push_back(type);
      if (out.types.empty()) continue;
      add_shapes(out);
      return out;
    }
    refusals.add(answer(request_of(ModelShape(), kVocabularies[0]), one_));
    if (refusals.empty())
      refusals.add(make_refusal(ErrorCode::kUnsupported, {}, "no type is supported by both {} and the kernel set",
                                subject_.name));
    return {};
  }

 private:
  bool computes_on_host() const {
    const auto ask = [this](const char* function, const char* clause, const auto& call) {
      return probe(guard_, {KernelSet::kKind, function, clause}, call);
    };
    return ask("device_kind", "K4", [this] { return kernels_->device_kind(); }) == DeviceKind::host &&
           ask("computes", "", [this] { return kernels_->computes(); });
  }
  bool has_kernels(DType type) const {
    const KernelRequest request{type, master_type(type)};
    return probe(guard_, {KernelSet::kKind, "supports", "K1"}, [&] { return kernels_->supports(request); }).empty();
  }
  Refusals answer(const ModelRequest& request, const Layout& layout) const {
    return probe(guard_, {Model::kKind, "supports", "M1"}, [&] { return model_->supports(request, layout); });
  }
  bool accepts(const ModelShape& shape, std::int64_t vocab) const {
    return answer(request_of(shape, vocab), Layout::ptd(shape.pipeline, shape.tensor, 1)).empty();
  }

  void add_shapes(ModelSupport& out) const {
    const DType compute = out.types.front();
    for (const int tensor : {2, 4}) {
      if (!accepts({.compute = compute, .tensor = tensor}, out.vocab)) continue;
      out.tensor.push_back(tensor);
      if (accepts({.compute = compute, .tensor = tensor, .sequence_parallel = true}, out.vocab))
        out.sequence.push_back(tensor);
    }
    out.generate = accepts({.compute = compute, .purpose = Purpose::generate}, out.vocab);
    out.pipeline = accepts({.compute = compute, .pipeline = 2}, out.vocab);
    ModelRequest recompute = request_of({.compute = compute}, out.vocab);
    recompute.recompute = true;
    out.recompute = answer(recompute, one_).empty();
  }

  const ModelSubject& subject_;
  const CallGuard& guard_;
  const Layout one_ = Layout::ptd(1, 1, 1);
  const Object<Model> model_;
  const Object<KernelSet> kernels_;
};

} // namespace

ModelSupport find_support(const ModelSubject& subject, Refusals& refusals, const CallGuard& guard) {
  return SupportProbe(subject, guard).run(refusals);
}

std::vector<Check> model_checks(const ModelSubject& subject) {
  std::vector<Check> out;
  for (const auto table : {answer_checks(), description_checks(), gradient_checks(), order_checks(), memory_checks(),
                           sample_checks(), dry_run_checks(), rank_checks(), step_checks(), generating_checks()})
    for (Check& check : bind_checks(table, subject)) out.push_back(std::move(check));
  return out;
}

std::vector<ModelShape> shapes_of_types(const ModelSubject& subject) {
  std::vector<ModelShape> out;
  for (const DType type : subject.support.types) out.push_back({.compute = type});
  return out;
}

ModelShape most_precise_shape(const ModelSubject& subject) {
  return shapes_of_types(subject).at(0);
}

std::vector<ModelShape> parallel_shapes(const ModelSubject& subject) {
  std::vector<ModelShape> out = {most_precise_shape(subject)};
  for (const bool sequence : {false, true})
    for (const int tensor : sequence ? subject.support.sequence : subject.support.tensor) {
      out.push_back(out.front());
      out.back().tensor = tensor;
      out.back().sequence_parallel = sequence;
    }
  return out;
}

std::vector<ModelSubject> with_uneven_vocabularies(const ModelSubject& subject, const ModelShape& shape) {
  std::vector<ModelSubject> out = {subject};
  const Layout layout = Layout::ptd(shape.pipeline, shape.tensor, 1);
  const Object<Model> model = subject.model({subject.options, null_log(), layout, 0, 1});
  for (const std::int64_t vocab : kUnevenVocabularies) {
    if (vocab == subject.support.vocab || !model->supports(request_of(shape, vocab), layout).empty()) continue;
    out.push_back(subject);
    out.back().support.vocab = vocab;
  }
  return out;
}

std::string tensor_rank_skip_reason(const ModelSubject& subject) {
  if (!subject.ranks.backend) return "this program has no communicator";
  return subject.support.tensor.empty() ? "the model supports neither 2 nor 4 tensor ranks with these options" : "";
}

} // namespace triax::conformance
