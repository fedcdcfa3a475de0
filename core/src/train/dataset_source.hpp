// SPDX-License-Identifier: Apache-2.0
// The samples of the run's corpora, as an executor reads them.
//
// Threads: the rank's main thread. Blocking: reads files. Errors: those of BlendedDataset.
#pragma once

#include <cstdint>
#include <span>

#include "data/blended_dataset.hpp"
#include "executor/batch_source.hpp"

namespace triax::train {

class DatasetSource final : public executor::BatchSource {
 public:
  DatasetSource(const data::Corpora& corpora, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed)
      : dataset_(corpora, sequence, vocab, seed) {}
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    dataset_.microbatch(samples, tokens, targets);
  }

  const data::BlendedDataset& dataset() const { return dataset_; }

 private:
  data::BlendedDataset dataset_;
};

} // namespace triax::train
