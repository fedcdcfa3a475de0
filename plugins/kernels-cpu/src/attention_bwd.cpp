// SPDX-License-Identifier: Apache-2.0
// Attention, backward. One work item is a key head with the query heads that use it. It goes through the blocks of keys
// in order. For each, the blocks of queries that attend to it recompute their probabilities from the scores and the
// stored lse, and add to the gradients of keys and values (Dao et al., "FlashAttention", NeurIPS'22, algorithm 4).
#include "cpu_attention.hpp"

namespace triax::kernels_cpu {

namespace {

using namespace attention;

struct BackwardBuffers {
  BackwardBuffers(float* base, const Sizes& size) : buffers(base) {
    for (float** keys : {&k, &v, &dk, &dv}) *keys = buffers.take(kKeys * size.width);
    for (float** queries : {&q, &dout}) *queries = buffers.take(kQueries * size.width);
    scores = buffers.take(kQueries * kKeys);
    dp = buffers.take(kQueries * kKeys);
    delta = buffers.take(size.group() * size.queries);
  }
  Buffers buffers;
  float *k, *v, *dk, *dv, *q, *dout, *scores, *dp, *delta;
};

class Backward {
 public:
  Backward(const AttentionBwd& args, const Loops& loops, const DropStream& drop, const BackwardBuffers& to,
           std::int64_t sample, std::int64_t key_head)
      : args_(args),
        loops_(loops),
        drop_(drop),
        to_(to),
        size_(args.q, args.k),
        sample_(sample),
        key_head_(key_head),
        first_head_(key_head * size_.group()) {}

  void run() const {
    for (std::int64_t head = first_head_; head < first_head_ + size_.group(); ++head) start(head);
    const auto dk = head_of<float>(args_.dk, sample_, key_head_), dv = head_of<float>(args_.dv, sample_, key_head_);
    for (std::int64_t index = 0; index < block_count(size_.keys, kKeys); ++index) {
      const Range keys = block(size_.keys, kKeys, index);
      pack(to_.k, head_of<const float>(args_.k, sample_, key_head_), keys.begin, keys.count);
      pack(to_.v, head_of<const float>(args_.v, sample_, key_head_), keys.begin, keys.count);
      load_or_clear(to_.dk, dk, keys);
      load_or_clear(to_.dv, dv, keys);
      for (std::int64_t head = first_head_; head < first_head_ + size_.group(); ++head)
        for (std::int64_t at = 0; at < block_count(size_.queries, kQueries); ++at)
          pass(head, block(size_.queries, kQueries, at), keys);
      unpack(dk, keys.begin, keys.count, to_.dk);
      unpack(dv, keys.begin, keys.count, to_.dv);
    }
  }

 private:
  std::int64_t seen_by(std::int64_t query) const { return seen_keys(args_.mask, sample_, query, size_.keys); }
  float* delta_of(std::int64_t head) const { return to_.delta + (head - first_head_) * size_.queries; }

  /// delta: for each query, the inner product of its output and the output's gradient. The gradient of a query that
  /// attends to no key is set to 0; the first block of keys writes the others.
  void start(std::int64_t head) const {
    const auto o = head_of<const float>(args_.o, sample_, head), dout = head_of<const float>(args_.dout, sample_, head);
    const auto dq = head_of<float>(args_.dq, sample_, head);
    for (std::int64_t query = 0; query < size_.queries; ++query) {
      delta_of(head)[query] = loops_.dot(dout.row(query), o.row(query), size_.width);
      if (seen_by(query) == 0) clear(dq, query, 1);
    }
  }

  /// The gradients of a block of keys, before the queries add to them.
  void load_or_clear(float* block, const Head<float>& gradient, const Range& keys) const {
    if (args_.add_kv) {
      attention::pack(block, {gradient.data, gradient.stride, gradient.width}, keys.begin, keys.count);
    } else {
      std::fill_n(block, keys.count * size_.width, 0.0f);
    }
  }

  void pass(std::int64_t head, const Range& queries, const Range& all) const {
    const Range keys{all.begin, std::min(all.count, seen_by(queries.begin + queries.count - 1) - all.begin)};
    if (keys.count <= 0) return;
    const std::int64_t d = size_.width, n = keys.count, m = queries.count;
    const auto scale = static_cast<float>(args_.scale);
    const auto dq = head_of<float>(args_.dq, sample_, head);
    pack(to_.q, head_of<const float>(args_.q, sample_, head), queries.begin, m);
    pack(to_.dout, head_of<const float>(args_.dout, sample_, head), queries.begin, m);
    multiply({to_.scores, to_.q, to_.k, n, d, d, m, n, d, false, true, scale, 0});
    multiply({to_.dp, to_.dout, to_.v, n, d, d, m, n, d, false, true, 1, 0});
    for (std::int64_t i = 0; i < m; ++i) row(head, queries.begin + i, keys, to_.scores + i * n, to_.dp + i * n);
    multiply({to_.dv, to_.scores, to_.dout, d, n, d, n, d, m, true, false, 1, 1});
    multiply({dq.row(queries.begin), to_.dp, to_.k, dq.stride, n, d, m, d, n, false, false, scale,
              keys.begin == 0 ? 0.0f : 1.0f});
    multiply({to_.dk, to_.dp, to_.q, d, n, d, n, d, m, true, false, scale, 1});
  }

  /// On return, scores holds the probabilities after dropout, and dp the gradient of the scores.
  void row(std::int64_t head, std::int64_t query, const Range& keys, float* scores, float* dp) const {
    const float lse = args_.lse.as<const float>()[(sample_ * size_.heads + head) * size_.queries + query];
    const std::int64_t seen = std::clamp<std::int64_t>(seen_by(query) - keys.begin, 0, keys.count);
    const DropRow dropped =
        drop_.drops() ? drop_.at(sample_, args_.mask.q0 + query, args_.mask.k0 + keys.begin, args_.drop.head0 + head)
                      : DropRow{};
    loops_.attention_bwd(scores, dp, lse, delta_of(head)[query], seen, keys.count, drop_.drops() ? &dropped : nullptr);
  }

  const AttentionBwd& args_;
  const Loops& loops_;
  const DropStream& drop_;
  const BackwardBuffers& to_;
  Sizes size_;
  std::int64_t sample_, key_head_, first_head_;
};

} // namespace

std::size_t attention_scratch(const AttentionBwd& args) {
  return BackwardBuffers(nullptr, Sizes(args.q, args.k)).buffers.bytes();
}

void CpuKernels::do_attention_bwd(const AttentionBwd& args, const OpContext& context) {
  const Sizes size(args.q, args.k);
  const DropStream drop(args.drop);
  const std::size_t bytes = attention_scratch(args);
  pool_->run(size.samples * size.key_heads, [&](std::int64_t unit, int thread) {
    const BackwardBuffers buffers(thread_scratch(context.scratch, thread, bytes), size);
    Backward(args, loops_, drop, buffers, unit / size.key_heads, unit % size.key_heads).run();
  });
}

} // namespace triax::kernels_cpu
