// SPDX-License-Identifier: Apache-2.0
// Models on several ranks, against one rank.
#include <algorithm>

#include "checks.hpp"
#include "merged_gradients.hpp"
#include "planned_model.hpp"

namespace triax::conformance {

namespace {

/// Of the largest loss or gradient. The partial sums of a few hundred terms are added in another order.
constexpr double kRoundings = 1000;

/// Runs `body` on the ranks of a shape, with their model. Ranks that post different collectives would wait forever.
void run_model_ranks(const ModelSubject& subject, const ModelShape& shape, Report& report,
                     const std::function<void(ModelRun&, Communicator*)>& body) {
  if (!collective_differences(subject, shape).empty())
    return report.fail(text("{}: not run, because the ranks post different collectives: see the check {}",
                            to_text(shape), "Ranks.PostTheSameCollectives"));
  run_ranks(subject.ranks, shape.tensor, report, [&](Rank& rank) {
    Groups groups;
    Communicator* const tensor = shape.tensor > 1 ? &rank.join(kTensorAxis) : nullptr;
    if (tensor) groups.set(std::string(kTensorAxis), tensor);
    ModelRun run(subject, shape, {.rank = rank.index(), .device = &rank.device(), .groups = &groups});
    body(run, tensor);
    rank.meet("the end of the passes");
  });
}

/// Runs all passes on the ranks of a shape. Reports what ranks must have in equal bits, and padding, to `shared`.
void train_ranks(const ModelSubject& subject, const ModelShape& shape, MergedGradients& merged, Report& report,
                 Report& shared) {
  run_model_ranks(subject, shape, report, [&](ModelRun& run, Communicator*) {
    run.train();
    merged.add(run, shared);
  });
}

void compare_merged(const ModelShape& shape, const MergedGradients& got, const MergedGradients& expected,
                    Report& report) {
  double loss = 0, gradient = 0;
  for (const auto& [name, values] : expected.values) {
    double& largest = name.starts_with("the loss") ? loss : gradient;
    largest = std::max(largest, magnitude_of(values));
  }
  for (const auto& [name, values] : expected.values) {
    const double scale = name.starts_with("the loss") ? loss : gradient;
    const std::string differs = difference(got.values.at(name), values, kRoundings * epsilon_of(shape.compute) * scale);
    report.expect(differs.empty(), "{}: {}, against one rank: {}", to_text(shape), name, differs);
  }
}

std::vector<ModelShape> shapes_of_several(const ModelSubject& subject) {
  std::vector<ModelShape> out = shapes_of_ranks(subject);
  std::erase_if(out, [](const ModelShape& shape) { return shape.tensor == 1; });
  return out;
}

void ranks_equal_one(const ModelSubject& subject, Report& report) {
  Report unused(report.activities()); // for another check
  MergedGradients one;
  train_ranks(subject, finest_shape(subject), one, report, unused);
  for (const ModelShape& shape : shapes_of_several(subject)) {
    MergedGradients several;
    train_ranks(subject, shape, several, report, unused);
    if (report.has_failed()) return;
    compare_merged(shape, several, one, report);
  }
}

/// Several types, because sums of different lengths may round to the same bits in one.
void ranks_have_equal_bits(const ModelSubject& subject, Report& report) {
  for (const ModelShape& of_type : shapes_of_types(subject))
    for (ModelShape shape : shapes_of_several(subject)) {
      shape.compute = of_type.compute;
      MergedGradients merged;
      train_ranks(subject, shape, merged, report, report);
    }
}

void padding_has_no_gradient(const ModelSubject& subject, Report& report) {
  MergedGradients merged;
  ModelRun run(subject, finest_shape(subject));
  run.train();
  merged.add(run, report);
}

/// Passes the boundary between two stages, as a transfer does.
void copy_boundary(const std::vector<TensorView>& to, const std::vector<TensorView>& from, Layer& consumer,
                   Layer& producer) {
  const auto inputs = consumer.inputs();
  const auto outputs = producer.outputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_data(inputs[i])) continue;
    const auto found = std::ranges::find(outputs, inputs[i].name, &TensorSpec::name);
    TRIAX_REQUIRE(found != outputs.end(), "{} takes \"{}\", which {} does not make", consumer.name(), inputs[i].name,
                  producer.name());
    const auto output = static_cast<std::size_t>(found - outputs.begin());
    std::copy_n(from[output].as<std::byte>(), from[output].bytes(), to[i].as<std::byte>());
  }
}

