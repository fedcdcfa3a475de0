// SPDX-License-Identifier: Apache-2.0
// For programs that differ by one or more flips from lowered ones, the verifier agrees with a search over every order
// of steps and transfers, under every guarantee that a backend may give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "schedule/guarantees.hpp"
#include "schedule/lower.hpp"
#include "schedule/program_flips.hpp"
#include "schedule/program_interleavings.hpp"
#include "schedule/row_flips.hpp"
#include "triax/text.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using test::BentPrograms;
using test::ProgramFlip;
using test::ProgramsSpace;
using Posts = Program::Posts;

constexpr Assumptions kMin = everywhere(test::kLoosest);
constexpr std::array kShardings = {Sharding::none, Sharding::states, Sharding::gradients, Sharding::parameters};

/// Results, each for one combination of assumptions.
struct ProgramFlipCounts {
  int accepted = 0, faulty = 0, hanging = 0;
  /// Refused although they run correctly, by the rule that refuses them.
  int order_of_sums = 0, order_of_edges = 0, unnamed_waits = 0;
  int by_guarantee = 0; // programs that some assumptions accept and others do not
  std::size_t states = 0;

  void record() const {
    ::testing::Test::RecordProperty(
        "verdicts",
        text("{} accepted, {} faulty, {} hang; refused although they run correctly: {} for the order of sums, {} for "
             "the order of edges, {} for waits that are not named; {} programs by guarantee; {} states",
             accepted, faulty, hanging, order_of_sums, order_of_edges, unnamed_waits, by_guarantee, states));
  }
};

std::string shown(const std::vector<Program>& programs, const Assumptions& assumptions,
                  const std::vector<schedule::Violation>& refusals) {
  std::string out = text("{}, in sets {}\n", test::to_text(assumptions), programs[0].posts() == Posts::sets);
  for (const Program& program : programs) {
    for (ActionId id = 0; id < program.actions().size(); ++id) {
      out += text("{}{}", id == 0 ? "" : " ", program.label(id));
      for (const ActionId waited : program.actions()[id].waits) out += text("<{}", waited);
    }
    out += "\n";
  }
  for (const schedule::Violation& refusal : refusals) out += refusal.reason() + "\n";
  return out;
}

class Judge {
 public:
  Judge(const Purpose& purpose, ProgramFlipCounts& counts) : purpose_(purpose), counts_(counts) {}

  /// False if verifier and search disagree.
  bool agree(const std::vector<Program>& programs) {
    int accepted = 0;
    const std::vector<Assumptions> assumed = test::all_assumptions();
    for (const Assumptions& assumptions : assumed) {
      const int before = counts_.accepted;
      if (!agree(programs, assumptions)) return false;
      accepted += counts_.accepted - before;
    }
    counts_.by_guarantee += accepted > 0 && accepted < static_cast<int>(assumed.size());
    return true;
  }

 private:
  bool agree(const std::vector<Program>& programs, const Assumptions& assumptions) {
    const std::vector<schedule::Violation> refusals = verify(programs, purpose_, assumptions);
    const ProgramsSpace space(programs, purpose_, assumptions);
    const test::SearchResult found = test::search(space);
    counts_.states += found.states;
    // The verifier has three stricter rules. The order of a sum affects its bits, but causes no deadlock. Different
    // orders at the ends of an edge would need tags, which the executor does not send. A slot or sync point must name
    // the transfers it waits for: a program must not rely on blocking posts, on a queue, or on the progress of other
    // ranks.
    const bool ascend = space.sums_ascend(), one_order = space.edges_keep_one_order(), named = space.waits_are_named();
    const bool holds = found.safe() && ascend && one_order && named;
    EXPECT_EQ(refusals.empty(), holds) << "search: " << (found.safe() ? "runs correctly" : found.fault) << "\n"
                                       << shown(programs, assumptions, refusals);
    if (refusals.empty() != holds) return false;
    count(found, refusals.empty(), ascend, one_order);
    return true;
  }
  void count(const test::SearchResult& found, bool accepted, bool ascend, bool one_order) {
    if (accepted) {
      ++counts_.accepted;
    } else if (!found.safe()) {
      ++(found.fault == test::kDeadlock ? counts_.hanging : counts_.faulty);
    } else {
      ++(!ascend ? counts_.order_of_sums : !one_order ? counts_.order_of_edges : counts_.unnamed_waits);
    }
  }

  const Purpose& purpose_;
  ProgramFlipCounts& counts_;
};

/// How schedules are lowered.
struct Lowered {
  Boundaries boundaries = Boundaries::whole;
  Sharding sharding = Sharding::none;
  int prefetch = kDefaultPrefetch;
  bool recomputes = false; // all stages do, in training
};

std::vector<Program> lowered_once(const Schedule& schedule, const Purpose& purpose, const Lowered& how) {
  if (purpose.forward_only)
    return lower_forward_only(schedule, purpose.shape, how.boundaries, how.sharding, how.prefetch);
  return lower(schedule, purpose.shape, how.boundaries, how.sharding, how.prefetch,
               std::vector<bool>(static_cast<std::size_t>(purpose.shape.stages()), how.recomputes));
}

