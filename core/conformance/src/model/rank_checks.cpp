// SPDX-License-Identifier: Apache-2.0
// Models on several ranks, against one rank.
#include <algorithm>

#include "dry_run_model.hpp"
#include "merged_gradients.hpp"
#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

/// The tolerance, in roundings of the largest loss or gradient. The partial sums of a few hundred terms are added in
/// another order.
constexpr double kRoundings = 1000;

/// Runs all passes on the ranks of a shape.
void train_ranks(const ModelSubject& subject, const ModelShape& shape, MergedGradients& merged, Report& report) {
  run_model_ranks(subject, shape, report, [&](ModelRun& run, Communicator*) {
    run.train();
    merged.add(run);
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
    const auto found = got.values.find(name);
    report.expect(found != got.values.end(), "{}: there is no {}, which one rank has", to_text(shape), name);
    if (found == got.values.end()) continue;
    const std::string differs = difference(found->second, values, kRoundings * epsilon_of(shape.compute) * scale);
    report.expect(differs.empty(), "{}: {}, against one rank: {}", to_text(shape), name, differs);
  }
}

void ranks_equal_one(const ModelSubject& subject, Report& report) {
  MergedGradients one;
  train_ranks(subject, most_precise_shape(subject), one, report);
  for (const ModelShape& shape : shapes_of_several(subject)) {
    MergedGradients several;
    train_ranks(subject, shape, several, report);
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
      train_ranks(subject, shape, merged, report);
      for (const std::string& differs : merged.shared_differences()) report.fail(differs);
    }
}

void padding_of_one_rank(const ModelSubject& subject, Report& report) {
  MergedGradients merged;
  ModelRun run(subject, most_precise_shape(subject));
  run.train();
  merged.add(run);
  for (const std::string& differs : merged.padding_differences()) report.fail(differs);
}

void padding_of_ranks(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_several(subject))
    for (const ModelSubject& sized : with_uneven_vocabularies(subject, shape)) {
      MergedGradients merged;
      train_ranks(sized, shape, merged, report);
      for (const std::string& differs : merged.padding_differences())
        report.fail(text("{} tokens, {}", sized.support.vocab, differs));
    }
}

/// Two stages of a rank each, cut behind a layer of the first.
class TwoStages {
 public:
  TwoStages(const ModelSubject& subject, const ModelShape& shape, int cut)
      : before_(subject, shape, {.rank = 0, .end = cut}), after_(subject, shape, {.rank = 1, .first = cut}) {
    const std::vector<TensorSpec>& inputs = after_.model().specs(0).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!is_data(inputs[i]))
        pairs_.push_back({find_output(before_.model().specs(last()), inputs[i], before_.model().name(last()),
                                      after_.model().name(0)),
                          i});
  }

  Tensors train() {
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) {
      before_.forward(microbatch);
      for (const auto& [output, input] : pairs_)
        copy(after_.views(0, microbatch).in[input], before_.views(last(), microbatch).out[output]);
      after_.forward(microbatch);
      after_.backward_input(microbatch);
      for (const auto& [output, input] : pairs_)
        copy(before_.views(last(), microbatch).dout[output], after_.views(0, microbatch).din[input]);
      before_.backward_input(microbatch);
      after_.backward_weight(microbatch);
      before_.backward_weight(microbatch);
    }
    Tensors out = after_.results();
    out.merge(before_.gradients());
    return out;
  }

 private:
  /// As a transfer does, which has equal sizes on both sides.
  static void copy(const TensorView& to, const TensorView& from) {
    std::copy_n(from.as<std::byte>(), from.bytes(), to.as<std::byte>());
  }
  std::size_t last() const { return before_.count() - 1; }

  ModelRun before_, after_;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_; // an output before the cut, and the input behind it
};

void stages_equal_one(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun whole(subject, shape);
    whole.train();
    ModelShape stages = shape;
    stages.pipeline = 2;
    for (int cut = 1; cut < static_cast<int>(whole.count()); ++cut)
      expect_equal(report, stages, text("with a second stage that begins at layer {}", cut),
                   TwoStages(subject, stages, cut).train(), whole.results());
  }
}

std::string unless_stages(const ModelSubject& subject) {
  return subject.support.pipeline ? "" : "the model refuses pipeline ranks";
}

