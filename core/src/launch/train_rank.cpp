#include "launch/train_rank.hpp"

namespace triax::launch {

namespace {

/// "pipeline 0, data 1, tensor 0, step 118, 0F3"; a rank that is alone needs no coordinates.
std::string place(const Layout& layout, int number, const std::string& where) {
  if (layout.world() == 1) return where;
  const auto at = [&](std::string_view axis) { return layout.coordinate(number, axis); };
  const std::string rank = text("pipeline {}, data {}, tensor {}", at("pipeline"), at("data"), at("tensor"));
  return where.empty() ? rank : rank + ", " + where;
}

void failed(const RankTraining& training, const Error& error) {
  const Error placed(error.message(), place(training.layout, training.number, error.where()), error.hint());
  const bool first = !training.fails_first || training.fails_first();
  if (training.abort.raise(training.number, error.what()) && first) {
    training.log.error("{}", placed.what());
  } else {
    training.log.debug("stopped: {}", placed.what());
  }
}

train::LoopResult trained(const RankTraining& training, std::optional<train::Rank>& rank) {
  train::RankOptions options = training.options;
  options.abort = &training.abort;
  rank.emplace(training.run, training.layout, training.number, training.store, training.log, options);
  if (training.made) training.made(&*rank);
  return train::run_loop(training.run, *rank, training.signals, training.reports);
}

} // namespace

std::optional<train::LoopResult> train_rank(const RankTraining& training) {
  std::optional<train::Rank> rank; // goes after its failure has been told: the others must hear of that first
  std::optional<train::LoopResult> result;
  try {
    result = trained(training, rank);
  } catch (const Error& error) {
    failed(training, error);
  } catch (const std::exception& error) {
    failed(training, Error(error.what()));
  } catch (...) {
    failed(training, Error("an exception that is no std::exception"));
  }
  if (training.made) training.made(nullptr);
  return result;
}

} // namespace triax::launch
