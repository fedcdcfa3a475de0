// SPDX-License-Identifier: Apache-2.0
// Posts: when they return, begin and complete; progress; allocations.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "call_kinds.hpp"
#include "collective_values.hpp"
#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

void not_inside_the_call(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {10});
    HostEvent blocker;
    if (!rank.on_host()) rank.stream().wait(blocker.arm()); // a GPU's stream runs without polling
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream(), 42);
    rank.expect(!work.event.fired(), "the event of an all_reduce fired inside the call");
    rank.expect(work.action == 42, "Work::action is {}, must be the given 42", work.action);
    if (!rank.on_host()) blocker.fire();
    rank.wait(work);
    rank.expect(work.event.fired(), "the event has not fired after its wait");
  });
}

/// Calls of each kind, with and without elements.
void no_kind_inside_the_call(Rank& rank, Communicator& comm) {
  for (const CallKind& call : kCallKinds)
    for (const std::int64_t part : {0, 2}) {
      const TensorView in = rank.tensor(DType::f32, {part * comm.size()});
      const TensorView out = rank.tensor(DType::f32, {part * comm.size()});
      HostEvent blocker;
      if (!rank.on_host()) rank.stream().wait(blocker.arm());
      const Work work = call.post(comm, in, out, rank.stream());
      rank.expect(!work.event.fired(), "the event of {} with parts of {} elements fired inside the call", call.name,
                  part);
      if (!rank.on_host()) blocker.fire();
      rank.wait(work);
    }
}

void inside_no_call(const CommunicatorSubject& subject, Report& report) {
  not_inside_the_call(subject, report);
  for_groups(subject, report, no_kind_inside_the_call);
}

/// No other member posts before this member's posts have returned.
void without_the_peer(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    connect(rank, comm);
    const TensorView view = rank.tensor(DType::f32, {300'000}), sent = rank.tensor(DType::f32, {300'000});
    const Transfer one = comm.rank() == 0 ? send(1, sent) : receive(0, sent);
    if (comm.rank() == 1) rank.store().get("rank 0 has posted", rank.long_deadline());
    const Work sum = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    const Work moved = comm.exchange({&one, 1}, rank.stream());
    if (comm.rank() == 0) rank.store().set("rank 0 has posted", "");
    rank.wait(sum);
    rank.wait(moved);
  });
}

void begins_after_its_stream(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    HostEvent blocker;
    const TensorView view = rank.tensor(DType::f32, {3});
    rank.stream().wait(blocker.arm());
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    rank.barrier("posted");
    rank.progress(10);
    rank.expect(!work.event.fired(), "a call completed before the event that its stream waits for");
    rank.barrier("looked");
    rank.put(view, std::vector<float>(3, 1)); // the call may not have read its buffer
    blocker.fire();
    rank.wait(work);
    rank.expect(rank.values<float>(view) == std::vector<float>(3, static_cast<float>(comm.size())),
                "an all_reduce of ones gives {}, must be {}: the buffer was read before the call's turn",
                rank.values<float>(view).front(), comm.size());
  });
}

/// The buffers of a held member are written when its stream's turn has come: a call that reads or writes one before
/// does not see the values, or loses its result.
void begins_in_its_turn(Rank& rank, Communicator& comm, const CallKind& call, bool is_held) {
  constexpr std::int64_t kPart = 3;
  const auto elements = static_cast<std::size_t>(kPart * comm.size());
  const TensorView in = rank.tensor(DType::f32, {kPart * comm.size()}), out = rank.tensor(DType::f32, in.shape());
  const auto write_buffers = [&] {
    rank.put(in, std::vector<float>(elements, static_cast<float>(1 + comm.rank())));
    rank.put(out, std::vector<float>(elements, static_cast<float>(kUntouched)));
  };
  HostEvent blocker;
  if (is_held) rank.stream().wait(blocker.arm());
  if (!is_held) write_buffers();
  const Work work = call.post(comm, in, out, rank.stream());
  rank.barrier("posted");
  rank.progress(10);
  rank.expect(!is_held || !work.event.fired(), "{} completed before the event that its stream waits for", call.name);
  rank.barrier("looked");
  if (is_held) write_buffers();
  if (is_held) blocker.fire();
  rank.wait(work);
  const std::vector<float> got = rank.values<float>(out);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const int expected = call.expected(comm, static_cast<int>(i) / static_cast<int>(kPart));
    if (got[i] == static_cast<float>(expected)) continue;
    return rank.expect(false,
                       "{} in a group of {}: element {} of `out` is {}, must be {}: a buffer was used before the "
                       "call's turn",
                       call.name, comm.size(), i, got[i], expected);
  }
}

