// SPDX-License-Identifier: Apache-2.0
// Traffic of a step, in bytes and operations, compared with the published formulas:
//   tensor    Narayanan et al., SC'21, section 3.2: 8 b s h (t-1)/t elements per layer and microbatch: two all-reduces
//             of b s h forward and two backward (f and g of Shoeybi et al., arXiv 1909.08053, section 3); one each for
//             the embedding's sum and the head's gradient, and three of b s for the cross-entropy;
//   pipeline  SC'21, section 3.2: b s h elements between neighbours, in each direction, for every microbatch and
//             (interleaved) every chunk; with scatter/gather 1/t of that (section 4.1), and the tensor group gathers
//             the parts that it receives;
//   sequence  Korthikanti et al., arXiv 2205.05198, section 4.2.2: an all-reduce becomes a reduce-scatter and an
//             all-gather of as many bytes together; the inputs of two linear layers are gathered once more;
//   data      SC'21, section 3.3: a ring moves 2(d-1)/d of the gradients, as does a direct reduce-scatter with an
//             all-gather;
//   shards    Rajbhandari et al., SC'20, section 7: the parameters are gathered, (d-1)/d of them from the other ranks;
//             divided parameters before the forwards and again before the backwards of a stage, 3 (d-1)/d with the
//             scattered gradients, but for the last stages, which stay in memory between the two;
// In addition, every rank gets the numbers of a step: losses with a request, and squares of gradients, in double; the
// squares are first added over the ranks that share parameters. The first and the last pipeline rank exchange the tied
// table's gradient.
#include <gtest/gtest.h>

#include <algorithm>

#include "equality/harness.hpp"
#include "triax/device.hpp"
#include "triax/layout.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

constexpr std::int64_t kFloat = 4, kDouble = 8;

struct Moved {
  std::int64_t ops = 0, bytes = 0; // bytes out, and the same number in
  Moved& operator+=(const Moved& other) {
    ops += other.ops;
    bytes += other.bytes;
    return *this;
  }
  bool operator==(const Moved&) const = default;
};

Moved times(std::int64_t count, const Moved& one) {
  return {count * one.ops, count * one.bytes};
}

/// Elements of the parameters on a tensor rank, in the model's order and without the tied table, which the embedding
/// and the head share.
struct Parameters {
  std::vector<std::int64_t> block, embedding, head;
  /// Those whose gradients are partial on each tensor rank.
  std::vector<std::int64_t> partial_block = {}, partial_embedding = {}, partial_head = {};
};

/// norm; qkv, projection; norm; up, down. Weights and biases. With divided positions, each rank has a part of those of
/// the norms and of the positions.
Parameters gpt_parameters(const Case& run) {
  const std::int64_t h = kHidden, part = kHidden / run.tensor, positions = run.sequence * kHidden;
  Parameters out{
      {h, h, 3 * part * h, 3 * part, h * part, h, h, h, 4 * part * h, 4 * part, h * 4 * part, h}, {positions}, {h, h}};
  if (run.sequence_parallel) {
    out.partial_block = {h, h, h, h};
    out.partial_embedding = out.embedding;
    out.partial_head = out.head;
  }
  return out;
}

/// norm; qkv with its bias, norms of q and k, projection; norm; up, down (TinyRun::use_llama). The heads of a tensor
/// rank have a part of the gradients of their norms.
Parameters llama_parameters(const Case& run) {
  const std::int64_t h = kHidden, t = run.tensor, d = 4, queries = 2 * kHeads * d, inner = 12;
  const std::int64_t rows = queries + 2 * kHeads * d; // of q, k and v
  Parameters out{{h, rows / t * h, rows / t, d, d, h * queries / t, h, 2 * inner / t * h, h * inner / t}, {}, {h}};
  if (t > 1) out.partial_block = {d, d};
  if (run.sequence_parallel) {
    out.partial_block = {h, d, d, h};
    out.partial_head = out.head;
  }
  return out;
}

/// Traffic of one rank in its groups, from its coordinates.
class Formulas {
 public:
  Formulas(const Case& run, int rank, const std::string& model = "model-gpt")
      : run_(run), model_(model), of_(model == "model-gpt" ? gpt_parameters(run) : llama_parameters(run)) {
    const Layout layout = Layout::ptd(run.pipeline, run.tensor, run.data);
    pipeline_ = layout.coordinate(rank, "pipeline");
    tensor_ = layout.coordinate(rank, "tensor");
    data_ = layout.coordinate(rank, "data");
    for (int chunk = 0; chunk < run.chunks; ++chunk) {
      const int stage = chunk * run.pipeline + pipeline_;
      has_embedding_ |= stage == 0;
      has_head_ |= stage == run.stages() - 1;
      boundaries_ += (stage > 0) + (stage < run.stages() - 1);
      blocks_ += run.layers / run.stages() + (stage < run.layers % run.stages());
    }
  }

