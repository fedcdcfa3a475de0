// SPDX-License-Identifier: Apache-2.0
// Failures that only UCX has: sends that cannot be cancelled, limits of tags, and options against the environment.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "support/communicator_suite.hpp"
#include "support/error_of.hpp"

namespace {

using namespace triax;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using triax::test::Communication;
using triax::test::error_of;
using triax::test::Rank;
using triax::test::run_members;
using triax::test::under_test;

constexpr std::int64_t kLarge = 1 << 20; // elements: above the rendezvous threshold

/// A stream may be destroyed before the memory of its calls; a peer must not read that memory afterwards.
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
      for (int i = 0; i < 100; ++i) rank.device().progress(); // UCX no longer writes to them
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

/// The receive is never posted: after the abort the send gets a short time, then the rank's UCX is retired.
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
        // Once the small message has arrived, UCX has the large one too, or gets it in the next poll.
        while (rank.store().add("came", 0) == 0) rank.device().progress();
        rank.device().progress();
        comm.abort("no more");
        EXPECT_THAT(error_of([&] { rank.wait(work); }), HasSubstr("action 5: rank 0 aborted group tensor.0: no more"));
      }
      const TensorView view = rank.tensor(DType::f32, {3});
      EXPECT_THAT(error_of([&] { rank.wait(world.all_reduce(view, view, Reduce::sum, rank.stream())); }),
                  HasSubstr("no more; sends of rank 0 cannot be cancelled, so all its groups of comm-ucx are aborted"));
      rank.store().set("done", "");
    } else {
      const Transfer receive{Direction::receive, 0, 1, rank.tensor(DType::f32, {1})};
      rank.wait(comm.exchange({&receive, 1}, rank.stream()));
      rank.store().add("came", 1);
      rank.store().get("done", Rank::deadline());
    }
  });
}

TEST(Limits, OfChannelsAreReported) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {3});
    const Transfer send{Direction::send, 1 - rank.index(), 16'384, view};
    EXPECT_THAT(error_of([&] {
                  comm.exchange({&send, 1}, rank.stream());
                }),
                HasSubstr("channel must be in [0, 16383], got 16384"));
  });
}

/// Sets an environment variable for the lifetime of this object.
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
  // supports() reports it, and start() if supports() was not called.
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

TEST(Environment, ADeviceThatIsNotThereIsReportedAndNotLeftOut) {
  EXPECT_THAT(refusal("devices", std::string("lo,eth77")),
              AllOf(HasSubstr("this machine has no network device \"eth77\" that UCX can use"), HasSubstr("lo")));
  for (const char* fine : {"lo", "all", "^lo", ""})
    EXPECT_EQ(refusal("devices", std::string(fine)), "no error") << fine;
  const Variable variable("UCX_NET_DEVICES", "eth77");
  EXPECT_THAT(refusal("devices", std::string()), HasSubstr("no network device \"eth77\""));
}

/// The answer of the backend during preflight.
Refusals checked(const char* key, const OptionValue& value) {
  const std::filesystem::path name = under_test().plugin;
  const plugin::Library& library =
      plugin::load(name.is_absolute() ? name : test::plugin_file(name), CommBackend::kKind);
  Options options;
  for (const triax_option& option : library.options)
    options.set(option.name, plugin::parse_option(option, option.default_value));
  options.set(key, value);
  const Layout layout = Layout::ptd(1, 1, 1);
  const auto backend = plugin::create<CommBackend>(library, {options, null_log(), layout, 0, 1});
  return backend->supports({DeviceKind::host, {"tensor"}, true});
}

/// Expects each of `parts` in the reason, this machine's transports in the hint, and nothing about shared memory.
void expect_refused(const Refusals& answer, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_THAT(answer.front().message, HasSubstr(part));
  EXPECT_THAT(answer.front().hint, AllOf(HasSubstr("this machine has the transports "), HasSubstr("tcp")));
  EXPECT_THAT(answer.front().message + answer.front().hint, Not(HasSubstr("/dev/shm")));
}

TEST(Environment, TransportsThatAreNotAvailableAreRefusedWhenTheRunIsChecked) {
  expect_refused(checked("transports", std::string("carrier-pigeon")),
                 {"comm-ucx: transports = \"carrier-pigeon\": ", "carrier-pigeon"});
  expect_refused(checked("transports", std::string("tcp,carrier-pigeon")),
                 {"transports = \"tcp,carrier-pigeon\": ", "transport 'carrier-pigeon' is not available"});
  EXPECT_TRUE(checked("transports", std::string("tcp,self")).empty());
  EXPECT_THAT(refusal("transports", std::string("carrier-pigeon")), HasSubstr("transports = \"carrier-pigeon\": "));
  const Variable variable("UCX_TLS", "nothing");
  expect_refused(checked("transports", std::string()), {"comm-ucx: UCX_TLS = \"nothing\" in the environment: "});
}

TEST(Environment, AnEmptyListOfTransportsIsRefused) {
  const Variable variable("UCX_TLS", "");
  expect_refused(checked("transports", std::string()), {"UCX_TLS = \"\" in the environment: "});
}

TEST(Environment, AFolderForSharedMemoryThatCannotBeWrittenIsNamed) {
  const Variable variable("UCX_POSIX_DIR", "/proc");
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler ignore_leaks; // UCX 1.13 leaks the interface that it cannot open
#endif
  EXPECT_THAT(refusal("transports", std::string("posix,self")),
              AllOf(HasSubstr("; UCX_POSIX_DIR = \"/proc\" in the environment; /proc has 0 of 0 MiB free"),
                    HasSubstr("\n  unset UCX_POSIX_DIR, name a folder"), Not(HasSubstr("/dev/shm"))));
}

TEST(Environment, AVariableThatUcxCannotParseIsRefusedWhenTheRunIsChecked) {
  {
    const Variable variable("UCX_RNDV_THRESH", "garbage");
    const Refusals answer = checked("transports", std::string());
    EXPECT_THAT(answer.front().message,
                HasSubstr("comm-ucx: UCX_RNDV_THRESH = \"garbage\" in the environment is invalid; "
                          "expected: memory units"));
    EXPECT_EQ(answer.front().hint, "correct UCX_RNDV_THRESH, or remove it");
  }
  const Variable variable("UCX_TCP_TX_SEG_SIZE", "garbage"); // read where a worker is created
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler ignore_leaks; // UCX 1.13 leaks a network interface that it cannot open
#endif
  EXPECT_THAT(refusal("transports", std::string()),
              HasSubstr("UCX_TCP_TX_SEG_SIZE = \"garbage\" in the environment is invalid; expected: memory units"));
}

} // namespace
