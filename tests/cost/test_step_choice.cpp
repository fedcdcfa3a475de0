// SPDX-License-Identifier: Apache-2.0
// The choice of recomputed steps: the integer program is brute force on small graphs, and never worse than what keeps
// everything, recomputes everything, or recomputes what is cheap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "cost/integer_program.hpp"
#include "cost/step_choice.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::cost {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

#define TRIAX_NEEDS_SOLVER() \
  if (const std::string error = integer_solver_error(); !error.empty()) GTEST_SKIP() << error

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  std::int64_t below(int limit) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(limit)); }

 private:
  std::mt19937 random_;
};

/// Each tensor has a step that writes it from earlier ones; some have another one, some steps write two.
StepGraph random_graph(Random& random, int tensors, int blocks) {
  StepGraph out;
  out.blocks = blocks;
  out.shared = random.below(4);
  for (int tensor = 0; tensor < tensors; ++tensor) {
    const std::int64_t size = 1 + random.below(9);
    out.tensors.push_back(
        {"t" + std::to_string(tensor), size * (1 + random.below(3)), random.below(2) * random.below(3) * size, size});
    for (std::int64_t ways = random.below(3) == 0 ? 2 : 1; ways > 0; --ways) {
      StepGraph::Step step{"s" + std::to_string(out.steps.size()), 1 + random.below(6), {tensor}, {}};
      if (tensor > 0 && random.below(4) == 0) step.writes.push_back(static_cast<int>(random.below(tensor)));
      for (int reads = static_cast<int>(random.below(3)); reads > 0 && tensor > 0; --reads)
        if (const int read = static_cast<int>(random.below(tensor)); std::ranges::count(step.reads, read) == 0)
          step.reads.push_back(read);
      out.steps.push_back(std::move(step));
    }
  }
  return out;
}

std::vector<int> members(unsigned set, std::size_t size) {
  std::vector<int> out;
  for (std::size_t i = 0; i < size; ++i)
    if ((set >> i & 1U) != 0) out.push_back(static_cast<int>(i));
  return out;
}

/// Every choice of a block that can run.
std::vector<BlockSteps> all_choices(const StepGraph& graph) {
  std::vector<BlockSteps> out;
  for (unsigned steps = 0; steps < 1U << graph.steps.size(); ++steps)
    for (unsigned dropped = 0; dropped < 1U << graph.tensors.size(); ++dropped) {
      BlockSteps block{members(steps, graph.steps.size()), members(dropped, graph.tensors.size())};
      if (wrong_steps(graph, block).empty()) out.push_back(std::move(block));
    }
  return out;
}

/// Those that no other one of the graph equals or beats in time and in both kinds of bytes.
std::vector<BlockSteps> best_choices(const StepGraph& graph) {
  using Costs = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::vector<std::pair<Costs, BlockSteps>> best;
  const auto beats = [](const Costs& one, const Costs& other) {
    return std::get<0>(one) <= std::get<0>(other) && std::get<1>(one) <= std::get<1>(other) &&
           std::get<2>(one) <= std::get<2>(other);
  };
  for (const BlockSteps& block : all_choices(graph)) {
    Costs costs;
    for (const int step : block.steps) std::get<0>(costs) += graph.steps[static_cast<std::size_t>(step)].time;
    for (const int tensor : block.dropped) {
      const StepGraph::Tensor& of = graph.tensors[static_cast<std::size_t>(tensor)];
      std::get<1>(costs) += of.dropped - of.kept;
      std::get<2>(costs) += of.shared;
    }
    if (std::ranges::any_of(best, [&](const auto& other) { return beats(other.first, costs); })) continue;
    std::erase_if(best, [&](const auto& other) { return beats(costs, other.first); });
    best.emplace_back(costs, block);
  }
  std::vector<BlockSteps> out;
  for (auto& [costs, block] : best) out.push_back(std::move(block));
  return out;
}