  Moved tensor() const {
    const std::int64_t bs = run_.micro * run_.sequence;
    const Moved row = all_reduce(bs, run_.tensor, tensor_);
    Moved microbatch = times(blocks_, of_block());
    if (has_embedding_) microbatch += activation();
    if (has_head_) microbatch += activation();
    if (has_head_) microbatch += times(3, row); // largest logit, sum of exponentials, the target's logit
    Moved out = times(run_.microbatches, microbatch);
    if (run_.scatter_gather) out += times(run_.microbatches * boundaries_, all_gather(boundary_bytes(), run_.tensor));
    if (!of_.partial_block.empty()) out += partial_gradients();
    out += all_reduce(1, run_.tensor, tensor_, kDouble); // a request
    out += all_gather(squares_bytes(), run_.tensor);
    return out;
  }

  Moved pipeline() const {
    const Moved boundary{2, boundary_bytes()}; // a send and a receive
    Moved out = times(run_.microbatches * boundaries_, boundary);
    if (has_embedding_ != has_head_) out += {1, tied_elements() * kFloat};
    out += all_gather(run_.data * losses_bytes(), run_.pipeline);
    out += all_gather(run_.tensor * squares_bytes(), run_.pipeline);
    return out;
  }

  /// Without divided positions, whose partial gradients are added over a product of axes.
  Moved data() const {
    Moved out = times(blocks_, gradients(of_.block));
    if (has_embedding_) out += gradients(of_.embedding);
    if (has_head_) out += gradients(of_.head);
    out += times(has_embedding_ + has_head_, gradients({table()})); // tied: alone
    out += all_reduce(all_parameters(), run_.data, data_, kDouble); // squares
    out += all_gather(losses_bytes(), run_.data);
    if (run_.shard == "parameters") {
      out += unsharded_parameters();
    } else if (!run_.shard.empty()) {
      out += gathered_parameters();
    }
    return out;
  }

 private:
  /// One stage per rank is gathered once. Breadth-first on one rank, all stages but the last two, of which a rank has
  /// weights at the end of its forwards (optimizer.prefetch = 1), are gathered again. Each side of a tie in another
  /// stage gathers the table.
  Moved unsharded_parameters() const {
    Moved out;
    for (int chunk = 0; chunk < run_.chunks; ++chunk) {
      const int stage = chunk * run_.pipeline + pipeline_;
      const bool first = stage == 0, last = stage == run_.stages() - 1;
      const std::int64_t blocks = run_.layers / run_.stages() + (stage < run_.layers % run_.stages());
      Moved of_stage = times(blocks, gathered(of_.block));
      if (first) of_stage += gathered(of_.embedding);
      if (last) of_stage += gathered(of_.head);
      if (first || last) of_stage += gathered({table()});
      out += times(chunk + 2 < run_.chunks ? 2 : 1, of_stage);
    }
    return out;
  }
  /// Each rank sends its part of each bucket to the others; of a tied table, which it stores once, as well.
  Moved gathered_parameters() const {
    Moved out = times(blocks_, gathered(of_.block));
    if (has_embedding_) out += gathered(of_.embedding);
    if (has_head_) out += gathered(of_.head);
    if (has_embedding_ || has_head_) out += gathered({table()});
    return out;
  }
  Moved gathered(const std::vector<std::int64_t>& parameters) const {
    return parameters.empty() ? Moved{} : all_gather(part_bytes(parameters), run_.data);
  }
  std::int64_t part_bytes(const std::vector<std::int64_t>& parameters) const {
    const std::int64_t part = (bucket_elements(parameters) + run_.data - 1) / run_.data;
    return static_cast<std::int64_t>(Arena::aligned(static_cast<std::size_t>(part * kFloat)));
  }
  /// The sum of a bucket over the data ranks. A reduce-scatter sends each other rank its part.
  Moved gradients(const std::vector<std::int64_t>& parameters) const {
    if (parameters.empty()) return {};
    if (!scatters()) return bucket(parameters, run_.data, data_);
    return {1, (run_.data - 1) * part_bytes(parameters)};
  }
  bool scatters() const { return run_.shard == "gradients" || run_.shard == "parameters"; }
  /// Of the tied table, what a rank has reduced gradients of.
  std::int64_t tied_elements() const { return scatters() ? part_bytes({table()}) / kFloat : table(); }

