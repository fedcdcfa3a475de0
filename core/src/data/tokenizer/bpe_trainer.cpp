// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/bpe_trainer.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "data/tokenizer/byte_symbols.hpp"

namespace triax::data {

namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(pair.first)} << 32 | static_cast<std::uint32_t>(pair.second);
    const std::uint64_t mixed = key * 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>(mixed ^ mixed >> 32);
  }
};

/// A pair, its count when it was queued, and the words that contain it.
struct Candidate {
  Pair pair;
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;
};

struct Later {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }
};

class Trainer {
 public:
  Trainer(const WordCounts& words, const BpeTraining& training) : training_(training) {
    for (const std::string& token : training.special_tokens) {
      parts_.added.push_back({token, id_of(token), true, false});
    }
    add_bytes();
    add_words(words);
  }

  BpeParts take(const std::function<void(std::int64_t)>& progress) {
    count_pairs();
    while (size() < training_.vocab && !heap_.empty()) {
      Candidate top = pop();
      const std::int64_t now = counts_[top.pair];
      if (top.count != now) { // the count is out of date: other merges changed it
        top.count = now;
        if (now > 0) push(std::move(top));
        continue;
      }
      if (top.count < std::max<std::int64_t>(1, training_.min_count)) break;
      merge(top);
      if (progress) progress(size());
    }
    drop_repeated();
    parts_.steps.emplace_back();
    parts_.steps.back().pattern.emplace(kGpt2Pattern);
    return std::move(parts_);
  }

 private:
  struct Word {
    std::vector<std::int32_t> ids;
    std::int64_t count;
  };

  std::int64_t size() const { return static_cast<std::int64_t>(parts_.tokens.size()); }

  /// The id of a token; adds it if it is new.
  std::int32_t id_of(const std::string& token) {
    const auto [found, is_new] = ids_.emplace(token, static_cast<std::int32_t>(parts_.tokens.size()));
    if (is_new) parts_.tokens.push_back(token);
    return found->second;
  }

  /// In the order of the symbols.
  void add_bytes() {
    std::vector<std::pair<char32_t, std::size_t>> order;
    order.reserve(256);
    for (std::size_t byte = 0; byte < 256; ++byte) order.emplace_back(symbol_of(static_cast<std::uint8_t>(byte)), byte);
    std::ranges::sort(order);
    for (const auto& [symbol, byte] : order) {
      byte_ids_[byte] = id_of(to_symbols(std::string(1, static_cast<char>(byte))));
    }
  }

  /// In alphabetical order, because the result must not depend on the order of a hash table.
  void add_words(const WordCounts& words) {
    std::vector<const WordCounts::value_type*> order;
    order.reserve(words.size());
    for (const auto& word : words) order.push_back(&word);
    std::ranges::sort(order, {}, [](const WordCounts::value_type* word) -> const std::string& { return word->first; });
    words_.reserve(order.size());
    for (const WordCounts::value_type* word : order) {
      words_.push_back({{}, word->second});
      for (const char byte : word->first) words_.back().ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
  }

  void count_pairs() {
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      const std::vector<std::int32_t>& ids = words_[word].ids;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) add_pair({ids[i], ids[i + 1]}, word, words_[word].count);
    }
    queue_new();
  }

  void add_pair(const Pair& pair, std::uint32_t word, std::int64_t count) {
    counts_[pair] += count;
    std::vector<std::uint32_t>& where = where_[pair];
    if (where.empty() || where.back() != word) where.push_back(word);
  }

  void queue_new() {
    for (auto& [pair, words] : where_) {
      const std::int64_t count = counts_[pair];
      if (count > 0) push({pair, count, std::move(words)});
    }
    where_.clear();
  }

  void merge(const Candidate& top) {
    const auto [left, right] = top.pair;
    const std::int32_t result =
        id_of(parts_.tokens[static_cast<std::size_t>(left)] + parts_.tokens[static_cast<std::size_t>(right)]);
    parts_.merges.push_back({left, right, result});
    for (const std::uint32_t word : top.words) merge_in(word, top.pair, result);
    queue_new();
  }

  /// Merges from left to right; each step sees the result of the steps before.
  void merge_in(std::uint32_t word, const Pair& pair, std::int32_t result) {
    std::vector<std::int32_t>& ids = words_[word].ids;
    const std::int64_t count = words_[word].count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != pair.first || i + 1 == ids.size() || ids[i + 1] != pair.second) {
        ids[kept++] = ids[i];
        continue;
      }
      if (kept > 0) {
        counts_[{ids[kept - 1], pair.first}] -= count;
        add_pair({ids[kept - 1], result}, word, count);
      }
      if (i + 2 < ids.size()) {
        counts_[{pair.second, ids[i + 2]}] -= count;
        add_pair({result, ids[i + 2]}, word, count);
      }
      ids[kept++] = result;
      ++i;
    }
    ids.resize(kept);
  }

  /// Removes repeated pairs, which occur if one of their tokens has two derivations. The last one is kept.
  void drop_repeated() {
    std::unordered_set<Pair, PairHash> seen;
    std::vector<Merge> last;
    for (auto merge = parts_.merges.rbegin(); merge != parts_.merges.rend(); ++merge) {
      if (seen.insert({merge->left, merge->right}).second) last.push_back(*merge);
    }
    std::ranges::reverse(last);
    parts_.merges = std::move(last);
  }

  void push(Candidate candidate) {
    heap_.push_back(std::move(candidate));
    std::ranges::push_heap(heap_, Later());
  }
  Candidate pop() {
    std::ranges::pop_heap(heap_, Later());
    Candidate out = std::move(heap_.back());
    heap_.pop_back();
    return out;
  }

  const BpeTraining& training_;
  BpeParts parts_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Word> words_;
  std::unordered_map<Pair, std::int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>, PairHash> where_; // words with new pairs since the last merge
  std::vector<Candidate> heap_;
};

} // namespace

BpeParts train_bpe(const WordCounts& words, const BpeTraining& training,
                   const std::function<void(std::int64_t tokens)>& progress) {
  return Trainer(words, training).take(progress);
}

} // namespace triax::data
