// What only UCX can go through: sends that cannot be taken back, limits of its tags, keys against the environment.
#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "support/communicator_suite.hpp"
#include "support/error_of.hpp"

namespace {

using namespace triax;
using ::testing::AllOf;
using ::testing::HasSubstr;
using triax::testing::Communication;
using triax::testing::error_of;
using triax::testing::Rank;
using triax::testing::run_members;
using triax::testing::run_ranks;
using triax::testing::under_test;

constexpr std::int64_t kLarge = 1 << 20; // elements: past the rendezvous threshold

/// A stream may go before its memory's end of life, and a peer must not take what is there by then.
TEST(Leaving, AStreamThatGoesWithALargeSendEndsTheGroup) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 0) {
      const std::unique_ptr<Memory> memory = rank.device().allocate(4 * kLarge, MemoryKind::device);
      const Transfer send{Direction::send, 1, 0, {memory->data(), DType::f32, {kLarge}}};
      std::unique_ptr<Stream> stream = rank.device().make_stream("short");
      const Work work = comm.exchange({&send, 1}, *stream);
      for (int i = 0; i < 10; ++i) rank.device().progress();
      EXPECT_FALSE(work.event.fired());
      stream.reset();
      EXPECT_THAT(error_of([&] { rank.wait(work); }), HasSubstr("rank 0 left group tensor.0 before its calls"));
      rank.store().set("gone", "");
    } else {
      const TensorView view = rank.tensor(DType::f32, {kLarge});
      const Transfer receive{Direction::receive, 0, 0, view};
      rank.store().get("gone", Rank::deadline());
      EXPECT_THAT(error_of([&] {
                    rank.wait(comm.exchange({&receive, 1}, rank.stream()));
                  }),
                  HasSubstr("rank 0 left group tensor.0 before its calls were complete"));
    }
  });
}

TEST(Leaving, AStreamThatGoesWithReceivesGivesTheirBuffersBack) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    if (rank.index() == 0) {
      std::unique_ptr<Memory> memory = rank.device().allocate(4 * kLarge, MemoryKind::device);
      const TensorView whole(memory->data(), DType::f32, {kLarge});
      const Transfer receives[] = {{Direction::receive, 1, 0, whole.slice(0, 0, 100)},
                                   {Direction::receive, 1, 1, whole.slice(0, 100, kLarge)}};
      std::unique_ptr<Stream> stream = rank.device().make_stream("short");
      comm.exchange(receives, *stream);
      rank.device().progress();
      stream.reset();
      memory.reset();
      rank.store().set("gone", "");
      rank.store().get("sent", Rank::deadline());
      for (int i = 0; i < 100; ++i) rank.device().progress(); // nothing is written any more
    } else {
      const TensorView view = rank.tensor(DType::f32, {100});
      const Transfer send{Direction::send, 0, 0, view};
      rank.store().get("gone", Rank::deadline());
      EXPECT_THAT(error_of([&] {
                    rank.wait(comm.exchange({&send, 1}, rank.stream()));
                    comm.barrier(Rank::deadline());
                  }),
                  HasSubstr("rank 0 left group tensor.0 before its calls were complete"));
      rank.store().set("sent", "");
    }
  });
}

/// The receiver does not come: after the abort the send gets its moment, then the rank's UCX rests.
TEST(Abort, OfALargeSendEndsAllGroupsOfTheBackend) {
  run_members(Layout::ptd(1, 2, 1), [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    Communicator& world = rank.join_world();
    if (rank.index() == 0) {
      {
        const std::unique_ptr<Memory> memory = rank.device().allocate(4 * kLarge, MemoryKind::device);
        const TensorView large(memory->data(), DType::f32, {kLarge});
        const Transfer sends[] = {{Direction::send, 1, 0, large}, {Direction::send, 1, 1, large.slice(0, 0, 1)}};
        const Work work = comm.exchange(sends, rank.stream(), 5);
        // Once the small one is there, UCX has the large one too, or gets it in the next turn.
        while (rank.store().add("came", 0) == 0) rank.device().progress();
        rank.device().progress();
        comm.abort("no more");
        EXPECT_THAT(error_of([&] { rank.wait(work); }), HasSubstr("action 5: rank 0 aborted group tensor.0: no more"));
      }
      const TensorView view = rank.tensor(DType::f32, {3});
      EXPECT_THAT(
          error_of([&] { rank.wait(world.all_reduce(view, view, Reduce::sum, rank.stream())); }),
          HasSubstr("no more; what rank 0 was sending cannot be taken back, so all its groups of comm-ucx end"));
      rank.store().set("done", "");
    } else {
      const Transfer receive{Direction::receive, 0, 1, rank.tensor(DType::f32, {1})};
      rank.wait(comm.exchange({&receive, 1}, rank.stream()));
      rank.store().add("came", 1);
      rank.store().get("done", Rank::deadline());
    }
  });
}

TEST(Limits, OfChannelsAreTold) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {3});
    const Transfer send{Direction::send, 1 - rank.index(), 16'384, view};
    EXPECT_THAT(error_of([&] {
                  comm.exchange({&send, 1}, rank.stream());
                }),
                HasSubstr("channel 16384 is outside of 0 to 16383"));
  });
}

/// A variable of the environment for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

std::string refusal(const char* key, const OptionValue& value) {
  Communication communication = under_test();
  communication.options.set(key, value);
  control::LocalStore store;
  const Layout layout = Layout::ptd(1, 1, 1);
  // Told by supports(), and by start() to whoever does not ask.
  return error_of([&] {
    Rank rank(0, layout, store, communication);
    rank.backend();
  });
}

TEST(Environment, ThatContradictsAKeyIsRefused) {
  {
    const Variable variable("UCX_TLS", "posix,self");
    EXPECT_THAT(refusal("transports", std::string("tcp,self")),
                AllOf(HasSubstr("comm-ucx: transports = tcp,self, but UCX_TLS = posix,self in the environment"),
                      HasSubstr("remove the key, or unset UCX_TLS")));
    EXPECT_EQ(refusal("transports", std::string("posix,self")), "no error");
    EXPECT_EQ(refusal("transports", std::string()), "no error");
  }
  const Variable variable("UCX_RNDV_THRESH", "64k");
  EXPECT_THAT(refusal("rndv_threshold", std::int64_t{4096}),
              HasSubstr("rndv_threshold = 4096, but UCX_RNDV_THRESH = 64k in the environment"));
  EXPECT_EQ(refusal("rndv_threshold", std::int64_t{65'536}), "no error");
  EXPECT_EQ(refusal("rndv_threshold", std::int64_t{256 << 10}), "no error") << "the default gives way";
}

TEST(Environment, ADeviceThatIsNotThereIsToldAndNotLeftOut) {
  EXPECT_THAT(refusal("devices", std::string("lo,eth77")),
              AllOf(HasSubstr("this machine has no network device \"eth77\" that UCX can use"), HasSubstr("lo")));
  for (const char* fine : {"lo", "all", "^lo", ""})
    EXPECT_EQ(refusal("devices", std::string(fine)), "no error") << fine;
  const Variable variable("UCX_NET_DEVICES", "eth77");
  EXPECT_THAT(refusal("devices", std::string()), HasSubstr("no network device \"eth77\""));
}

TEST(Environment, AKeyThatUcxDoesNotKnowIsToldInWords) {
  EXPECT_THAT(refusal("transports", std::string("carrier-pigeon")), HasSubstr("UCX: no "));
}

} // namespace