/// Each pass of a rank against its dry run.
void compare_collectives(ModelRun& run, const CommStats& stats, Report& report) {
  RecordingKernels kernels(nullptr);
  DryRunModel dry_run(run.model(), kernels);
  const CommStats& dry_stats = dry_run.tensor().stats();
  for (const Pass pass : kEveryPass)
    for (std::size_t at = 0; at < run.count(); ++at) {
      if (!run.model().has_pass(pass, at)) continue;
      const CommStats before = stats, dry_before = dry_stats;
      kernels.clear();
      dry_run.run(at, pass);
      run.run(pass, at);
      const std::uint64_t ops = stats.ops - before.ops, dry_ops = dry_stats.ops - dry_before.ops;
      const std::uint64_t bytes = stats.bytes_out - before.bytes_out;
      const std::uint64_t dry_bytes = dry_stats.bytes_out - dry_before.bytes_out;
      report.expect(ops == dry_ops && bytes == dry_bytes,
                    "{}, rank {}: {} of {} posts {} collectives, which send {} bytes, but a dry run {} and {}",
                    to_text(run.model().shape()), run.model().context().rank, name_of(pass), run.model().name(at), ops,
                    bytes, dry_ops, dry_bytes);
    }
}

void ranks_post_what_a_dry_run_posts(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_several(subject))
    run_model_ranks(subject, shape, report,
                    [&](ModelRun& run, Communicator* tensor) { compare_collectives(run, tensor->stats(), report); });
}

/// A block that leaves out the sums of a repeated forward, which its stash needs, shows it on several ranks only.
void ranks_repeat_the_stash(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_several(subject))
    run_model_ranks(subject, shape, report, [&](ModelRun& run, Communicator*) {
      run.forward();
      for (std::size_t at = run.count(); at-- > 0;) {
        if (!run.model().has_pass(Pass::recompute, at)) continue;
        const Tensors before = written_stash(run, at);
        for (const TensorView& view : run.views(at).stash) ModelRun::fill_bytes(view, kNaN);
        run.run(Pass::recompute, at);
        expect_equal(report, shape,
                     text("on rank {}, after forward() with LayerCall::again", run.model().context().rank),
                     written_stash(run, at), before);
      }
    });
}

/// Dry runs come first: ranks that post different collectives would wait forever.
void ranks_recompute_alone(const ModelSubject& subject, Report& report) {
  RecordingKernels kernels(nullptr);
  for (const ModelShape& shape : shapes_of_several(subject))
    for (int rank = 0; rank < shape.tensor; ++rank) {
      const CreatedModel model(subject, shape, rank);
      DryRunModel plan(model, kernels);
      for (std::size_t at = 0; at < model.count(); ++at) {
        auto* const cheap = find_extension<CheapRecompute>(model.layer(at));
        if (!cheap) continue;
        kernels.clear();
        plan.tensor().clear();
        plan.recompute(*cheap, at);
        const std::vector<Collective>& posted = plan.tensor().collectives();
        report.expect(posted.empty(), "{}: recompute() of {} posts {} on rank {}", to_text(shape), model.name(at),
                      collectives_text(posted), rank);
      }
    }
  if (report.has_failed()) return;
  for (const ModelShape& shape : shapes_of_several(subject))
    run_model_ranks(subject, shape, report, [&](ModelRun& run, Communicator*) {
      run.forward();
      for (std::size_t at = run.count(); at-- > 0;) recompute_cheaply(run, at, 0, report);
    });
}

std::string unless_cheap_on_ranks(const ModelSubject& subject) {
  const std::string reason = unless_cheap(subject);
  return reason.empty() ? tensor_rank_skip_reason(subject) : reason;
}

std::string unless_recomputed_on_ranks(const ModelSubject& subject) {
  return subject.support.recompute ? tensor_rank_skip_reason(subject) : "the model refuses recomputation";
}

constexpr ModelCheck kRankChecks[] = {
    {"Ranks.EqualOneRank", "M23", tensor_rank_skip_reason, ranks_equal_one},
    {"Ranks.HaveEqualBits", "M24", tensor_rank_skip_reason, ranks_have_equal_bits},
    {"Ranks.PostWhatADryRunPosts", "M21", tensor_rank_skip_reason, ranks_post_what_a_dry_run_posts},
    {"Ranks.RepeatForwardsWithEqualBits", "M15", unless_recomputed_on_ranks, ranks_repeat_the_stash},
    {"Ranks.RecomputeCheaplyAlone", "M28", unless_cheap_on_ranks, ranks_recompute_alone},
    {"Padding.HasNoGradient", "M25", nullptr, padding_of_one_rank},
    {"Padding.OfRanksHasNoGradient", "M25", tensor_rank_skip_reason, padding_of_ranks},
    {"Stages.HaveTheBitsOfOne", "M26", unless_stages, stages_equal_one},
};

} // namespace

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
    rank.barrier("the end of the passes");
  });
}

std::vector<ModelShape> shapes_of_several(const ModelSubject& subject) {
  std::vector<ModelShape> out = parallel_shapes(subject);
  std::erase_if(out, [](const ModelShape& shape) { return shape.tensor == 1; });
  return out;
}

std::span<const ModelCheck> rank_checks() {
  return kRankChecks;
}

} // namespace triax::conformance
