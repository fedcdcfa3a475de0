// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "data/target_bytes.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr std::chrono::seconds kNoteEvery{10};

/// Every window of the corpora, once.
std::int64_t samples_of(const data::BlendedDataset& corpora) {
  std::int64_t out = 0;
  for (std::size_t corpus = 0; corpus < corpora.blend().corpora(); ++corpus)
    out += corpora.corpus(corpus).samples_per_epoch();
  return out;
}

} // namespace

Rank::Evaluated evaluate_samples(Rank& rank, std::int64_t samples, const executor::Request& request,
                                 const std::function<void(std::int64_t)>& evaluated) {
  TRIAX_REQUIRE(samples >= 1, "an evaluation on {} samples", samples);
  double sum = 0;
  std::int32_t requested = 0;
  for (std::int64_t done = 0; done < samples;) {
    const std::int64_t count = std::min(rank.global_batch(), samples - done);
    const Rank::BatchLoss batch = rank.evaluate_batch(done, count, request);
    sum += batch.sum;
    requested = batch.request;
    done += count;
    if (requested != 0 && done < samples) return {{}, requested};
    if (evaluated) evaluated(done);
  }
  const std::int64_t tokens = samples * rank.sequence();
  const double loss = sum / static_cast<double>(tokens);
  return {EvalResult{loss, std::exp(loss), tokens}, requested};
}

LoopResult run_evaluation(const config::RunConfig& run, int number, Rank& rank, const os::StopSignals& signals,
                          const Reports& reports, const Checkpoints& checkpoints) {
  LoopResult out;
  out.last_step = rank.steps_done();
  out.checkpoint = checkpoints.newest();
  const executor::Request request = [&signals] { return signals.caught(); };
  out.signal = rank.agree(signals.caught()); // all ranks have joined
  if (out.signal != 0) return out;

  const data::Corpora& corpora = run.data.validation;
  std::optional<data::BlendedDataset> data;
  if (!corpora.paths.empty() && (number == 0 || run.eval.batches == 0))
    data.emplace(corpora, rank.sequence(), run.vocab, run.train.seed);
  const std::int64_t samples = run.eval.batches > 0 || !data ? run.eval.batches * run.batch.global : samples_of(*data);

  const Clock::time_point began = Clock::now();
  Clock::time_point noted = began;
  const Rank::Evaluated evaluated = evaluate_samples(rank, samples, request, [&](std::int64_t done) {
    if (!reports.note || Clock::now() - noted < kNoteEvery) return;
    noted = Clock::now();
    reports.note(text("evaluated {} of {} samples", done, samples));
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  out.traffic = rank.traffic();
  if (!evaluated.result) {
    out.signal = evaluated.request;
    return out;
  }
  out.eval_loss = evaluated.result->loss;
  out.eval_samples = samples;
  out.eval_tokens = evaluated.result->tokens;
  out.tokens_per_s = seconds > 0 ? static_cast<double>(out.eval_tokens) / seconds : 0;
  if (number != 0 || !data) return out;
  const ActivityScope phase(ActivityScope::Kind::engine, "counting the bytes of the samples");
  const data::TargetBytes bytes = data::target_bytes(corpora, *data, rank.sequence(), samples);
  out.eval_bytes = bytes.bytes;
  if (!bytes.unknown.empty() && reports.note)
    reports.note(text("the number of bytes of the text is not known: {}", bytes.unknown));
  return out;
}

} // namespace triax::train
