// SPDX-License-Identifier: Apache-2.0
// Attention, forward. A few blocks of queries of one head go through the blocks of keys, with a running maximum score
// and sum of exponentials per query (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et
// al., "FlashAttention", NeurIPS'22).
#include <cmath>
#include <limits>

#include "cpu_attention.hpp"

namespace triax::kernels_cpu {

namespace {

using namespace attention;

constexpr std::int64_t kQueriesPerItem = 4 * kQueries; // queries that share one packing of keys and values

struct ForwardBuffers {
  ForwardBuffers(float* base, std::int64_t width) : buffers(base) {
    k = buffers.take(kKeys * width);
    v = buffers.take(kKeys * width);
    q = buffers.take(kQueriesPerItem * width);
    o = buffers.take(kQueriesPerItem * width);
    scores = buffers.take(kQueries * kKeys);
    max = buffers.take(kQueriesPerItem);
    sum = buffers.take(kQueriesPerItem);
  }
  Buffers buffers;
  float *k, *v, *q, *o, *scores, *max, *sum;
};

/// One work item: up to kQueriesPerItem queries of one head.
class Forward {
 public:
  Forward(const AttentionFwd& args, const Loops& loops, const DropStream& drop, const ForwardBuffers& to,
          std::int64_t sample, std::int64_t head, Range queries)
      : args_(args),
        loops_(loops),
        drop_(drop),
        to_(to),
        size_(args.q, args.k),
        sample_(sample),
        head_(head),
        queries_(queries) {}

  void run() const {
    const std::int64_t key_head = head_ / size_.group();
    const auto k = head_of<const float>(args_.k, sample_, key_head),
               v = head_of<const float>(args_.v, sample_, key_head);
    pack(to_.q, head_of<const float>(args_.q, sample_, head_), queries_.begin, queries_.count);
    std::fill_n(to_.max, queries_.count, -std::numeric_limits<float>::infinity());
    std::fill_n(to_.sum, queries_.count, 0.0f);
    std::fill_n(to_.o, queries_.count * size_.width, 0.0f);
    const std::int64_t seen = visible_keys(queries_.count - 1);
    for (std::int64_t index = 0; index < block_count(seen, kKeys); ++index) {
      const Range keys = block(seen, kKeys, index);
      pack(to_.k, k, keys.begin, keys.count);
      pack(to_.v, v, keys.begin, keys.count);
      for (std::int64_t at = 0; at < block_count(queries_.count, kQueries); ++at)
        pass(block(queries_.count, kQueries, at), keys);
    }
    finish();
  }

 private:
  /// Number of keys that query i of the item attends to; does not decrease with i.
  std::int64_t visible_keys(std::int64_t i) const {
    return seen_keys(args_.mask, sample_, queries_.begin + i, size_.keys);
  }

  /// Adds these keys to the sums of these queries; `queries` counts within the item.
  void pass(const Range& queries, const Range& all) const {
    const std::int64_t d = size_.width;
    const Range keys{all.begin, std::min(all.count, visible_keys(queries.begin + queries.count - 1) - all.begin)};
    if (keys.count <= 0) return;
    float* o = to_.o + queries.begin * d;
    multiply({to_.scores, to_.q + queries.begin * d, to_.k, keys.count, d, d, queries.count, keys.count, d, false, true,
              static_cast<float>(args_.scale), 0});
    for (std::int64_t i = 0; i < queries.count; ++i) row(queries.begin + i, to_.scores + i * keys.count, keys);
    multiply({o, to_.scores, to_.v, d, keys.count, d, queries.count, d, keys.count, false, false, 1, 1});
  }

  /// Replaces scores of one query by exp(score - running maximum); if the maximum grows, rescales the earlier sums.
  void row(std::int64_t i, float* scores, const Range& keys) const {
    const std::int64_t seen = std::clamp<std::int64_t>(visible_keys(i) - keys.begin, 0, keys.count);
    std::fill(scores + seen, scores + keys.count, 0.0f);
    if (seen == 0) return;
    const float before = to_.max[i], largest = std::max(before, loops_.row_max(scores, seen));
    to_.max[i] = largest;
    if (keys.begin > 0 && before != largest) {
      const float shrink = std::exp(before - largest);
      loops_.scale(to_.o + i * size_.width, shrink, size_.width);
      to_.sum[i] *= shrink;
    }
    to_.sum[i] += loops_.exp_sum(scores, largest, seen);
    if (drop_.drops()) {
      const std::int64_t query = queries_.begin + i;
      loops_.dropout(scores, scores, seen,
                     drop_.at(sample_, args_.mask.q0 + query, args_.mask.k0 + keys.begin, args_.drop.head0 + head_));
    }
  }

  void finish() const {
    float* lse = args_.lse.as<float>() + (sample_ * size_.heads + head_) * size_.queries + queries_.begin;
    for (std::int64_t i = 0; i < queries_.count; ++i) {
      const bool seen = visible_keys(i) > 0;
      lse[i] = seen ? to_.max[i] + std::log(to_.sum[i]) : -std::numeric_limits<float>::infinity();
      if (seen) loops_.scale(to_.o + i * size_.width, 1.0f / to_.sum[i], size_.width);
    }
    unpack(head_of<float>(args_.o, sample_, head_), queries_.begin, queries_.count, to_.o);
  }

  const AttentionFwd& args_;
  const Loops& loops_;
  const DropStream& drop_;
  const ForwardBuffers& to_;
  Sizes size_;
  std::int64_t sample_, head_;
  Range queries_;
};

} // namespace

std::size_t attention_scratch(const AttentionFwd& args) {
  return ForwardBuffers(nullptr, args.q.size(3)).buffers.bytes();
}

void CpuKernels::do_attention_fwd(const AttentionFwd& args, const OpContext& context) {
  const Sizes size(args.q, args.k);
  const DropStream drop(args.drop);
  const std::size_t bytes = attention_scratch(args);
  const std::int64_t chunks = block_count(size.queries, kQueriesPerItem), units = size.samples * size.heads;
  pool_->run(units * chunks, [&](std::int64_t item, int thread) {
    // The last queries attend to the most keys. They come first, so that no long item is left at the end.
    const Range queries = block(size.queries, kQueriesPerItem, chunks - 1 - item / units);
    const ForwardBuffers buffers(thread_scratch(context.scratch, thread, bytes), size.width);
    Forward(args, loops_, drop, buffers, item % units / size.heads, item % size.heads, queries).run();
  });
}

} // namespace triax::kernels_cpu
