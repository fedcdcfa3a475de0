// Attention by blocks of queries: scores exist for one block at a time, in the scratch of the thread that works on it.
//
// Forward: one item is a block of queries of one head. Backward: one item is a key head with the query heads that read
// it, whose blocks add to dk and dv one after another. Keys that no query of a block sees are left out.
#include <limits>

#include "kernels.hpp"

namespace triax::cpu {

namespace {

constexpr std::int64_t kQueries = 64;

/// One sample's head of a [s, b, a, d] view, as a matrix [s, d].
template <class T>
struct Head {
  T* data;
  std::int64_t stride; // between positions
  T* row(std::int64_t position) const { return data + position * stride; }
};
template <class T>
Head<T> head_of(const TensorView& x, std::int64_t sample, std::int64_t head) {
  return {x.as<T>() + sample * x.stride(1) + head * x.stride(2), std::max(x.stride(0), x.size(3))};
}

struct Sizes {
  explicit Sizes(const TensorView& q, const TensorView& k)
      : queries(q.size(0)),
        samples(q.size(1)),
        heads(q.size(2)),
        width(q.size(3)),
        keys(k.size(0)),
        key_heads(k.size(2)),
        blocks((queries + kQueries - 1) / kQueries) {}
  std::int64_t queries, samples, heads, width, keys, key_heads, blocks;
};

/// Queries [begin, begin + count) of a head, and how many keys the last one of them sees.
struct Block {
  std::int64_t begin, count, keys;
};
Block block_of(const Sizes& size, const Mask& mask, std::int64_t sample, std::int64_t index) {
  const std::int64_t begin = index * kQueries, count = std::min(kQueries, size.queries - begin);
  return {begin, count, seen_keys(mask, sample, begin + count - 1, size.keys)};
}

void clear(const Head<float>& x, std::int64_t begin, std::int64_t end, std::int64_t width) {
  for (std::int64_t i = begin; i < end; ++i) std::fill_n(x.row(i), width, 0.0f);
}

/// Bytes of `tensors` blocks of scores.
std::size_t score_bytes(std::int64_t tensors, std::int64_t keys) {
  return Arena::aligned(static_cast<std::size_t>(tensors * kQueries * keys) * sizeof(float));
}

float* scratch_of(const OpContext& context, int thread, std::size_t bytes) {
  return reinterpret_cast<float*>(context.scratch.data() + static_cast<std::size_t>(thread) * bytes);
}

/// The backward of one head's blocks of queries.
struct HeadBackward {
  const AttentionBwd& args;
  const Sizes& size;
  const Loops& loops;
  const DropStream& drop;
  std::int64_t sample, head;
  Head<const float> q, k, v, o, dout;
  Head<float> dq, dk, dv;
  float *scores, *dp; // scratch, [kQueries, keys] each

  /// scores become dropped probabilities, dp the gradient of the scores.
  void rows(const Block& block) const {
    const float* lse = args.lse.as<const float>() + (sample * size.heads + head) * size.queries;
    for (std::int64_t i = 0; i < block.count; ++i) {
      const std::int64_t query = block.begin + i;
      const float delta = loops.dot(dout.row(query), o.row(query), size.width);
      const DropRow row =
          drop.drops() ? drop.at(sample, args.mask.q0 + query, args.mask.k0, args.drop.head0 + head) : DropRow{};
      loops.attention_bwd(scores + i * block.keys, dp + i * block.keys, lse[query], delta,
                          seen_keys(args.mask, sample, query, size.keys), block.keys, drop.drops() ? &row : nullptr);
    }
  }

