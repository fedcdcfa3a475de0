// SPDX-License-Identifier: Apache-2.0
#include "data/target_bytes.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "data/tokenizer_choice.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::data {

namespace {

constexpr std::int32_t kNoText = -1; // of an id that the tokenizer does not use
constexpr std::int64_t kSamplesPerRead = 64;

/// Bytes of each token.
std::vector<std::int32_t> bytes_by_id(const Corpora& corpora) {
  const TokenizerInfo first = read_tokenizer_info(corpora.paths.front());
  for (const std::filesystem::path& path : corpora.paths)
    if (read_tokenizer_info(path).digest != first.digest)
      throw Error("was made with a different tokenizer than " + corpora.paths.front().string(), path.string());
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer_of(corpora.paths.front());
  std::vector<std::int32_t> out(static_cast<std::size_t>(tokenizer->vocab()), kNoText);
  for (std::size_t id = 0; id < out.size(); ++id) {
    try {
      out[id] = static_cast<std::int32_t>(tokenizer->bytes_of(static_cast<std::int32_t>(id)).size());
    } catch (const Error&) { // an id that is not used
    }
  }
  if (first.end) out[static_cast<std::size_t>(*first.end)] = 0;
  return out;
}

} // namespace

TargetBytes target_bytes(const Corpora& corpora, const BlendedDataset& samples, std::int64_t sequence,
                         std::int64_t count) {
  std::vector<std::int32_t> bytes;
  try {
    bytes = bytes_by_id(corpora);
  } catch (const Error& error) {
    return {0, error.where().empty() ? error.message() : error.where() + ": " + error.message()};
  }
  TargetBytes out;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(kSamplesPerRead * sequence)), targets(tokens.size());
  for (std::int64_t first = 0; first < count; first += kSamplesPerRead) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t n = first; n < std::min(count, first + kSamplesPerRead); ++n) numbers.push_back(n);
    if (RankActivity* const activity = RankActivity::current()) activity->make_progress(); // may take minutes
    const Shape shape{sequence, static_cast<std::int64_t>(numbers.size())};
    samples.microbatch(numbers, TensorView(tokens.data(), DType::i32, shape),
                       TensorView(targets.data(), DType::i32, shape));
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const auto id = static_cast<std::size_t>(targets[static_cast<std::size_t>(i)]);
      if (id >= bytes.size() || bytes[id] == kNoText) return {0, text("token id {} is not one of its tokenizer", id)};
      out.bytes += bytes[id];
    }
  }
  return out;
}

} // namespace triax::data