  std::int64_t boundary_bytes() const {
    const bool is_part = run_.scatter_gather || run_.sequence_parallel;
    return run_.micro * run_.sequence * kHidden * kFloat / (is_part ? run_.tensor : 1);
  }
  std::int64_t losses_bytes() const { return (run_.microbatches * run_.micro + 1) * kDouble; }
  std::int64_t squares_bytes() const { return most_parameters() * kDouble; }

  /// The sum of an activation over the tensor ranks, or a reduce-scatter here and an all-gather there.
  Moved activation() const {
    const std::int64_t elements = run_.micro * run_.sequence * kHidden;
    if (!run_.sequence_parallel) return all_reduce(elements, run_.tensor, tensor_);
    const std::int64_t part = elements / run_.tensor;
    return Moved{1, (elements - part) * kFloat} += all_gather(part * kFloat, run_.tensor);
  }
  Moved of_block() const {
    Moved out = times(4, activation());
    const std::int64_t part = run_.micro * run_.sequence * kHidden / run_.tensor;
    if (run_.sequence_parallel) out += times(2, all_gather(part * kFloat, run_.tensor)); // inputs of qkv and up, again
    return out;
  }
  /// With one data rank: partial gradients, and their squares.
  Moved partial_gradients() const {
    Moved out = times(blocks_, bucket(of_.partial_block, run_.tensor, tensor_));
    if (has_embedding_ && !of_.partial_embedding.empty()) out += bucket(of_.partial_embedding, run_.tensor, tensor_);
    if (has_head_ && !of_.partial_head.empty()) out += bucket(of_.partial_head, run_.tensor, tensor_);
    return out += all_reduce(all_parameters(), run_.tensor, tensor_, kDouble);
  }
  /// Reduce-scatter, in which a rank sends the others their slices, then all-gather, in which it sends its own to each.
  /// With equal slices this is 2 (n-1)/n of the whole.
  static Moved all_reduce(std::int64_t elements, std::int64_t n, std::int64_t index, std::int64_t bytes = kFloat) {
    const std::int64_t own = elements * (index + 1) / n - elements * index / n;
    return {1, (elements - own + (n - 1) * own) * bytes};
  }
  static Moved all_gather(std::int64_t own_bytes, std::int64_t n) { return {1, (n - 1) * own_bytes}; }

  /// Elements of the token table on this tensor rank; rows are padded to a multiple of 64 (triax/parallel.hpp).
  std::int64_t table() const { return ((kVocab + run_.tensor - 1) / run_.tensor + 63) / 64 * 64 * kHidden; }
  /// The gradients of a layer, each at an aligned offset, are reduced in one call.
  static Moved bucket(const std::vector<std::int64_t>& parameters, std::int64_t members, std::int64_t index) {
    return all_reduce(bucket_elements(parameters), members, index);
  }
  static std::int64_t bucket_elements(const std::vector<std::int64_t>& parameters) {
    std::int64_t bytes = 0;
    for (const std::int64_t elements : parameters)
      bytes = static_cast<std::int64_t>(Arena::aligned(static_cast<std::size_t>(bytes))) + elements * kFloat;
    return bytes / kFloat;
  }
  /// Of the model; tied ones once.
  std::int64_t all_parameters() const { return count(run_.layers, true, true); }
  /// Largest number on a pipeline rank; ranks with fewer parameters send as much.
  std::int64_t most_parameters() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < run_.pipeline; ++rank)
      most = std::max(most, Formulas(run_, rank * run_.tensor * run_.data, model_).parameters());
    return most;
  }
  std::int64_t parameters() const { return count(blocks_, has_embedding_, has_head_); }
  std::int64_t count(std::int64_t blocks, bool embedding, bool head) const {
    const auto size = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
    return size(of_.block) * blocks + (embedding ? size(of_.embedding) : 0) + (head ? size(of_.head) : 0) +
           (embedding || head ? 1 : 0); // the table
  }

  Case run_;
  std::string model_;
  Parameters of_;
  int pipeline_ = 0, tensor_ = 0, data_ = 0;
  bool has_embedding_ = false, has_head_ = false;
  std::int64_t blocks_ = 0, boundaries_ = 0;
};

