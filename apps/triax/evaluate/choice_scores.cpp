// SPDX-License-Identifier: Apache-2.0
#include "evaluate/choice_scores.hpp"

#include <cmath>

#include "common/table.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

} // namespace

ChoiceScores::ChoiceScores(const std::vector<ChoiceExample>& examples) : examples_(examples) {
  std::size_t endings = 0;
  for (const ChoiceExample& example : examples) {
    first_.push_back(endings);
    endings += example.endings.size();
  }
  scores_.resize(endings);
}

void ChoiceScores::add(const std::vector<train::SequenceScore>& scores) {
  for (const train::SequenceScore& score : scores) scores_.at(score.sequence) = score;
}

/// The most probable ending, the first of equal ones. By length: per byte of the ending.
std::size_t ChoiceScores::choice(std::size_t example, bool by_length) const {
  const auto value = [&](std::size_t ending) {
    const auto bytes = static_cast<double>(examples_[example].endings[ending].size());
    return score(example, ending).log_likelihood / (by_length ? bytes : 1);
  };
  std::size_t best = 0;
  for (std::size_t ending = 1; ending < examples_[example].endings.size(); ++ending)
    if (value(ending) > value(best)) best = ending;
  return best;
}

double ChoiceScores::accuracy(bool by_length) const {
  std::size_t right = 0;
  for (std::size_t example = 0; example < examples_.size(); ++example)
    right += has_one_ending() ? score(example, 0).is_greedy : choice(example, by_length) == examples_[example].label;
  return static_cast<double>(right) / static_cast<double>(examples_.size());
}

/// The perplexity of whole endings, as for LAMBADA: e to the mean of -log p.
double ChoiceScores::perplexity() const {
  double sum = 0;
  for (const train::SequenceScore& score : scores_) sum += score.log_likelihood;
  return std::exp(-sum / static_cast<double>(scores_.size()));
}

std::string ChoiceScores::line() const {
  const std::string second = has_one_ending()
                                 ? text("perplexity {}", report::decimals_text(perplexity(), 3))
                                 : text("normalised by length {}", report::decimals_text(accuracy(true), 4));
  return text("accuracy {}, {}: {} example{}", report::decimals_text(accuracy(false), 4), second,
              grouped(static_cast<long long>(examples_.size())), examples_.size() == 1 ? "" : "s");
}

void ChoiceScores::add_to(Json& out) const {
  add_nothing_to(out);
  out["examples"] = examples_.size();
  out["accuracy"] = accuracy(false);
  if (has_one_ending()) {
    if (std::isfinite(perplexity())) out["perplexity"] = perplexity();
  } else {
    out["normalised_accuracy"] = accuracy(true);
  }
  out["choices"] = Json::array();
  for (std::size_t example = 0; example < examples_.size(); ++example) {
    Json of = {{"line", examples_[example].line}};
    if (!has_one_ending()) {
      of["choice"] = choice(example, false);
      of["normalised_choice"] = choice(example, true);
    }
    of["log_likelihoods"] = of["greedy"] = Json::array();
    for (std::size_t ending = 0; ending < examples_[example].endings.size(); ++ending) {
      of["log_likelihoods"].push_back(score(example, ending).log_likelihood);
      of["greedy"].push_back(score(example, ending).is_greedy);
    }
    out["choices"].push_back(std::move(of));
  }
}

void ChoiceScores::add_nothing_to(Json& out) {
  for (const char* key : {"examples", "accuracy", "normalised_accuracy", "perplexity", "choices"}) out[key] = nullptr;
}

} // namespace triax::app
