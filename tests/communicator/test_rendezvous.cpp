// SPDX-License-Identifier: Apache-2.0
// Rendezvous of a group: entries reach all members, differences and missing members are named, and members stop waiting
// when one of them gives up.
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include "control/job_local_store.hpp"
#include "support/error_of.hpp"
#include "triax/conformance/stop_once.hpp"
#include "triax/rendezvous.hpp"

namespace triax {
namespace {

using ::testing::HasSubstr;

struct Member {
  Group group;
  control::LocalStore& store;
  std::unique_ptr<Device> device = make_host_device();
  Rendezvous rendezvous;

  Member(control::LocalStore& shared, int index, int size, double seconds, int version)
      : group{"tensor", "tensor.0", {}, index},
        store(shared),
        rendezvous("comm-test", version, {ranks(group, size), shared, *device, deadline_in(seconds)}) {}

  static const Group& ranks(Group& group, int size) {
    for (int rank = 0; rank < size; ++rank) group.ranks.push_back(2 * rank);
    return group;
  }
};

struct Settings {
  double seconds = 60;
  std::array<int, 2> versions{1, 1};
  std::array<int, 2> sizes{2, 2}; // of the group, as each member sees it
};

/// Runs `body` for two members on threads; returns what each of them threw.
std::array<std::string, 2> run_two(const std::function<void(Member&)>& body, const Settings& given = {}) {
  control::LocalStore store;
  std::array<std::string, 2> errors;
  const auto run = [&](std::size_t index) {
    Member member(store, static_cast<int>(index), given.sizes[index], given.seconds, given.versions[index]);
    errors[index] = test::error_of([&] { member.rendezvous.run([&] { body(member); }); });
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  return errors;
}

TEST(Rendezvous, AllMembersGetAllEntries) {
  const std::string binary("a\n\0b\n", 5);
  const auto errors = run_two([&](Member& member) {
    member.rendezvous.publish({member.rendezvous.rank_text(member.group.group_rank), binary});
    const auto entries = member.rendezvous.collect();
    EXPECT_EQ(entries, (std::vector<Rendezvous::Entry>{{"rank 0", binary}, {"rank 2", binary}}));
  });
  EXPECT_THAT(errors, ::testing::Each("no error"));
}

TEST(Rendezvous, AValueThatDiffersIsNamedOnEveryMember) {
  const auto unequal = run_two([&](Member& member) {
    member.rendezvous.publish({member.group.group_rank == 0 ? "1.0" : "1.1"});
    member.rendezvous.require_equal(member.rendezvous.collect(), 0, "libtest", "install the same libtest");
  });
  EXPECT_THAT(unequal[0] + unequal[1], HasSubstr("\n  install the same libtest"));
  EXPECT_THAT(unequal[0],
              ::testing::AnyOf(HasSubstr("rank 2 has libtest 1.1, rank 0 has 1.0"), HasSubstr("other ranks failed")));
}

TEST(Rendezvous, OtherProtocolsAndGroupsAreRefused) {
  const auto exchange_versions = [](Member& member) {
    member.rendezvous.publish({});
    member.rendezvous.collect();
  };
  const auto versions = run_two(exchange_versions, {.versions = {1, 2}});
  EXPECT_THAT(versions[0] + versions[1], HasSubstr("has protocol \"comm-test 2\""));
  const auto groups = run_two(exchange_versions, {.seconds = 0.5, .sizes = {2, 3}});
  EXPECT_THAT(groups[0] + groups[1], HasSubstr("the group has ranks 0, 2, 4 on rank 2, but 0, 2 on rank 0"));
}

TEST(Rendezvous, TimesOutAndNamesTheMissingRanks) {
  control::LocalStore store;
  Member alone(store, 1, 3, 0.1, 1);
  const std::string error = test::error_of([&] {
    alone.rendezvous.run([&] {
      alone.rendezvous.publish({});
      alone.rendezvous.collect();
    });
  });
  EXPECT_THAT(error, HasSubstr("group tensor.0: timed out waiting for rank 0, 4"));
  Member late(store, 0, 3, 60, 1);
  EXPECT_THAT(test::error_of([&] { late.rendezvous.run([] {}); }),
              HasSubstr("the other ranks failed: rank 2 could not join: group tensor.0: timed out"));
}

TEST(Rendezvous, AValueThatIsNotSetIsNamed) {
  control::LocalStore store;
  Member member(store, 0, 1, 0.1, 1);
  EXPECT_THAT(test::error_of([&] { member.rendezvous.get("id"); }),
              HasSubstr("group tensor.0: timed out waiting for id"));
  member.rendezvous.set("id", "7");
  EXPECT_EQ(member.rendezvous.get("id"), "7");
}

TEST(Rendezvous, MembersThatHaveNotReachedAPointAreKnown) {
  control::LocalStore store;
  Member first(store, 0, 3, 60, 1), second(store, 1, 3, 60, 1);
  EXPECT_EQ(first.rendezvous.missing("begun"), "0, 2, 4");
  second.rendezvous.reach("begun");
  EXPECT_EQ(first.rendezvous.missing("begun"), "0, 4");
}

TEST(Rendezvous, TheRanksAbortFlagEndsAWait) {
  control::LocalStore store;
  Member member(store, 0, 2, 60, 1);
  member.device->abort_flag().raise("stopped by the user");
  EXPECT_THAT(test::error_of([&] { member.rendezvous.collect(); }), HasSubstr("stopped by the user"));
}

TEST(Rendezvous, TheDeadlineDoesNotCountTheTimeInWhichTheRankIsStopped) {
  control::LocalStore store;
  Member first(store, 0, 2, 1.2, 1), second(store, 1, 2, 60, 1);
  conformance::StopOnce source([&second] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    second.rendezvous.publish({"second"});
  });
  first.device->add_source(source);
  first.rendezvous.publish({"first"});
  EXPECT_EQ(first.rendezvous.collect().back().front(), "second");
}

TEST(Rendezvous, AGroupCanJoinAgain) {
  control::LocalStore store;
  for (int times = 1; times <= 2; ++times) {
    Member member(store, 0, 1, 60, 1);
    EXPECT_EQ(member.rendezvous.key(), "comm-test/tensor.0/" + std::to_string(times));
    member.rendezvous.publish({std::to_string(times)});
    EXPECT_EQ(member.rendezvous.collect().front().front(), std::to_string(times));
  }
}

} // namespace
} // namespace triax
