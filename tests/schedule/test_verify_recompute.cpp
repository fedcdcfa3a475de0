// SPDX-License-Identifier: Apache-2.0
// The verifier on programs with R: lowered ones pass with any guarantees of a backend, and R at a wrong position, or
// without a slot, is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "schedule/guarantees.hpp"
#include "schedule/lower.hpp"
#include "schedule/program_flips.hpp"
#include "schedule/rows.hpp"
#include "schedule/verify.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using test::BentPrograms;
using test::reasons;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two stages that recompute, with whole and split backwards.
class VerifyRecompute : public ::testing::Test {
 protected:
  std::vector<Program> lowered(Boundaries boundaries) const {
    return lower(rows_, shape_, boundaries, Sharding::none, kDefaultPrefetch, {true, true});
  }
  std::vector<std::string> refused(const std::vector<Program>& programs, const Assumptions& assumptions) const {
    return reasons(verify(programs, {shape_}, assumptions));
  }
  /// The violations after a change to the programs.
  template <class Change>
  std::vector<std::string> after(Change change) const {
    BentPrograms bent(lowered(Boundaries::whole));
    change(bent);
    return refused(
        bent.programs(Program::Posts::one_by_one),
        everywhere({CommTraits::Order::tagged, CommTraits::Send::rendezvous, CommTraits::Post::nonblocking}));
  }
  /// The position of an action of rank 0.
  static std::size_t position_of(const BentPrograms& programs, const std::string& action) {
    const std::vector<ProgramAction>& list = programs.list(0);
    for (std::size_t at = 0; at < list.size(); ++at)
      if (action_text(list[at].kind, list[at].stage, list[at].microbatch) == action) return at;
    throw std::runtime_error("no " + action);
  }
  static void drop(BentPrograms& programs, const std::string& action) {
    programs.drop(0, position_of(programs, action));
  }
  static void move(BentPrograms& programs, const std::string& action, const std::string& to) {
    programs.move(0, position_of(programs, action), position_of(programs, to));
  }

 private:
  const PipelineShape shape_{2, 1, 3};
  const Schedule rows_ =
      test::schedule_of(shape_, {0, 1}, {"0F0 0F1 0B0 0F2 0I1 0W1 0B2", "1F0 1B0 1F1 1I1 1W1 1F2 1B2"});
};

TEST_F(VerifyRecompute, HoldsForEveryGuaranteeOfABackend) {
  for (const Boundaries boundaries : {Boundaries::whole, Boundaries::scattered})
    for (const Assumptions& assumptions : test::all_assumptions())
      EXPECT_THAT(refused(lowered(boundaries), assumptions), ElementsAre());
}

TEST_F(VerifyRecompute, IsMissingForNoBackwardOrForAll) {
  EXPECT_THAT(after([](BentPrograms& programs) { drop(programs, "0R0"); }),
              ElementsAre(HasSubstr("0B0: it needs 0R0, which is not in the program")));
  EXPECT_THAT(after([](BentPrograms& programs) { drop(programs, "0R1"); }),
              Contains(HasSubstr("0I1: it needs 0R1, which is not in the program")));
  EXPECT_THAT(after([](BentPrograms& programs) {
                for (const char* action : {"0R0", "0R1", "0R2"}) drop(programs, action);
              }),
              ElementsAre()); // B and I recompute
}

TEST_F(VerifyRecompute, IsDirectlyBeforeItsBackward) {
  EXPECT_THAT(after([](BentPrograms& programs) { move(programs, "0R2", "0W1"); }),
              ElementsAre(HasSubstr("0R2: the next pass of the rank must be the backward of stage 0, microbatch 2, but "
                                    "it is 0W1, at action ")));
  EXPECT_THAT(after([](BentPrograms& programs) { move(programs, "0R2", "REDUCE_TIED"); }),
              Contains(HasSubstr("0R2: the next pass of the rank must be the backward of stage 0, microbatch 2, but "
                                 "there is none")));
  EXPECT_THAT(after([](BentPrograms& programs) { move(programs, "0R0", "0F0"); }),
              Contains(HasSubstr("0R0: it needs 0F0, which comes later")));
  EXPECT_THAT(after([](BentPrograms& programs) {
                programs.duplicate(0, position_of(programs, "0R0"), programs.list(0).size());
              }),
              Contains(HasSubstr("0R0: the recomputation of stage 0, microbatch 0 is already at action")));
}

TEST_F(VerifyRecompute, TakesTheSlotOfWhatAWeightGradientReads) {
  const auto slot_of = [](BentPrograms& programs, const char* action) -> std::int32_t& {
    return programs.list(0)[position_of(programs, action)].own[static_cast<std::size_t>(Pool::stash_iw)];
  };
  EXPECT_THAT(after([&](BentPrograms& programs) { slot_of(programs, "0R1") = -1; }),
              Contains(HasSubstr("0R1: it has no slot of pool stash_iw to fill")));
  EXPECT_THAT(after([&](BentPrograms& programs) { slot_of(programs, "0I1") = -1; }),
              Contains(HasSubstr("0I1: it has no slot of pool stash_iw to read")));
}

} // namespace