/// Traffic of the second step, as the difference of totals. The first step has the same.
report::GroupTraffic of_step(const KeptRank& rank, const std::string& group) {
  const auto find = [&](std::size_t step) {
    const auto found = std::ranges::find(rank.traffic[step], group, &report::GroupTraffic::group);
    return found == rank.traffic[step].end() ? report::GroupTraffic{} : *found;
  };
  report::GroupTraffic out = find(1);
  const report::GroupTraffic before = find(0);
  out.ops -= before.ops;
  out.bytes_out -= before.bytes_out;
  out.bytes_in -= before.bytes_in;
  return out;
}

void expect_moved(const KeptRank& rank, const std::string& group, int size, const Moved& expected,
                  const std::string& plugin = "comm-local") {
  SCOPED_TRACE(group);
  const report::GroupTraffic moved = of_step(rank, group);
  if (size == 1) {
    EXPECT_EQ(moved.plugin, "") << "a group of one rank is not joined";
    return;
  }
  EXPECT_EQ(moved.plugin, plugin);
  EXPECT_EQ(static_cast<std::int64_t>(moved.ops), expected.ops);
  EXPECT_EQ(static_cast<std::int64_t>(moved.bytes_out), expected.bytes);
  EXPECT_EQ(static_cast<std::int64_t>(moved.bytes_in), expected.bytes);
}

/// What a check plans before the run is what the ranks then count.
void expect_planned(const Case& run, const Training& training, const std::vector<KeptRank>& ranks) {
  const train::Preflight planned = check(run, training);
  ASSERT_TRUE(planned.refusals.empty()) << planned.refusals.front().message;
  std::size_t compared = 0;
  for (const train::RankPlan& plan : planned.plans) {
    for (std::size_t data = 0; data < plan.ranks.size(); ++data) {
      SCOPED_TRACE(text("planned rank {}", plan.ranks[data]));
      for (const report::GroupTraffic& of : plan.traffic.at(data)) {
        const report::GroupTraffic counted = of_step(ranks[static_cast<std::size_t>(plan.ranks[data])], of.group);
        EXPECT_EQ(of.plugin, counted.plugin) << of.group;
        EXPECT_EQ(of.ops, counted.ops) << of.group;
        EXPECT_EQ(of.bytes_out, counted.bytes_out) << of.group;
        EXPECT_EQ(of.bytes_in, counted.bytes_in) << of.group;
        ++compared;
      }
    }
  }
  const int axes = (run.tensor > 1) + (run.pipeline > 1) + (run.data > 1);
  EXPECT_EQ(compared, ranks.size() * static_cast<std::size_t>(axes));
}

void expect_formulas(const Case& run, const Training& training) {
  SCOPED_TRACE(to_text(run));
  const std::vector<KeptRank> ranks = train(run, training);
  expect_planned(run, training, ranks);
  const std::string& of_pipeline = training.pipeline_comm.empty() ? training.comm : training.pipeline_comm;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    SCOPED_TRACE(text("rank {}", rank));
    const Formulas formulas(run, static_cast<int>(rank), training.model);
    expect_moved(ranks[rank], "tensor", run.tensor, formulas.tensor(), training.comm);
    expect_moved(ranks[rank], "pipeline", run.pipeline, formulas.pipeline(), of_pipeline);
    expect_moved(ranks[rank], "data", run.data, formulas.data(), training.comm);
  }
}

TEST(Traffic, FollowsTheFormulas) {
  const Case cases[] = {
      {1, 1, 1, 1, "sched-gpipe", 1, 4, "kernels-reference", 3},
      {1, 2, 1, 1, "sched-gpipe", 2, 2, "kernels-reference", 2},
      {1, 4, 1, 1, "sched-gpipe", 3, 2, "kernels-reference", 3}, // b s = 15 is not divisible: slices differ
      {1, 1, 3, 1, "sched-gpipe", 2, 2, "kernels-reference", 2},
      {2, 1, 1, 1, "sched-1f1b", 1, 4, "kernels-reference", 3},
      {4, 1, 1, 2, "sched-interleaved", 1, 4, "kernels-reference", 9},
      {3, 2, 2, 1, "sched-1f1b", 2, 3, "kernels-reference", 4},
      {2, 2, 2, 2, "sched-interleaved", 1, 4, "kernels-reference", 5},
      {2, 2, 3, 1, "sched-gpipe", 1, 2, "kernels-cpu", 2},
      {.pipeline = 2, .tensor = 4, .micro = 2, .layers = 3, .scatter_gather = true},
      {.pipeline = 3, .tensor = 2, .data = 2, .scheduler = "sched-1f1b", .layers = 4, .scatter_gather = true},
      {.pipeline = 2, .tensor = 2, .chunks = 2, .scheduler = "sched-interleaved", .scatter_gather = true},
      {.tensor = 2, .layers = 3, .sequence_parallel = true, .sequence = 8},
      {.pipeline = 2, .tensor = 4, .scheduler = "sched-1f1b", .layers = 5, .sequence_parallel = true, .sequence = 8},
      {.data = 3, .layers = 3, .shard = "states"},
      {.pipeline = 2, .tensor = 2, .data = 2, .scheduler = "sched-1f1b", .layers = 5, .shard = "states"},
      {.pipeline = 2, .tensor = 2, .data = 3, .scheduler = "sched-1f1b", .layers = 5, .shard = "gradients"},
      {.pipeline = 2, .tensor = 2, .data = 2, .scheduler = "sched-1f1b", .layers = 5, .shard = "parameters"},
      {.data = 3, .chunks = 5, .scheduler = "sched-breadth-first", .layers = 6, .shard = "parameters"},
  };
  for (const Case& run : cases) expect_formulas(run, {.steps = 2});
}