/// The streams of all members are held, or that of the last member only.
void every_kind_begins_in_its_turn(const CommunicatorSubject& subject, Report& report) {
  begins_after_its_stream(subject, report);
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (const CallKind& call : kCallKinds)
      for (const bool all : {true, false}) begins_in_its_turn(rank, comm, call, all || comm.rank() + 1 == comm.size());
  });
}

void later_items_wait(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {50'000}), copy = rank.tensor(DType::f32, {50'000});
    for (int repeat = 1; repeat <= 5; ++repeat) {
      rank.device().fill(view, repeat, rank.stream());
      const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
      rank.device().copy(copy, view, rank.stream()); // on the host, it waits for the stream
      rank.expect(!rank.on_host() || work.event.fired(), "the stream went on before its all_reduce was complete");
      const std::vector<float> got = rank.values<float>(copy);
      const auto expected = static_cast<float>(repeat * comm.size());
      rank.expect(got == std::vector<float>(got.size(), expected),
                  "a copy behind an all_reduce on its stream begins with {}, must be {}", got.front(), expected);
    }
  });
}

/// More calls in flight than a backend may have entries, on two streams, mixed.
void many_in_flight(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const int n = comm.size();
    const std::unique_ptr<Stream> other = rank.device().make_stream("other");
    std::vector<TensorView> views;
    std::vector<Work> works;
    for (int i = 0; i < 100; ++i) {
      views.push_back(rank.tensor(DType::i32, {5}));
      rank.device().fill(views.back(), i + comm.rank(), rank.stream());
    }
    other->wait(rank.stream().record());
    for (int i = 0; i < 100; ++i) {
      const TensorView& view = views[static_cast<std::size_t>(i)];
      Stream& stream = i % 3 == 0 ? *other : rank.stream();
      works.push_back(i % 2 == 0 ? comm.all_reduce(view, view, Reduce::sum, stream)
                                 : comm.broadcast(view, i % n, stream));
    }
    for (const Work& work : works) rank.wait(work);
    for (int i = 0; i < 100; ++i) {
      const int value = i % 2 == 0 ? n * i + n * (n - 1) / 2 : i + i % n;
      const std::vector<std::int32_t> got = rank.values<std::int32_t>(views[static_cast<std::size_t>(i)]);
      rank.expect(got == std::vector<std::int32_t>(5, value), "call {} of 100 in flight gives {}, must be {}", i,
                  got.front(), value);
    }
    rank.stream().ready();
    other->ready();
  });
}

/// On member 0 the turn of the first call comes after that of the second.
void match_by_posts(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const std::unique_ptr<Stream> held = rank.device().make_stream("held");
    HostEvent blocker;
    const Event open = blocker.arm();
    if (comm.rank() == 0) held->wait(open);
    const TensorView a = number(rank, 1), b = number(rank, 10);
    const Work work_a = comm.all_reduce(a, a, Reduce::sum, *held);
    const Work work_b = comm.all_reduce(b, b, Reduce::sum, rank.stream());
    rank.progress(20);
    blocker.fire();
    rank.wait(work_a);
    rank.wait(work_b);
    held->ready();
    rank.expect(number_in(rank, a) == comm.size() && number_in(rank, b) == 10 * comm.size(),
                "the calls posted first and second give {} and {}, must be {} and {}", number_in(rank, a),
                number_in(rank, b), comm.size(), 10 * comm.size());
  });
}

/// Member 1 waits in the store, where it runs no progress loop.
void without_third_members(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 3, report, [](Rank& rank, Communicator& comm) {
    if (comm.rank() == 1) {
      rank.store().get("the others are done", rank.long_deadline());
      return;
    }
    const int peer = 2 - comm.rank();
    const TensorView out = rank.tensor(DType::f32, {300'000}), in = rank.tensor(DType::f32, {300'000});
    const Transfer set[] = {send(peer, out), receive(peer, in)};
    for (int repeat = 0; repeat < 3; ++repeat) rank.wait(comm.exchange(set, rank.stream()));
    if (rank.store().add("done", 1) == 2) rank.store().set("the others are done", "");
  });
}