  /// dv, dk = or += ; `first`: nothing has been written to them.
  void run(const Block& block, bool first) const {
    const auto scale = static_cast<float>(args.scale);
    const float beta = first ? 0.0f : 1.0f;
    const std::int64_t keys = block.keys, d = size.width;
    const float *q_rows = q.row(block.begin), *dout_rows = dout.row(block.begin);
    const Product s{scores, q_rows, k.data, keys, q.stride, k.stride, block.count, keys, d, false, true, scale, 0};
    multiply(s);
    multiply({dp, dout_rows, v.data, keys, dout.stride, v.stride, block.count, keys, d, false, true, 1, 0});
    rows(block);
    multiply({dv.data, scores, dout_rows, dv.stride, keys, dout.stride, keys, d, block.count, true, false, 1, beta});
    multiply(
        {dq.row(block.begin), dp, k.data, dq.stride, keys, k.stride, block.count, d, keys, false, false, scale, 0});
    multiply({dk.data, dp, q_rows, dk.stride, keys, q.stride, keys, d, block.count, true, false, scale, beta});
  }
};

} // namespace

std::size_t attention_scratch(const AttentionFwd& args) {
  return score_bytes(1, args.k.size(0));
}
std::size_t attention_scratch(const AttentionBwd& args) {
  return score_bytes(2, args.k.size(0));
}

void CpuKernels::do_attention_fwd(const AttentionFwd& args, const OpContext& context) {
  const Sizes size(args.q, args.k);
  const DropStream drop(args.drop);
  const std::size_t bytes = attention_scratch(args);
  pool_->run(size.samples * size.heads * size.blocks, [&](std::int64_t item, int thread) {
    // The last blocks, which see the most keys, first: so that no thread is left with a long one at the end.
    const std::int64_t unit = item % (size.samples * size.heads), sample = unit / size.heads, head = unit % size.heads;
    const Block block = block_of(size, args.mask, sample, size.blocks - 1 - item / (size.samples * size.heads));
    const std::int64_t key_head = head / (size.heads / size.key_heads), keys = block.keys;
    const auto q = head_of<const float>(args.q, sample, head), k = head_of<const float>(args.k, sample, key_head),
               v = head_of<const float>(args.v, sample, key_head);
    const auto o = head_of<float>(args.o, sample, head);
    float* lse = args.lse.as<float>() + unit * size.queries + block.begin;
    float* scores = scratch_of(context, thread, bytes);
    if (keys == 0) {
      clear(o, block.begin, block.begin + block.count, size.width);
      std::fill_n(lse, block.count, -std::numeric_limits<float>::infinity());
      return;
    }
    multiply({scores, q.row(block.begin), k.data, keys, q.stride, k.stride, block.count, keys, size.width, false, true,
              static_cast<float>(args.scale), 0});
    for (std::int64_t i = 0; i < block.count; ++i) {
      float* row = scores + i * keys;
      const std::int64_t query = block.begin + i, seen = seen_keys(args.mask, sample, query, size.keys);
      lse[i] = loops_.softmax(row, row, 1.0f, seen, keys);
      if (drop.drops()) {
        loops_.dropout(row, row, seen, drop.at(sample, args.mask.q0 + query, args.mask.k0, args.drop.head0 + head));
      }
    }
    multiply({o.row(block.begin), scores, v.data, o.stride, keys, v.stride, block.count, size.width, keys, false, false,
              1, 0});
  });
}

void CpuKernels::do_attention_bwd(const AttentionBwd& args, const OpContext& context) {
  const Sizes size(args.q, args.k);
  const DropStream drop(args.drop);
  const std::size_t bytes = attention_scratch(args);
  const std::int64_t group = size.heads / size.key_heads;
  pool_->run(size.samples * size.key_heads, [&](std::int64_t unit, int thread) {
    const std::int64_t sample = unit / size.key_heads, key_head = unit % size.key_heads;
    const auto dk = head_of<float>(args.dk, sample, key_head), dv = head_of<float>(args.dv, sample, key_head);
    float* scores = scratch_of(context, thread, bytes);
    // The last block sees every key that any block sees, so it writes what the others add to.
    const std::int64_t written = size.blocks > 0 ? block_of(size, args.mask, sample, size.blocks - 1).keys : 0;
    clear(dk, written, size.keys, size.width);
    clear(dv, written, size.keys, size.width);
    for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      const HeadBackward backward{args,
                                  size,
                                  loops_,
                                  drop,
                                  sample,
                                  head,
                                  head_of<const float>(args.q, sample, head),
                                  head_of<const float>(args.k, sample, key_head),
                                  head_of<const float>(args.v, sample, key_head),
                                  head_of<const float>(args.o, sample, head),
                                  head_of<const float>(args.dout, sample, head),
                                  head_of<float>(args.dq, sample, head),
                                  dk,
                                  dv,
                                  scores,
                                  scores + kQueries * size.keys};
      for (std::int64_t index = size.blocks - 1; index >= 0; --index) {
        const Block block = block_of(size, args.mask, sample, index);
        if (block.keys == 0) {
          clear(backward.dq, block.begin, block.begin + block.count, size.width);
        } else {
          backward.run(block, head == key_head * group && index == size.blocks - 1);
        }
      }
    }
  });
}

} // namespace triax::cpu
