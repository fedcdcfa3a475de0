// SPDX-License-Identifier: Apache-2.0
// The report of `triax evaluate --choices`, from the scores of the endings.
//
// Threads: one. Ownership: borrows the examples.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluate/choice_examples.hpp"

namespace triax::app {

class ChoiceScores {
 public:
  explicit ChoiceScores(const std::vector<ChoiceExample>& examples);

  void add(const std::vector<train::SequenceScore>& scores);
  /// "accuracy 0.4210, normalised by length 0.5302: 1,000 examples" or, with one ending each, "accuracy 0.3120,
  /// perplexity 23.412: 1,000 examples".
  std::string line() const;
  /// Sets examples, accuracy, normalised_accuracy or perplexity, and the choices.
  void add_to(nlohmann::ordered_json& out) const;
  /// Sets the keys of add_to() to null, for an evaluation that was stopped.
  static void add_nothing_to(nlohmann::ordered_json& out);

 private:
  bool has_one_ending() const { return examples_.front().endings.size() == 1; }
  const train::SequenceScore& score(std::size_t example, std::size_t ending) const {
    return scores_[first_[example] + ending];
  }
  std::size_t choice(std::size_t example, bool by_length) const;
  double accuracy(bool by_length) const;
  double perplexity() const;

  const std::vector<ChoiceExample>& examples_;
  std::vector<std::size_t> first_; // by example: the number of its first ending
  std::vector<train::SequenceScore> scores_;
};

} // namespace triax::app
