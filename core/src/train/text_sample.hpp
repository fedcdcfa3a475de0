// SPDX-License-Identifier: Apache-2.0
// The texts of eval.sample: a rank that trains continues a prompt with the weights that it has.
//
// Threads: the rank's main thread; position(): any. Ownership: owns tokenizer, cache and programs; borrows the rest.
// Blocking: the constructor allocates; make() computes, and waits for the other ranks. Errors: Error; of a wrong
// prompt, without a location: the caller knows that it is eval.sample.
//
// Stages and weights are those of the training, so that no weights are copied. Sampling depends on train.seed and
// the position only: the texts of two evaluations differ because the weights do.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "data/text_tokenizer.hpp"
#include "train/agreement.hpp"
#include "train/memory_row.hpp"
#include "train/rank_groups.hpp"
#include "train/rank_setup.hpp"
#include "train/text_rank.hpp"
#include "train/training_rank.hpp"

namespace triax::train {

/// In lists of a rank's memory.
inline constexpr const char* kTextSample = "text of eval.sample";

/// The prompt as tokens, and how many positions the text needs.
struct SamplePrompt {
  data::TextTokenizer tokenizer;
  std::vector<std::int32_t> tokens;
  std::int64_t positions = 0;

  /// Opens the tokenizer of the training data.
  static SamplePrompt of(const config::RunConfig& run, std::int64_t model_positions);
};

/// The positions of that prompt and its text. Without the data, which a plan does not need, all of the model.
std::int64_t sample_positions(const config::RunConfig& run, std::int64_t model_positions);

class TextSample final : public TextRank {
 public:
  struct Parts {
    const config::RunConfig& run;
    const Layout& layout;
    int rank = 0;
    RankPlugins& plugins;
    const Preparation& prepared; // with its memory
    Device& device;
    Stream& stream;
    RankGroups& groups;
    double timeout_s = 0;
  };
  explicit TextSample(const Parts& parts);

  /// All ranks must call it at the same points. A request that is not 0 ends the text after the next token. Throws
  /// executor::NonfiniteError, on all ranks, if a logit is not finite.
  SampledText make(const executor::Request& request);
  /// "text of eval.sample, after 12 tokens"; empty if none is made. Any thread.
  std::string position() const;
  std::vector<MemoryRow> memory() const; // that it needs

  /// The memory that a rank with this state would allocate on such a device.
  struct Plan {
    std::vector<MemoryRow> memory;
    Refusals refusals;
  };
  static Plan plan(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
                   const Preparation& prepared, std::int64_t positions, DeviceKind device);

 private:
  static constexpr std::int64_t kNoText = -1;
  executor::Generator& generator() override { return *generator_; }
  const executor::GenerateState& state() const override { return state_; }
  void agree(std::span<std::int32_t> values) override;
  void set_position(std::int64_t tokens) override { tokens_ = tokens; }

  const Parts parts_;
  const SamplePrompt prompt_;
  const executor::TrainedStages trained_;
  const executor::GenerateRequest request_;
  executor::GenerateState state_;
  executor::ScratchBytes scratch_;
  std::optional<Agreement> agreement_;
  std::optional<executor::Generator> generator_;
  std::atomic<std::int64_t> tokens_{kNoText};
};

} // namespace triax::train
