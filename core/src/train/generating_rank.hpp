// SPDX-License-Identifier: Apache-2.0
// One rank that generates, as an object: its plugin objects, device, groups, weights and the cache of the sequences.
//
// Threads: constructed, used and destroyed on one thread, the rank's main thread; position(): any. Ownership: owns what
// it creates; run, layout, store and log must outlive it. Blocking: the constructor joins groups and allocates; load()
// reads. Errors: Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "train/located_rank.hpp"
#include "train/text_rank.hpp"
#include "train/training_rank.hpp"

namespace triax::train {

class GeneratingRank final : public LocatedRank, public TextRank {
 public:
  /// A run with run.generate. Of `options`, those of training have no effect.
  GeneratingRank(const config::RunConfig& run, const Layout& layout, int rank, Store& store, Log& log,
                 const RankOptions& options = {});
  ~GeneratingRank() override;
  GeneratingRank(const GeneratingRank&) = delete;
  GeneratingRank& operator=(const GeneratingRank&) = delete;

  /// Reads this rank's part of the weights, and verifies the checksums of a part of the files: all ranks must do it.
  void load(const std::filesystem::path& checkpoint);

  executor::Generator& generator() override;
  const executor::GenerateState& state() const override;
  void agree(std::span<std::int32_t> values) override;
  /// Sets what position() returns from now on: "after 12 tokens".
  void set_position(std::int64_t tokens) override;
  std::string position() const override;
  std::vector<report::GroupTraffic> traffic() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::train
