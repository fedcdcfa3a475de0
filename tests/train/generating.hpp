// SPDX-License-Identifier: Apache-2.0
// Generates on all ranks of a layout, with the weights of a tiny run, and compares logits.
//
// Threads: starts one per rank, and joins them. For programs of triax_add_test with the plugins' targets under DEPENDS.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "executor/generator.hpp"
#include "support/ranks.hpp"
#include "train/rank_setup.hpp"
#include "train/tiny_ranks.hpp"

namespace triax::test {

/// Generates with `microbatches` of batch.micro sequences each; the samples are those that an evaluation has.
class TinyGenerator {
 public:
  struct Sizes {
    int microbatches = 2;
    std::int64_t sequence = 6, max_rows = 6;
  };

  TinyGenerator(const config::RunConfig& config, Rank& rank, const Sizes& sizes)
      : rank_(rank),
        plugins_(config, rank.layout(), rank.index(), 1, null_log()),
        kernels_(started()),
        groups_(rank.join_axes()),
        state_({.model = plugins_.model(),
                .context = context(config, sizes),
                .microbatches = sizes.microbatches,
                .assumptions = schedule::everywhere(schedule::kMinGuarantee)}) {
    const executor::GenerateState::Plan plan = state_.plan(kernels_);
    EXPECT_TRUE(plan.refusals.empty());
    scratch = plan.scratch;
    state_.allocate(rank.device(), rank.stream(), plan.scratch);
    generator_.emplace(executor::GeneratorParts{rank.device(), rank.stream(), kernels_, groups_, state_,
                                                schedule::everywhere(schedule::kMinGuarantee), 60});
  }

  /// The weights of the same rank of a training run.
  void load(const RankTrace& trained) {
    state_.load(rank_.device(), rank_.stream(), [&](const std::string& name, const ParamSpec&, const TensorView& host) {
      const std::vector<std::byte>& from = trained.weights.at(name);
      ASSERT_EQ(from.size(), host.bytes()) << name;
      std::memcpy(host.data(), from.data(), from.size());
    });
  }

  void load_nan() {
    state_.load(rank_.device(), rank_.stream(), [&](const std::string&, const ParamSpec&, const TensorView& host) {
      rank_.device().fill(host, std::nan(""), rank_.stream());
    });
  }

  /// The next tokens of each sample.
  void append(std::int64_t count) {
    const std::int64_t samples = state_.microbatches() * state_.context().micro;
    std::vector<std::int32_t> tokens;
    for (std::int64_t row = 0; row < count; ++row)
      for (std::int64_t sample = 0; sample < samples; ++sample)
        tokens.push_back(token(sample, generator_->length() + row));
    generator_->append({tokens.data(), DType::i32, {count, samples}});
  }

  static std::int32_t token(std::int64_t sample, std::int64_t position) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(position + 1)), targets(tokens.size());
    const Shape shape{position + 1, 1};
    TinySource().microbatch({&sample, 1}, {tokens.data(), DType::i32, shape}, {targets.data(), DType::i32, shape});
    return tokens.back();
  }

  std::vector<double> values(const TensorView& host) const {
    std::vector<double> out(static_cast<std::size_t>(host.elements()));
    rank_.device().convert({out.data(), DType::f64, host.shape()}, host, rank_.stream());
    return out;
  }

  executor::Generator& generator() { return *generator_; }
  executor::GenerateState& state() { return state_; }
  executor::ScratchBytes scratch;

 private:
  KernelSet& started() {
    plugins_.kernels().start(rank_.device());
    return plugins_.kernels();
  }
  LayerContext context(const config::RunConfig& config, const Sizes& sizes) const {
    LayerContext out = train::layer_context(config, plugins_.model(), rank_.layout(), rank_.index());
    out.sequence_parallel = false;
    out.purpose = Purpose::generate;
    out.sequence = sizes.sequence;
    out.max_rows = sizes.max_rows;
    return out;
  }

  Rank& rank_;
  train::RankPlugins plugins_;
  KernelSet& kernels_;
  Groups groups_;
  executor::GenerateState state_;
  std::optional<executor::Generator> generator_;
};

/// Logits [sample, position, V] of all samples.
using Logits = std::vector<double>;

/// Adds the logits of the last append.
inline void collect(TinyGenerator& of, std::int64_t count, std::vector<Logits>& by_sample) {
  const LayerContext& context = of.state().context();
  by_sample.resize(static_cast<std::size_t>(of.state().microbatches() * context.micro));
  for (int k = 0; k < of.state().microbatches(); ++k) {
    const TensorView logits = of.generator().logits(k);
    ASSERT_EQ(logits.shape(), (Shape{count, context.micro, context.vocab}));
    const std::vector<double> values = of.values(logits);
    for (std::int64_t at = 0; at < logits.elements(); ++at)
      by_sample[static_cast<std::size_t>(k * context.micro + at / context.vocab % context.micro)].push_back(
          values[static_cast<std::size_t>(at)]);
  }
}

/// The logits of the tokens that are appended in these numbers. `after_nan`: to sequences that begin anew after others
/// whose keys and values are NaN. All tensor ranks of the last stage must have the same bits.
inline Logits generate(const config::RunConfig& config, const std::vector<RankTrace>& trained,
                       const std::vector<std::int64_t>& counts, const TinyGenerator::Sizes& sizes,
                       bool after_nan = false) {
  std::vector<Logits> out;
  std::mutex mutex;
  run_ranks(train::layout_of(config), [&](Rank& rank) {
    TinyGenerator of(config, rank, sizes);
    if (after_nan) {
      of.load_nan();
      of.append(sizes.max_rows);
      of.generator().restart();
    }
    of.load(trained[static_cast<std::size_t>(rank.index())]);
    std::vector<Logits> by_sample;
    for (const std::int64_t count : counts) {
      of.append(count);
      if (of.state().makes_logits()) collect(of, count, by_sample);
    }
    if (!of.state().makes_logits()) return;
    const std::lock_guard lock(mutex);
    if (!out.empty()) {
      EXPECT_EQ(out, by_sample) << "tensor ranks differ";
    }
    out = by_sample;
  });
  Logits joined;
  for (const Logits& one : out) joined.insert(joined.end(), one.begin(), one.end());
  return joined;
}

/// The mean loss of the next tokens.
inline double loss_of(const Logits& logits, std::int64_t sequence, std::int64_t vocab) {
  double sum = 0;
  const std::int64_t rows = static_cast<std::int64_t>(logits.size()) / vocab;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::span<const double> of(logits.data() + row * vocab, static_cast<std::size_t>(vocab));
    const double largest = *std::ranges::max_element(of);
    double exponentials = 0;
    for (const double logit : of) exponentials += std::exp(logit - largest);
    const std::int32_t target = TinyGenerator::token(row / sequence, row % sequence + 1);
    sum += largest + std::log(exponentials) - of[static_cast<std::size_t>(target)];
  }
  return sum / static_cast<double>(rows);
}

} // namespace triax::test