TEST(Traffic, OfLlama) {
  const Case cases[] = {
      {1, 2, 1, 1, "sched-gpipe", 1, 4, "kernels-reference", 3},
      {2, 4, 1, 1, "sched-1f1b", 2, 4, "kernels-cpu", 4},
      {2, 1, 3, 1, "sched-1f1b", 1, 2, "kernels-cpu", 3},
      {.pipeline = 2, .tensor = 2, .scheduler = "sched-1f1b", .layers = 3, .sequence_parallel = true, .sequence = 8},
      {.pipeline = 2, .data = 2, .scheduler = "sched-1f1b", .layers = 3, .shard = "gradients"},
      {.data = 3, .chunks = 4, .scheduler = "sched-breadth-first", .layers = 5, .shard = "parameters"},
  };
  for (const Case& run : cases) expect_formulas(run, {.model = "model-llama", .steps = 2});
}

#ifdef TRIAX_WITH_UCX
/// Each axis counts the traffic of its backend.
TEST(Traffic, OfAnAxisWithABackendOfItsOwn) {
  const Training mixed{.pipeline_comm = "comm-ucx", .steps = 2};
  for (const bool scattered : {false, true})
    expect_formulas({.pipeline = 2, .tensor = 2, .data = 2, .scheduler = "sched-1f1b", .scatter_gather = scattered},
                    mixed);
}
#endif

/// The formulas above equal the papers' totals if every division is exact.
TEST(Traffic, FormulasAreThePapers) {
  const std::int64_t b = 4, s = Case().sequence, h = kHidden, l = 6, m = 2;
  for (const int t : {2, 4}) {
    const Case whole{1, t, 1, 1, "sched-gpipe", b, m, "kernels-reference", l};
    Case shorter = whole;
    shorter.layers = l - 1;
    const Moved with = Formulas(whole, 0).tensor(), without = Formulas(shorter, 0).tensor();
    const std::int64_t squares = (t - 1) * 12 * kDouble; // of the layer's twelve parameters
    EXPECT_EQ(with.bytes - without.bytes - squares, m * 8 * b * s * h * (t - 1) / t * kFloat);
    EXPECT_EQ(with.ops - without.ops, m * 4);
  }
  // A block more in the first of nine stages: 3/2 of the bytes without sharding, up to the alignment of the parts.
  const auto of_one_more = [](const char* shard) {
    const Case whole{.data = 2, .chunks = 9, .scheduler = "sched-breadth-first", .layers = 10, .shard = shard};
    Case shorter = whole;
    shorter.layers = 9;
    const std::int64_t squares = 12 * kDouble;
    return static_cast<double>(Formulas(whole, 0).data().bytes - Formulas(shorter, 0).data().bytes - squares);
  };
  EXPECT_NEAR(of_one_more("parameters"), 1.5 * of_one_more(""), 3 * 256);
  for (const int chunks : {1, 2, 3}) { // a rank in the middle: v times the transfers
    const Case run{3, 1, 1, chunks, chunks == 1 ? "sched-1f1b" : "sched-interleaved", b, m, "kernels-reference", 9};
    const std::int64_t values = 2 * (m * b + 1 + (9 / 3) * 12 + 3) * kDouble; // losses, a request, and squares
    EXPECT_EQ(Formulas(run, 1).pipeline().bytes, chunks * 2 * m * b * s * h * kFloat + values);
  }
}

} // namespace
} // namespace triax::equality
