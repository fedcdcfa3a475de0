// SPDX-License-Identifier: Apache-2.0
// Answers of the model: requests, layouts, numbers of layers, ties.
#include <algorithm>

#include "dry_run_model.hpp"
#include "model_check_tables.hpp"
#include "refusal_check.hpp"

namespace triax::conformance {

namespace {

constexpr DType kRequestTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr int kMaxTensor = 5;

struct ModelQuestion {
  ModelShape shape;
  bool recompute = false;
};

std::string to_text(const ModelQuestion& question) {
  return to_text(question.shape) + (question.recompute ? ", recompute" : "");
}

ModelRequest request_of(const ModelQuestion& question, std::int64_t vocab) {
  ModelRequest out = request_of(question.shape, vocab);
  out.recompute = question.recompute;
  return out;
}

/// The questions of an engine: sequence parallelism and recomputation only in training, the former over several ranks.
std::vector<ModelQuestion> questions() {
  std::vector<ModelQuestion> out;
  for (const DType type : kRequestTypes)
    for (int tensor = 1; tensor <= kMaxTensor; ++tensor)
      for (const int pipeline : {1, 2}) {
        const ModelShape shape{.compute = type, .tensor = tensor, .pipeline = pipeline};
        for (const bool recompute : {false, true}) {
          out.push_back({shape, recompute});
          if (tensor == 1) continue;
          out.push_back({shape, recompute});
          out.back().shape.sequence_parallel = true;
        }
        out.push_back({shape});
        out.back().shape.purpose = Purpose::generate;
      }
  return out;
}

Refusals ask(const Model& model, const ModelQuestion& question, std::int64_t vocab) {
  return model.supports(request_of(question, vocab), Layout::ptd(question.shape.pipeline, question.shape.tensor, 1));
}

bool names_an_axis(const Refusals& refusals) {
  return std::ranges::any_of(refusals, [](const Refusal& refusal) {
    return std::ranges::any_of(refusal.keys, [](const std::string& key) { return key.starts_with("parallel."); });
  });
}

void refuses_with_reasons(const ModelSubject& subject, Report& report) {
  const Layout one = Layout::ptd(1, 1, 1);
  const auto create = [&] { return subject.model({subject.options, null_log(), one, 0, 1}); };
  const Object<Model> model = create(), other = create();
  bool accepts_one_rank = false;
  for (const ModelQuestion& question : questions()) {
    const std::string at = to_text(question);
    Refusals refusals;
    const std::string error = error_of([&] { refusals = ask(*model, question, subject.support.vocab); });
    report.expect(error.empty(), "{}: supports() throws \"{}\"; it must return refusals", at, error);
    if (!error.empty()) continue;
    check_reasons(refusals, at, report);
    for (const Model* const each : {model.get(), other.get()})
      report.expect(std::ranges::equal(ask(*each, question, subject.support.vocab), refusals),
                    "{}: supports() answers differently in another call or object", at);
    if (refusals.empty()) {
      report.expect(is_floating(question.shape.compute), "{}: supports() accepts a type that is not floating", at);
      accepts_one_rank |= question.shape.tensor == 1 && question.shape.pipeline == 1;
      continue;
    }
    ModelQuestion alone = question;
    alone.shape.tensor = alone.shape.pipeline = 1;
    alone.shape.sequence_parallel = false;
    if (ask(*model, alone, subject.support.vocab).empty())
      report.expect(names_an_axis(refusals),
                    "{}: refused only because of the number of ranks, but no refusal names a key of [parallel]: \"{}\"",
                    at, refusals.front().message);
  }
  report.expect(accepts_one_rank, "supports() accepts no type on one rank");
}

void accepted_requests_pass_a_dry_run(const ModelSubject& subject, Report& report) {
  const Layout one = Layout::ptd(1, 1, 1);
  const Object<Model> model = subject.model({subject.options, null_log(), one, 0, 1});
  for (const ModelQuestion& question : questions()) {
    if (question.recompute || !ask(*model, question, subject.support.vocab).empty()) continue;
    for (int rank = 0; rank < question.shape.tensor * question.shape.pipeline; ++rank) {
      const std::string error = error_of([&] {
        const CreatedModel created(subject, question.shape, rank);
        RecordingKernels kernels(nullptr);
        DryRunModel(created, kernels).run_all();
      });
      report.expect(error.empty(), "{}, rank {}: supports() accepts it, but a dry run fails: {}", to_text(question),
                    rank, error);
    }
  }
}

const ParamSpec* find_parameter(const CreatedModel& model, int layer, const std::string& name) {
  if (layer < 0 || static_cast<std::size_t>(layer) >= model.count()) return nullptr;
  const std::vector<ParamSpec>& params = model.specs(static_cast<std::size_t>(layer)).params;
  const auto found = std::ranges::find(params, name, &ParamSpec::name);
  return found == params.end() ? nullptr : &*found;
}

void check_tie(const CreatedModel& model, const Tie& tie, Report& report) {
  const std::string at = text("{}, rank {}: the tie of layer {}, {} with layer {}, {}", to_text(model.shape()),
                              model.context().rank, tie.layer_a, tie.param_a, tie.layer_b, tie.param_b);
  const ParamSpec* const a = find_parameter(model, tie.layer_a, tie.param_a);
  const ParamSpec* const b = find_parameter(model, tie.layer_b, tie.param_b);
  report.expect(a && b && a != b, "{} does not name two parameters of the model", at);
  if (!a || !b) return;
  report.expect(tie.layer_a < tie.layer_b, "{}: the first must be in an earlier layer", at);
  report.expect(a->global == b->global && a->local == b->local && a->cuts == b->cuts, "{}: their shapes or cuts differ",
                at);
  report.expect(a->partial == b->partial, "{}: their partial sums differ", at);
  report.expect(a->init.kind == b->init.kind && a->init.std == b->init.std && a->decay == b->decay,
                "{}: their initial values or decay differ", at);
}

/// The answers that each object gives: "4 layers, 2 blocks from layer 1 on, 8 positions, tie of 0 table with 3 table".
std::string answers_of(const Model& model) {
  const ModelInfo info = model.info();
  std::string out = text("{} layers, {} blocks from layer {} on, {} positions", model.count(), info.blocks,
                         info.first_block, info.sequence);
  for (const Tie& tie : model.ties())
    out += text(", tie of {} {} with {} {}", tie.layer_a, tie.param_a, tie.layer_b, tie.param_b);
  return out;
}

/// Those with which an engine creates objects: of one rank, of tensor ranks, of pipeline ranks.
std::vector<ModelShape> shapes_of_objects(const ModelSubject& subject) {
  std::vector<ModelShape> out = parallel_shapes(subject);
  if (!subject.support.pipeline) return out;
  out.push_back(out.front());
  out.back().pipeline = 2;
  return out;
}

void numbers_are_those_of_the_layers(const ModelSubject& subject, Report& report) {
  const std::string expected = answers_of(CreatedModel(subject, most_precise_shape(subject)).model());
  for (const ModelShape& shape : shapes_of_objects(subject))
    for (int rank = 0; rank < shape.tensor * shape.pipeline; ++rank) {
      const CreatedModel created(subject, shape, rank);
      const Model& model = created.model();
      const ModelInfo info = model.info();
      const std::string answers = answers_of(model);
      report.expect(answers == expected,
                    "{}, rank {}: info(), count() and ties() give \"{}\", but \"{}\" in an object of one rank",
                    to_text(shape), rank, answers, expected);
      const bool are_layers = info.blocks >= 0 && info.blocks <= model.count() && info.first_block >= 0;
      report.expect(are_layers && info.first_block <= model.count() - info.blocks,
                    "{}: info() has {} blocks from layer {} on, but count() is {}", to_text(shape), info.blocks,
                    info.first_block, model.count());
      report.expect(info.sequence >= 1, "{}: info().sequence is {}", to_text(shape), info.sequence);
      for (const Tie& tie : model.ties()) check_tie(created, tie, report);
    }
}

constexpr ModelCheck kAnswerChecks[] = {
    {"Supports.RefusesWithReasonsAndKeys", "M1", nullptr, refuses_with_reasons},
    {"Supports.AcceptedRequestsPassADryRun", "M2", nullptr, accepted_requests_pass_a_dry_run},
    {"Info.IsThatOfTheLayers", "M3", nullptr, numbers_are_those_of_the_layers},
};

} // namespace

std::span<const ModelCheck> answer_checks() {
  return kAnswerChecks;
}

} // namespace triax::conformance
