// SPDX-License-Identifier: Apache-2.0
// Dataset: computes the window of the token stream for each sample.
#include "data/dataset.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "data/permutation.hpp"
#include "data/tokenizer_choice.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

/// Windows per epoch: one fewer than would fit, but at least one, so that an epoch can start at any of the first
/// `sequence` tokens.
std::int64_t windows(std::int64_t tokens, std::int64_t sequence) {
  return std::max<std::int64_t>(1, tokens / sequence - 1);
}

/// For a model.vocab that does not have this token of the file.
std::string vocab_hint(const std::filesystem::path& prefix, std::int64_t token) {
  std::int64_t vocab = 0;
  try {
    vocab = read_tokenizer_info(prefix).vocab;
  } catch (const Error&) { // token files of another program need no tokenizer
  }
  if (vocab <= token) return "use the vocab of the tokenizer that made this file";
  return text("remove model.vocab: the default is {}, from {}; or, for an imported model, use data of its tokenizer",
              vocab, beside(prefix, ".json").filename().string());
}

} // namespace

Dataset::Dataset(const std::filesystem::path& prefix, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed)
    : file_(prefix),
      prefix_(prefix),
      tokenizer_(find_tokenizer_info(prefix)),
      sequence_(sequence),
      vocab_(vocab),
      seed_(seed) {
  TRIAX_REQUIRE(sequence >= 1 && vocab >= 1 && vocab <= std::numeric_limits<std::int32_t>::max(),
                "a dataset of sequence {} and vocab {}", sequence, vocab);
  if (file_.tokens() <= sequence) {
    throw Error(text("holds {} tokens; one sample of model.sequence = {} takes {} ({} and one target)", file_.tokens(),
                     sequence, sequence + 1, sequence),
                prefix.string() + ".bin", "use more text, or a shorter sequence");
  }
  TokenScan read = file_.scan(vocab);
  if (const auto& bad = read.outside) {
    throw Error(text("token {} has id {}, which is not in [0, {}] (model.vocab = {})", bad->position, bad->id,
                     vocab - 1, vocab),
                prefix.string() + ".bin", vocab_hint(prefix, bad->id));
  }
  checksum_ = std::move(read.checksum);
}

std::int64_t Dataset::samples_per_epoch() const {
  return windows(file_.tokens(), sequence_);
}

std::int64_t Dataset::start_of(std::int64_t sample) const {
  TRIAX_REQUIRE(sample >= 0, "sample {}: samples are numbered from 0", sample);
  const std::int64_t count = samples_per_epoch();
  const auto epoch = static_cast<std::uint64_t>(sample / count);
  const PhiloxKey key = philox_key(seed_, RandomPurpose::data);
  const std::int64_t shifts = std::min(sequence_, file_.tokens() - count * sequence_);
  const std::uint64_t shift = random_below(static_cast<std::uint64_t>(shifts), key, epoch);
  const Permutation order(static_cast<std::uint64_t>(count), key, epoch);
  const std::uint64_t window = order(static_cast<std::uint64_t>(sample % count));
  return static_cast<std::int64_t>(window) * sequence_ + static_cast<std::int64_t>(shift);
}

void Dataset::check_views(std::size_t samples, const TensorView& tokens, const TensorView& targets) const {
  const auto batch = static_cast<std::int64_t>(samples);
  for (const TensorView* view : {&tokens, &targets}) {
    TRIAX_REQUIRE(view->dtype() == DType::i32 && view->shape() == Shape({sequence_, batch}),
                  "{} for {} samples of sequence {}: i32[{}, {}] is needed", to_text(*view), batch, sequence_,
                  sequence_, batch);
  }
}

void Dataset::fill(std::int64_t sample, std::int64_t column, const TensorView& tokens,
                   const TensorView& targets) const {
  const std::int64_t start = start_of(sample);
  read(start, column, tokens);
  read(start + 1, column, targets);
}

/// Kernels use ids as indices without checking them.
void Dataset::read(std::int64_t start, std::int64_t column, const TensorView& out) const {
  std::int32_t* const ids = out.as<std::int32_t>() + column * out.stride(1);
  file_.read(start, sequence_, ids, out.stride(0));
  for (std::int64_t i = 0; i < sequence_; ++i) {
    const std::int32_t id = ids[i * out.stride(0)];
    if (id >= 0 && id < vocab_) continue;
    throw Error(
        text("token {} has id {}, which is not in [0, {}] (model.vocab = {}); the file was changed after the run had "
             "checked it",
             start + i, id, vocab_ - 1, vocab_),
        prefix_.string() + ".bin", "do not replace the files of data.path while a run reads them");
  }
}

void Dataset::microbatch(std::span<const std::int64_t> samples, const TensorView& tokens,
                         const TensorView& targets) const {
  check_views(samples.size(), tokens, targets);
  for (std::size_t i = 0; i < samples.size(); ++i) fill(samples[i], static_cast<std::int64_t>(i), tokens, targets);
}

} // namespace triax::data