/// The lowered programs, and the same with one slot for each microbatch.
std::vector<BentPrograms> lowered(const Schedule& schedule, const Purpose& purpose, const Lowered& how = {}) {
  std::vector<BentPrograms> out(2, BentPrograms(lowered_once(schedule, purpose, how)));
  out.back().add_slots(purpose.shape.microbatches);
  return out;
}

std::string name_of(const PipelineShape& shape, const std::string& scheduler) {
  return text("p {}, v {}, m {}, {}", shape.pipeline, shape.chunks, shape.microbatches, scheduler);
}

ProgramFlipCounts every_flip(const Lowered& how, const PipelineShape& shape = {2, 1, 2}) {
  ProgramFlipCounts counts;
  for (const bool forward_only : {false, true}) {
    const Purpose purpose{shape, forward_only};
    Judge judge(purpose, counts);
    for (const auto& [name, schedule] : test::valid_schedules(purpose.shape))
      for (const BentPrograms& valid : lowered(schedule, purpose, how))
        for (const Posts posts : {Posts::one_by_one, Posts::sets}) {
          EXPECT_TRUE(judge.agree(valid.programs(posts))) << name;
          for (const ProgramFlip& each : test::program_flips(valid)) {
            BentPrograms bent = valid;
            test::flip(bent, each);
            EXPECT_TRUE(judge.agree(bent.programs(posts)))
                << text("{}, {} of rank {}, position {}, {}", name, name_of(each.how), each.rank, each.at, each.to);
            if (::testing::Test::HasFailure()) return counts; // one failure is enough
          }
        }
  }
  counts.record();
  return counts;
}

TEST(ProgramFlips, EveryOneOfTheSmallestScatteredPrograms) {
  const ProgramFlipCounts counts = every_flip({.boundaries = Boundaries::scattered});
  EXPECT_GE(counts.accepted, 1500);
  EXPECT_GE(counts.faulty, 20000);
  EXPECT_GE(counts.hanging, 800);
  EXPECT_GE(counts.unnamed_waits, 500);
  EXPECT_GE(counts.by_guarantee, 40);
}

TEST(ProgramFlips, EveryOneOfTheSmallestPrograms) {
  const ProgramFlipCounts counts = every_flip({});
  EXPECT_GE(counts.accepted, 1500);
  EXPECT_GE(counts.faulty, 20000);
  EXPECT_GE(counts.hanging, 800);
  EXPECT_GE(counts.order_of_sums, 100);
  EXPECT_GE(counts.order_of_edges, 100);
  EXPECT_GE(counts.unnamed_waits, 500);
  EXPECT_GE(counts.by_guarantee, 40);
}

/// R before each B and I, which may not be dropped, doubled or moved away from it.
TEST(ProgramFlips, EveryOneOfTheSmallestProgramsThatRecompute) {
  for (const Boundaries boundaries : {Boundaries::whole, Boundaries::scattered}) {
    const ProgramFlipCounts counts = every_flip({.boundaries = boundaries, .recomputes = true});
    EXPECT_GE(counts.accepted, 1500);
    EXPECT_GE(counts.faulty, 20000);
    EXPECT_GE(counts.hanging, 800);
  }
  const ProgramFlipCounts sharded = every_flip({.sharding = Sharding::parameters, .recomputes = true}, {1, 2, 1});
  EXPECT_GE(sharded.accepted, 100);
  EXPECT_GE(sharded.faulty, 1000);
}

/// Three stages take turns in two accumulators, and in one or two slots for weights.
TEST(ProgramFlips, EveryOneOfTheSmallestProgramsWhoseStagesShareSlots) {
  for (const Lowered& how : {Lowered{.sharding = Sharding::gradients},
                             {.sharding = Sharding::parameters},
                             {.sharding = Sharding::parameters, .prefetch = 0}}) {
    SCOPED_TRACE(text("sharding {}, prefetch {}", static_cast<int>(how.sharding), how.prefetch));
    const ProgramFlipCounts one = every_flip(how, {1, 3, 1}), two = every_flip(how, {1, 3, 2});
    EXPECT_GE(one.accepted + two.accepted, 5000);
    EXPECT_GE(one.faulty + two.faulty, 60000);
    EXPECT_GE(one.unnamed_waits + two.unnamed_waits, 300);
  }
}

/// Draws a move of a transfer by a few positions, or any flip.
ProgramFlip draw(const BentPrograms& programs, std::mt19937& random) {
  std::vector<ProgramFlip> flips = test::program_flips(programs);
  if (random() % 2 == 0)
    std::erase_if(flips, [&programs](const ProgramFlip& flip) {
      const bool is_transfer = schedule::is_transfer(programs.list(flip.rank)[flip.at].kind);
      return flip.how == ProgramFlip::How::move && (!is_transfer || flip.to > flip.at + 3 || flip.to + 3 < flip.at);
    });
  return flips[random() % flips.size()];
}

