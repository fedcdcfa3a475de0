// SPDX-License-Identifier: Apache-2.0
// Models that generate: calls of some rows, against one call of all rows and against training.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr double kLogitRoundings = 1000; // products of other sizes may add in another order

ModelShape generating_shape(const ModelSubject& subject) {
  ModelShape shape = most_precise_shape(subject);
  shape.purpose = Purpose::generate;
  return shape;
}

/// Fills what no call may read of earlier ones.
void fill_between_calls(ModelRun& run) {
  for (std::size_t at = 0; at < run.count(); ++at) {
    const auto& stash = run.model().specs(at).stash;
    for (std::size_t i = 0; i < stash.size(); ++i)
      if (stash[i].life != Life::sequence) ModelRun::fill_bytes(run.views(at).stash[i], kNaN);
    for (const TensorView& out : run.views(at).out) ModelRun::fill_bytes(out, kNaN);
  }
  run.fill_scratch(kNaN);
}

/// The logits [s, b, V] of all rows, in calls of these numbers of rows.
std::vector<double> logits_of(ModelRun& run, std::span<const std::int64_t> calls) {
  std::vector<double> out;
  std::int64_t begin = 0;
  for (const std::int64_t rows : calls) {
    fill_between_calls(run);
    run.set_rows({begin, rows});
    run.forward();
    const std::vector<double> all = values_of(run.views(run.count() - 1).out.front());
    const std::int64_t row = run.model().shape().micro * run.model().context().vocab;
    out.insert(out.end(), all.begin(), all.begin() + rows * row);
    begin += rows;
  }
  return out;
}

/// A part of the prompt, another one, then single tokens.
std::vector<std::int64_t> call_sizes(std::int64_t sequence) {
  std::vector<std::int64_t> out;
  std::int64_t left = sequence;
  for (const std::int64_t rows : {(sequence + 1) / 2, std::int64_t{2}})
    if (rows <= left) {
      out.push_back(rows);
      left -= rows;
    }
  out.insert(out.end(), static_cast<std::size_t>(left), 1);
  return out;
}

/// The shape, for calls of these numbers of rows.
ModelShape with_rows(ModelShape shape, std::span<const std::int64_t> calls) {
  shape.max_rows = *std::ranges::max_element(calls);
  return shape;
}

void tokens_equal_a_whole_call(const ModelSubject& subject, Report& report) {
  const ModelShape shape = generating_shape(subject);
  ModelRun whole(subject, shape);
  const std::int64_t sequence = whole.model().context().sequence;
  const std::vector<std::int64_t> sizes = call_sizes(sequence), single(static_cast<std::size_t>(sequence), 1);
  const std::int64_t all[] = {sequence};
  // As in the engine, the largest call has fewer rows than the sequence.
  ModelRun parts(subject, with_rows(shape, sizes)), tokens(subject, with_rows(shape, single));
  const std::vector<double> expected = logits_of(whole, all);
  const double tolerance = kLogitRoundings * epsilon_of(shape.compute) * magnitude_of(expected);
  const std::string in_parts = difference(logits_of(parts, sizes), expected, tolerance);
  report.expect(in_parts.empty(), "{}: the logits of a prompt in two calls, then of single tokens: {}", to_text(shape),
                in_parts);
  const std::string alone = difference(logits_of(tokens, single), expected, tolerance);
  report.expect(alone.empty(), "{}: the logits of single tokens: {}", to_text(shape), alone);
}

/// The cross-entropy of logits [s, b, V], for each sample.
std::vector<double> losses_from(const std::vector<double>& logits, const ModelRun& run) {
  const auto micro = static_cast<std::size_t>(run.model().shape().micro),
             vocab = static_cast<std::size_t>(run.model().context().vocab);
  std::vector<double> out(micro);
  for (std::size_t row = 0; row < logits.size() / vocab; ++row) {
    const auto of_row = std::span(logits).subspan(row * vocab, vocab);
    const double largest = *std::ranges::max_element(of_row);
    double sum = 0;
    for (const double logit : of_row) sum += std::exp(logit - largest);
    const auto target = static_cast<std::size_t>(run.targets().as<std::int32_t>()[row]);
    out[row % micro] += largest + std::log(sum) - of_row[target];
  }
  return out;
}

void logits_give_the_loss(const ModelSubject& subject, Report& report) {
  const ModelShape shape = most_precise_shape(subject);
  ModelRun trained(subject, shape), generated(subject, generating_shape(subject));
  trained.settings().dropout = false;
  trained.forward();
  const std::vector<double> expected = values_of(trained.views(trained.count() - 1).out.front());
  const std::int64_t all[] = {generated.model().context().max_rows};
  const std::string differs = difference(losses_from(logits_of(generated, all), generated), expected,
                                         kLogitRoundings * epsilon_of(shape.compute) * magnitude_of(expected));
  report.expect(differs.empty(), "{}: the loss from the logits, against that of training without dropout: {}",
                to_text(shape), differs);
}

void ranks_give_the_logits_of_one(const ModelSubject& subject, Report& report) {
  ModelShape shape = generating_shape(subject);
  ModelRun one(subject, shape);
  const std::vector<std::int64_t> calls = call_sizes(one.model().context().max_rows);
  const std::vector<double> expected = logits_of(one, calls);
  const double tolerance = kLogitRoundings * epsilon_of(shape.compute) * magnitude_of(expected);
  for (const int tensor : subject.support.tensor) {
    shape.tensor = tensor;
    std::mutex mutex; // guards `first`
    std::optional<std::vector<double>> first;
    run_ranks(subject.ranks, tensor, report, [&](Rank& rank) {
      Groups groups;
      groups.set(std::string(kTensorAxis), &rank.join(kTensorAxis));
      ModelRun run(subject, shape, {.rank = rank.index(), .device = &rank.device(), .groups = &groups});
      const std::vector<double> logits = logits_of(run, calls);
      rank.barrier("the end of the calls");
      const std::lock_guard lock(mutex);
      if (!first) first = logits;
      const std::string of_ranks = difference(logits, *first, 0), of_one = difference(logits, expected, tolerance);
      rank.expect(of_ranks.empty(), "{}: the logits differ from those of another rank: {}", to_text(shape), of_ranks);
      rank.expect(of_one.empty(), "{}: the logits, against one rank: {}", to_text(shape), of_one);
    });
  }
}

std::string unless_generates_on_ranks(const ModelSubject& subject) {
  return subject.support.generate ? tensor_rank_skip_reason(subject) : "the model refuses to generate";
}

std::string unless_generates(const ModelSubject& subject) {
  return subject.support.generate ? "" : "the model refuses to generate";
}

constexpr ModelCheck kGeneratingChecks[] = {
    {"Generating.TokensEqualAWholeCall", "M27", unless_generates, tokens_equal_a_whole_call},
    {"Generating.RanksGiveTheLogitsOfOne", "M27", unless_generates_on_ranks, ranks_give_the_logits_of_one},
    {"Generating.LogitsGiveTheLossOfTraining", "M27", unless_generates, logits_give_the_loss},
};

} // namespace

std::span<const ModelCheck> generating_checks() {
  return kGeneratingChecks;
}

} // namespace triax::conformance