/// The receiver computes, and runs one round of the progress loop now and then, as between two layers.
void while_the_peer_computes(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {1 << 20});
    const Transfer one = comm.rank() == 0 ? send(1, view) : receive(0, view);
    const Work work = comm.exchange({&one, 1}, rank.stream());
    if (comm.rank() == 1) {
      const Deadline until = rank.deadline();
      while (!work.event.fired() && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        rank.progress(1);
      }
      rank.expect(work.event.fired(), "a receive was not complete although both members ran the progress loop");
    }
    rank.wait(work);
  });
}

void pending_call(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    rank.expect(!comm.pending().name, "pending() reports {} before any post", comm.pending().name);
    HostEvent blocker;
    const TensorView view = number(rank, 1);
    rank.stream().wait(blocker.arm());
    const Work work = comm.broadcast(view, 0, rank.stream(), 7);
    const PendingCall call = comm.pending();
    rank.expect(call.name && std::string(call.name) == "broadcast" && call.action == 7,
                "pending() reports {} of action {}, must be broadcast of action 7", call.name ? call.name : "nothing",
                call.action);
    blocker.fire();
    rank.wait(work);
    rank.expect(!comm.pending().name, "pending() reports {} after it has completed", comm.pending().name);
  });
}

std::string unless_counting(const CommunicatorSubject& subject) {
  if (!subject.traits.stream_ordered && subject.allocations) return {};
  return subject.allocations ? "the work of stream-ordered backends is the library's"
                             : "this program does not count allocations";
}

/// One call of each kind.
struct StepBuffers {
  explicit StepBuffers(Rank& rank, int members)
      : large(rank.tensor(DType::f32, {1000 * members})),
        other(rank.tensor(DType::f32, {1000 * members})),
        part(rank.tensor(DType::f32, {1000})) {}

  void run(Rank& rank, Communicator& comm) const {
    Stream& stream = rank.stream();
    const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
    const Transfer set[] = {send(next, large), receive(before, other)};
    rank.wait(comm.exchange(set, stream));
    rank.wait(comm.all_reduce(large, large, Reduce::sum, stream));
    rank.wait(comm.reduce_scatter(large, part, Reduce::sum, stream));
    rank.wait(comm.all_gather(part, large, stream));
    rank.wait(comm.all_to_all(large, other, stream));
    rank.wait(comm.broadcast(large, 0, stream));
  }

  TensorView large, other, part;
};

void no_allocations(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [&subject](Rank& rank, Communicator& comm) {
    const StepBuffers buffers(rank, comm.size());
    for (int step = 0; step < 50; ++step) buffers.run(rank, comm);
    const std::size_t begin = subject.allocations();
    for (int step = 0; step < 20; ++step) buffers.run(rank, comm);
    const std::size_t count = subject.allocations() - begin;
    rank.expect(count == 0, "{} allocations in 20 steps of six calls, after 50 such steps", count);
  });
}

constexpr CommCheck kPostChecks[] = {
    {"Post.DoesNotCompleteInsideTheCall", "C6", nullptr, inside_no_call},
    {"Post.ReturnsWithoutThePeer", "C6", nullptr, without_the_peer},
    {"Post.BeginsAfterItsStream", "C7", nullptr, every_kind_begins_in_its_turn},
    {"Post.HoldsBackLaterItems", "C8", nullptr, later_items_wait},
    {"Post.MatchesByPostsAcrossStreams", "C9", nullptr, match_by_posts},
    {"InFlight.AHundredCallsOnTwoStreams", "C10", nullptr, many_in_flight},
    {"Progress.DoesNotNeedOtherMembers", "C11", nullptr, without_third_members},
    {"Progress.GoesOnWhileThePeerComputes", "C11", nullptr, while_the_peer_computes},
    {"Pending.ReportsTheLastCall", "C12", nullptr, pending_call},
    {"SteadyState.DoesNotAllocate", "C13", unless_counting, no_allocations},
};

} // namespace

std::span<const CommCheck> post_checks() {
  return kPostChecks;
}

} // namespace triax::conformance