/// Most walks are of programs that divide nothing.
Sharding sharding_of(int walk) {
  return walk < 4 ? Sharding::none : kShardings[static_cast<std::size_t>(walk) % kShardings.size()];
}

// Applies flip after flip while the verifier accepts the result under the strongest guarantees. Many of these programs
// deadlock under weaker ones.
TEST(ProgramFlips, OneAfterAnother) {
  constexpr int kWalks = 8, kSteps = 25;
  std::mt19937 random(1);
  ProgramFlipCounts counts;
  for (const PipelineShape& shape : {PipelineShape{2, 1, 2}, {2, 1, 3}, {2, 2, 2}, {3, 1, 2}}) {
    const Purpose purpose{shape};
    Judge judge(purpose, counts);
    for (const auto& [name, schedule] : test::valid_schedules(shape))
      for (int walk = 0; walk < kWalks; ++walk)
        for (const BentPrograms& valid : lowered(schedule, purpose, {.sharding = sharding_of(walk)})) {
          SCOPED_TRACE(name_of(shape, name));
          const Posts posts = walk % 2 == 0 ? Posts::one_by_one : Posts::sets;
          BentPrograms reached = valid;
          for (int step = 0; step < kSteps; ++step) {
            BentPrograms bent = reached;
            test::flip(bent, draw(bent, random));
            ASSERT_TRUE(judge.agree(bent.programs(posts)));
            if (verify(bent.programs(posts), purpose, kMin).empty()) reached = bent;
          }
        }
  }
  counts.record();
  EXPECT_GE(counts.accepted, 1500);
  EXPECT_GE(counts.faulty, 20000);
  EXPECT_GE(counts.hanging, 1500);
  EXPECT_GE(counts.order_of_sums, 60);
  EXPECT_GE(counts.order_of_edges, 150);
  EXPECT_GE(counts.unnamed_waits, 700);
  EXPECT_GE(counts.by_guarantee, 80);
}

// The orders that the search merges make no difference.
TEST(ProgramFlips, OrdersThatAreOneAreOne) {
  std::mt19937 random(1);
  const Purpose purpose{{2, 1, 2}};
  int safe = 0, unsafe = 0;
  for (const auto& [name, schedule] : test::valid_schedules(purpose.shape))
    for (const BentPrograms& valid : lowered(schedule, purpose))
      for (int drawn = 0; drawn < 100; ++drawn) {
        BentPrograms bent = valid;
        test::flip(bent, draw(bent, random));
        const std::vector<Program> programs = bent.programs(drawn % 2 == 0 ? Posts::one_by_one : Posts::sets);
        for (const Assumptions& assumptions : test::all_assumptions()) {
          const test::SearchResult fewer = test::search(ProgramsSpace(programs, purpose, assumptions));
          const test::SearchResult all =
              test::search(ProgramsSpace(programs, purpose, assumptions, ProgramsSpace::Orders::all));
          ASSERT_EQ(fewer.safe(), all.safe()) << shown(programs, assumptions, {}) << fewer.fault << all.fault;
          if (all.safe()) {
            ASSERT_LE(fewer.states, all.states);
          }
          ++(all.safe() ? safe : unsafe);
        }
      }
  EXPECT_GE(safe, 300);
  EXPECT_GE(unsafe, 300);
}

TEST(ProgramFlips, AcceptProgramsLoweredFromValidFlippedRows) {
  ProgramFlipCounts counts;
  int lowerings = 0;
  for (const PipelineShape& shape :
       {PipelineShape{2, 1, 2}, {2, 1, 3}, {2, 2, 2}, {3, 1, 2}, {3, 1, 3}, {2, 2, 3}, {3, 2, 2}}) {
    const Purpose training{shape}, evaluation{shape, true};
    for (const auto& [name, schedule] : test::valid_schedules(shape))
      for (const test::RowFlip& flip : test::row_flips(schedule, shape)) {
        const Schedule rows = flipped(schedule, flip);
        if (!verify(rows, shape).empty()) continue;
        SCOPED_TRACE(name_of(shape, name));
        ++lowerings;
        const Boundaries boundaries = lowerings % 2 == 0 ? Boundaries::whole : Boundaries::scattered;
        const Sharding sharding = kShardings[static_cast<std::size_t>(lowerings / 2) % kShardings.size()];
        const Lowered how{.boundaries = boundaries, .sharding = sharding, .recomputes = lowerings % 3 == 0};
        ASSERT_TRUE(Judge(training, counts).agree(lowered_once(rows, training, how)));
        ASSERT_TRUE(Judge(evaluation, counts).agree(lowered_once(rows, evaluation, how)));
      }
  }
  counts.record();
  EXPECT_EQ(counts.accepted, 2 * lowerings * static_cast<int>(test::all_assumptions().size()));
  EXPECT_GE(lowerings, 400);
}

} // namespace
