// SPDX-License-Identifier: Apache-2.0
// Compares what the harness keeps of two runs.
#include "equality/same_bits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "triax/tensor.hpp"
#include "triax/text.hpp"

namespace triax::equality {

namespace {

/// The rank with the same tensor and data coordinates on one pipeline rank.
std::size_t counterpart(const Case& run, std::size_t rank) {
  return rank % static_cast<std::size_t>(run.tensor * run.data); // pipeline varies slowest
}

void expect_same_numbers(const std::vector<double>& one, const std::vector<double>& other, const char* what) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t step = 0; step < one.size(); ++step)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(one[step]), std::bit_cast<std::uint64_t>(other[step]))
        << what << " of step " << step + 1 << ": " << text("{}, and {}", one[step], other[step]);
}

/// Data ranks may divide weights and gradients: `part` begins at element `first` of `whole`.
bool is_part(const std::vector<std::byte>& part, std::int64_t first, const std::vector<std::byte>& whole, DType dtype) {
  const std::size_t begin = static_cast<std::size_t>(first) * bytes_of(dtype);
  return begin + part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// Every parameter is on some pipeline rank. The tied token table is on the ranks of the first stage and of the last;
/// in a V these are one rank.
void expect_complete(const Case& run, const Ranks& ranks, const Ranks& whole) {
  std::set<std::string> found;
  for (const KeptRank& rank : ranks)
    for (const auto& [name, parameter] : rank.parameters) found.insert(name);
  EXPECT_EQ(found.size(), whole.front().parameters.size());
  EXPECT_TRUE(ranks.front().parameters.contains("embedding/tokens.weight"));
  const bool vee = run.scheduler == "sched-zb-v";
  EXPECT_EQ(ranks.back().parameters.contains("embedding/tokens.weight"), !vee || run.pipeline == 1) << to_text(run);
}

} // namespace

const Ranks& expected(Case run, const Training& training) {
  using Key =
      std::tuple<int, int, std::int64_t, std::int64_t, std::int64_t, std::string, std::string, bool, std::string, int>;
  static std::map<Key, Ranks> known;
  run.pipeline = run.chunks = 1;
  run.scheduler = "sched-gpipe";
  run.group = 0;
  run.through_file = run.scatter_gather = run.recompute = run.cheap = run.partition = run.host_inputs = false;
  run.shard.clear();
  run.offload = run.host_update = false;
  run.split.clear();
  const Key key{run.tensor,         run.data,
                run.micro,          run.microbatches,
                run.layers,         run.kernels,
                training.precision, run.sequence_parallel,
                training.model,     training.warmup_steps};
  if (!known.contains(key)) known[key] = train(run, training);
  return known.at(key);
}

void expect_same(const KeptRank& one, const KeptRank& all) {
  expect_same_numbers(one.losses, all.losses, "loss");
  expect_same_numbers(one.norms, all.norms, "grad_norm");
  expect_same_numbers(one.scales, all.scales, "loss_scale");
  EXPECT_EQ(one.skipped, all.skipped);
  expect_same_numbers({one.held_out}, {all.held_out}, "loss on held-out samples");
  for (const auto& [name, parameter] : one.parameters) {
    ASSERT_TRUE(all.parameters.contains(name)) << name;
    const KeptParameter& other = all.parameters.at(name);
    EXPECT_TRUE(is_part(parameter.gradient, parameter.gradient_first, other.gradient, parameter.dtype))
        << "gradient of " << name;
    EXPECT_TRUE(is_part(parameter.working, parameter.working_first, other.working, parameter.working_dtype))
        << "working weights of " << name;
    EXPECT_TRUE(is_part(parameter.weights, parameter.first, other.weights, parameter.dtype)) << "weights of " << name;
  }
}

void expect_as_expected(const Case& run, const Training& training, const Ranks* same_as) {
  SCOPED_TRACE(to_text(run));
  const Ranks& whole = same_as ? *same_as : expected(run, training);
  const Ranks ranks = train(run, training);
  expect_complete(run, ranks, whole);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    SCOPED_TRACE(text("rank {}", rank));
    expect_same(ranks[rank], whole[counterpart(run, rank)]);
    expect_same_numbers(ranks[rank].losses, whole.front().losses, "loss, against rank 0's,");
    expect_same_numbers(ranks[rank].norms, whole.front().norms, "grad_norm, against rank 0's,");
  }
}

} // namespace triax::equality