void return_boundary(const std::vector<TensorView>& dout, const std::vector<TensorView>& din, Layer& consumer,
                     Layer& producer) {
  const auto outputs = producer.outputs();
  const auto inputs = consumer.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_data(inputs[i])) continue;
    const auto found = std::ranges::find(outputs, inputs[i].name, &TensorSpec::name);
    const auto output = static_cast<std::size_t>(found - outputs.begin());
    std::copy_n(din[i].as<std::byte>(), din[i].bytes(), dout[output].as<std::byte>());
  }
}

Tensors train_stages(const ModelSubject& subject, const ModelShape& shape, int cut) {
  ModelRun before(subject, shape, {.rank = 0, .end = cut}), after(subject, shape, {.rank = 1, .first = cut});
  const std::size_t last = before.count() - 1;
  Layer &producer = before.model().layer(last), &consumer = after.model().layer(0);
  for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) {
    before.forward(microbatch);
    copy_boundary(after.views(0, microbatch).in, before.views(last, microbatch).out, consumer, producer);
    after.forward(microbatch);
    after.backward_input(microbatch);
    return_boundary(before.views(last, microbatch).dout, after.views(0, microbatch).din, consumer, producer);
    before.backward_input(microbatch);
    after.backward_weight(microbatch);
    before.backward_weight(microbatch);
  }
  Tensors out = after.results();
  out.merge(before.gradients());
  return out;
}

void stages_equal_one(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun whole(subject, shape);
    whole.train();
    ModelShape stages = shape;
    stages.pipeline = 2;
    for (int cut = 1; cut < static_cast<int>(whole.count()); ++cut)
      expect_equal(report, stages, text("with a second stage that begins at layer {}", cut),
                   train_stages(subject, stages, cut), whole.results());
  }
}

std::string unless_stages(const ModelSubject& subject) {
  return subject.support.pipeline ? "" : "the model refuses pipeline ranks";
}

/// Each pass of a rank against its plan.
void compare_collectives(ModelRun& run, const CommStats& stats, Report& report) {
  RecordingKernels kernels(nullptr);
  PlannedModel plan(run.model(), kernels);
  const CommStats& planned = plan.tensor().stats();
  for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight})
    for (std::size_t at = 0; at < run.count(); ++at) {
      const CommStats before = stats, planned_before = planned;
      kernels.clear();
      plan.run(at, pass);
      run.run(pass, at);
      const std::uint64_t ops = stats.ops - before.ops, planned_ops = planned.ops - planned_before.ops;
      const std::uint64_t bytes = stats.bytes_out - before.bytes_out;
      const std::uint64_t planned_bytes = planned.bytes_out - planned_before.bytes_out;
      report.expect(ops == planned_ops && bytes == planned_bytes,
                    "{}, rank {}: {} of {} posts {} collectives, which send {} bytes, and a plan {} and {}",
                    to_text(run.model().shape()), run.model().context().rank, name_of(pass), run.model().name(at), ops,
                    bytes, planned_ops, planned_bytes);
    }
}

void ranks_post_what_a_plan_posts(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_several(subject))
    run_model_ranks(subject, shape, report,
                    [&](ModelRun& run, Communicator* tensor) { compare_collectives(run, tensor->stats(), report); });
}

constexpr ModelCheck kRankChecks[] = {
    {"Ranks.EqualOneRank", "M23", unless_backend, ranks_equal_one},
    {"Ranks.HaveEqualBits", "M24", unless_backend, ranks_have_equal_bits},
    {"Ranks.PostWhatAPlanPosts", "M21", unless_backend, ranks_post_what_a_plan_posts},
    {"Padding.HasNoGradient", "M25", nullptr, padding_has_no_gradient},
    {"Stages.HaveTheBitsOfOne", "M26", unless_stages, stages_equal_one},
};

} // namespace

std::span<const ModelCheck> rank_checks() {
  return kRankChecks;
}

} // namespace triax::conformance