/// Visits each choice of up to three blocks of one stage, or one block of each of two stages.
template <class Visit>
void for_each_choice(const StepProblem& problem, const Visit& visit) {
  std::vector<std::pair<std::size_t, const BlockSteps*>> chosen;
  std::vector<std::vector<BlockSteps>> choices;
  for (const StepGraph& graph : problem.stages) choices.push_back(best_choices(graph));
  const auto add = [&](const auto& next, std::size_t stage, int block) -> void {
    if (stage == problem.stages.size()) {
      StepChoice choice;
      choice.blocks.resize(problem.stages.size());
      for (const auto& [of, steps] : chosen) choice.blocks[of].push_back(*steps);
      evaluate(problem, choice);
      visit(choice);
      return;
    }
    if (block == problem.stages[stage].blocks) return next(next, stage + 1, 0);
    for (const BlockSteps& steps : choices[stage]) {
      chosen.emplace_back(stage, &steps);
      next(next, stage, block + 1);
      chosen.pop_back();
    }
  };
  add(add, 0, 0);
}

/// No tensor is kept that the steps of all blocks of a stage write anyway, if that saves memory.
void expect_no_needless_tensor(const StepProblem& problem, const StepChoice& choice) {
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage)
    for (int tensor = 0; tensor < static_cast<int>(problem.stages[stage].tensors.size()); ++tensor) {
      StepChoice less = choice;
      for (BlockSteps& block : less.blocks[stage]) {
        if (std::ranges::find(block.dropped, tensor) != block.dropped.end()) continue;
        BlockSteps more = block;
        more.dropped.push_back(tensor);
        std::ranges::sort(more.dropped);
        if (wrong_steps(problem.stages[stage], more).empty()) block = more;
      }
      evaluate(problem, less);
      EXPECT_GE(less.bytes, choice.bytes) << "tensor " << tensor;
    }
}

void expect_brute_force(StepProblem problem, Random& random) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for_each_choice(problem, [&](const StepChoice& choice) {
    least = std::min(least, choice.bytes);
    most = std::max(most, choice.bytes);
  });
  EXPECT_EQ(smallest_steps(problem).bytes, least);
  problem.budget = least - 1;
  EXPECT_FALSE(choose_steps(problem));
  for (const std::int64_t budget : {least, least + random.below(static_cast<int>(most - least) + 1), most}) {
    problem.budget = budget;
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for_each_choice(problem, [&](const StepChoice& choice) {
      if (choice.bytes <= budget) best = std::min(best, choice.time);
    });
    const std::optional<StepChoice> chosen = choose_steps(problem);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->time, best) << "budget " << budget; // small times: a thousandth is less than one
    EXPECT_LE(chosen->bytes, budget);
    expect_no_needless_tensor(problem, *chosen);
  }
}

TEST(StepChoice, IsBruteForceOnSmallGraphs) {
  TRIAX_NEEDS_SOLVER();
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    StepProblem problem;
    problem.fixed = random.below(20);
    problem.shared = random.below(12);
    if (seed % 4 == 0) {
      for (int stage = 0; stage < 2; ++stage) problem.stages.push_back(random_graph(random, 4, 1));
    } else {
      problem.stages.push_back(random_graph(random, seed % 4 == 3 ? 3 : 4, static_cast<int>(seed % 4)));
    }
    expect_brute_force(problem, random);
  }
}

/// norm, product, activation: of a block of a microbatch in flight, in units of a column.
StepProblem chain(int blocks) {
  StepGraph graph;
  graph.blocks = blocks;
  graph.tensors = {{"normed", 20, 0, 1}, {"wide", 80, 0, 4}, {"active", 80, 0, 4}};
  graph.steps = {{"norm", 1, {0}, {}}, {"product", 16, {1, 2}, {0}}, {"act", 2, {2}, {1}}};
  return {.stages = {graph}};
}

TEST(StepChoice, KeepsWhatFits) {
  StepProblem problem = chain(3);
  problem.budget = 3 * 180;
  const std::optional<StepChoice> chosen = choose_steps(problem);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->time, 0);
  EXPECT_EQ(chosen->bytes, 540);
  for (const BlockSteps& block : chosen->blocks[0]) EXPECT_THAT(block.steps, IsEmpty());
}

/// Some blocks recompute more than others, and none more than it needs to: six the activation, one a norm.
TEST(StepChoice, MixesBlocks) {
  TRIAX_NEEDS_SOLVER();
  StepProblem problem = chain(12);
  problem.budget = 12 * 180 - 500 + 5;
  const std::optional<StepChoice> chosen = choose_steps(problem);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->time, 6 * 2 + 1);
  EXPECT_EQ(chosen->bytes, problem.budget - 1); // they share memory
  const auto count = [&chosen](int step) {
    return std::ranges::count_if(chosen->blocks[0], [step](const BlockSteps& block) {
      return std::ranges::find(block.steps, step) != block.steps.end();
    });
  };
  EXPECT_EQ(count(0), 1);
  EXPECT_EQ(count(1), 0);
  EXPECT_EQ(count(2), 6);
}

/// A step repeats the product if what the activation reads is not kept.
TEST(StepChoice, RecomputesWhatItsStepsRead) {
  TRIAX_NEEDS_SOLVER();
  StepProblem problem = chain(1);
  const StepChoice least = smallest_steps(problem);
  EXPECT_EQ(least.bytes, 9);
  EXPECT_EQ(least.time, 17);
  problem.budget = 8;
  EXPECT_FALSE(choose_steps(problem));
  problem.budget = 9;
  EXPECT_EQ(choose_steps(problem)->blocks, least.blocks);
}

TEST(StepChoice, SaysWhatIsWrong) {
  const StepProblem problem = chain(1);
  const StepGraph& graph = problem.stages[0];
  EXPECT_EQ(wrong_steps(graph, {{0, 2}, {0, 2}}), "");
  EXPECT_EQ(wrong_steps(graph, {{0}, {0, 2}}), "active is dropped, but no step computes it again");
  EXPECT_EQ(wrong_steps(graph, {{0, 2}, {0, 1, 2}}), "act reads wide, which is not kept");
}

TEST(StepChoice, SetsOfBlocksMakeEveryNumber) {
  EXPECT_THAT(block_sets(0), IsEmpty());
  EXPECT_THAT(block_sets(3), ElementsAre(1, 1, 1));
  EXPECT_THAT(block_sets(12), ElementsAre(1, 1, 2, 4, 4));
  EXPECT_THAT(block_sets(96), ElementsAre(1, 1, 2, 4, 8, 16, 32, 32));
}

/// The search of the last thousandth of such a problem takes minutes: many blocks, and stages that differ in their
/// microbatches in flight only.
TEST(StepChoice, OfManyBlocksIsFound) {
  TRIAX_NEEDS_SOLVER();
  StepProblem problem;
  for (const std::int64_t in_flight : {11, 9, 7, 5}) {
    StepGraph& graph = problem.stages.emplace_back();
    graph.blocks = 11;
    graph.shared = 34848;
    for (const std::int64_t bytes : {1, 1, 1, 1, 9504, 48, 6336, 12672, 6336, 3168, 6336, 12672})
      graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), bytes * in_flight, 0, bytes});
    graph.steps = {{"norm", 1, {0, 1, 8}, {}},
                   {"qkv", 994, {4}, {8}},
                   {"attention", 119, {5, 9}, {4}},
                   {"projection", 333, {2, 3, 6, 10}, {9}},
                   {"mlp norm", 1, {2, 3, 10}, {6}},
                   {"up", 1325, {7, 11}, {10}},
                   {"gelu", 1, {11}, {7}}};
  }
  const StepChoice least = smallest_steps(problem);
  problem.budget = 6'000'000; // of the 20 MB that are kept without recomputation
  const std::optional<StepChoice> chosen = choose_steps(problem);
  ASSERT_TRUE(chosen);
  EXPECT_LE(chosen->bytes, problem.budget);
  EXPECT_LT(chosen->time, least.time / 3);
}

/// Equal problems have equal choices: a job has those that were planned.
TEST(StepChoice, IsRepeatable) {
  TRIAX_NEEDS_SOLVER();
  Random random(7);
  StepProblem problem{.stages = {random_graph(random, 6, 13), random_graph(random, 5, 9)}};
  problem.budget = (smallest_steps(problem).bytes + 3 * 300) / 2;
  const std::optional<StepChoice> one = choose_steps(problem), other = choose_steps(problem);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->blocks, other->blocks);
}

/// Opening it would block.
TEST(StepChoice, AFifoIsNoSolver) {
  const test::TempFolder folder;
  const std::filesystem::path file = folder / "libtriax_solver.so";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(integer_solver_error(file),
            "the solver of integer programs cannot be loaded: " + file.string() + " is not a regular file");
}

TEST(StepChoice, WithoutASolverSaysWhatToInstall) {
  if (integer_solver_error().empty()) GTEST_SKIP() << "this build has CBC";
  StepProblem problem = chain(1);
  try {
    choose_steps(problem);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), testing::HasSubstr("coinor-libcbc-dev"));
  }
}

} // namespace
} // namespace triax::cost
