// SPDX-License-Identifier: Apache-2.0
// Aborts and mismatched calls: every member gets the reason, and soon.
#include <string>
#include <thread>
#include <vector>

#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

/// Posts one call of each kind, and a barrier; each must fail with `part`.
void expect_all_calls_fail(Rank& rank, Communicator& comm, std::string_view part) {
  const int n = comm.size();
  const TensorView view = rank.tensor(DType::f32, {4 * n}), small = rank.tensor(DType::f32, {4});
  const TensorView other = rank.tensor(DType::f32, {4 * n});
  Stream& stream = rank.stream();
  const Transfer one = send((comm.rank() + 1) % n, view);
  const auto expect = [&](const char* name, const auto& post) {
    Work work;
    const std::string thrown = error_of([&] { work = post(); });
    rank.expect(thrown.empty(), "{} after an abort throws \"{}\", must return an event that fails", name, thrown);
    if (thrown.empty()) rank.expect_error(text("{} after an abort", name), [&] { rank.wait(work); }, {part});
  };
  expect("all_reduce", [&] { return comm.all_reduce(view, view, Reduce::sum, stream); });
  expect("reduce_scatter", [&] { return comm.reduce_scatter(view, small, Reduce::sum, stream); });
  expect("all_gather", [&] { return comm.all_gather(small, view, stream); });
  expect("all_to_all", [&] { return comm.all_to_all(view, other, stream); });
  expect("broadcast", [&] { return comm.broadcast(view, 0, stream); });
  expect("exchange", [&] { return comm.exchange({&one, 1}, stream); });
  rank.expect_error("barrier() after an abort", [&] { comm.barrier(rank.deadline()); }, {part});
}

void fails_pending_and_later_calls(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 3, report, [](Rank& rank, Communicator& comm) {
    constexpr std::string_view kReason = "rank 2 aborted group tensor.0: it ran out of paper";
    const TensorView view = rank.tensor(DType::f32, {100});
    if (comm.rank() == 2) {
      for (const char* posted : {"posted 0", "posted 1"}) rank.store().get(posted, rank.long_deadline());
      comm.abort("it ran out of paper");
    } else {
      const Work pending = comm.all_reduce(view, view, Reduce::sum, rank.stream(), 31);
      rank.store().set(text("posted {}", comm.rank()), "");
      rank.expect_error("the all_reduce of action 31", [&] { rank.wait(pending); }, {"action 31", kReason});
    }
    expect_all_calls_fail(rank, comm, kReason);
    rank.barrier("end"); // a member that leaves would fail the others' calls, too
  });
}

void posts_do_not_throw(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    rank.barrier("joined");
    if (comm.rank() == 0) comm.abort("enough");
    if (comm.rank() == 0) expect_all_calls_fail(rank, comm, "enough");
    rank.barrier("end");
  });
}

void from_any_thread(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {8});
    if (comm.rank() == 1) {
      rank.store().get("rank 0 waits", rank.long_deadline());
      std::thread([&] { comm.abort("the watchdog"); }).join();
      rank.barrier("end");
      return;
    }
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    rank.store().set("rank 0 waits", "");
    rank.expect_error("the call of the other member", [&] { rank.wait(work); },
                      {"rank 1 aborted group tensor.0: the watchdog"});
    rank.barrier("end");
  });
}

/// The member that waits is the one that another of its threads aborts, as a watchdog does.
void unblocks_its_own_member(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {8});
    if (comm.rank() == 0) {
      const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
      rank.progress(10);
      std::thread watchdog([&] { comm.abort("it takes too long"); });
      rank.expect_error("the pending call", [&] { rank.wait(work); }, {"it takes too long"});
      watchdog.join();
    }
    rank.barrier("end");
  });
}

void keeps_the_first_reason(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    if (comm.rank() == 0) {
      comm.abort("the first reason");
      comm.abort("the second reason");
    }
    const TensorView view = rank.tensor(DType::f32, {8});
    rank.expect_error("a call", [&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); },
                      {"the first reason"});
    rank.barrier("end");
  });
}

void does_not_count(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {8}), half = rank.tensor(DType::f32, {4});
    const TensorView other = rank.tensor(DType::f32, {8});
    Stream& stream = rank.stream();
    rank.wait(comm.all_reduce(view, view, Reduce::sum, stream));
    const CommStats before = comm.stats();
    rank.barrier("completed");
    comm.abort("enough");
    comm.all_reduce(view, view, Reduce::sum, stream);
    comm.reduce_scatter(view, half, Reduce::sum, stream);
    comm.all_gather(half, view, stream);
    comm.all_to_all(view, other, stream);
    comm.broadcast(view, 0, stream);
    const Transfer one = send(1 - comm.rank(), view);
    comm.exchange({&one, 1}, stream);
    const CommStats& now = comm.stats();
    rank.expect(now.ops == before.ops && now.bytes_out == before.bytes_out && now.bytes_in == before.bytes_in,
                "six refused posts counted {} operations, {} bytes out and {} bytes in", now.ops - before.ops,
                now.bytes_out - before.bytes_out, now.bytes_in - before.bytes_in);
    rank.barrier("end");
  });
}

void fails_calls_out_of_turn(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    rank.barrier("joined");
    HostEvent never;
    const TensorView view = rank.tensor(DType::f32, {8}), moved = rank.tensor(DType::f32, {8});
    const Event closed = never.arm();
    rank.stream().wait(closed);
    const Work held = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    const Transfer one = comm.rank() == 0 ? send(1, moved) : receive(0, moved);
    const Work exchanged = comm.exchange({&one, 1}, rank.stream());
    rank.barrier("posted");
    comm.abort("enough");
    rank.expect_error("an all_reduce that waits for its stream", [&] { rank.wait(held); }, {"enough"});
    rank.expect_error("an exchange that waits for its stream", [&] { rank.wait(exchanged); }, {"enough"});
    rank.barrier("end");
    never.fire();
  });
}

/// The call that member 1 posts in place of member 0's all_reduce (sum) of 8 f32, or broadcast from member 0.
struct Mismatch {
  const char* what;
  DType dtype;
  std::int64_t elements;
  Collective::Kind kind;
  Reduce reduce;
};

void mismatch_of_collectives(const CommunicatorSubject& subject, Report& report) {
  using Kind = Collective::Kind;
  constexpr Mismatch kMismatches[] = {
      {"size", DType::f32, 9, Kind::all_reduce, Reduce::sum},
      {"type", DType::i32, 8, Kind::all_reduce, Reduce::sum},
      {"reduction", DType::f32, 8, Kind::all_reduce, Reduce::max},
      {"kind", DType::f32, 8, Kind::broadcast, Reduce::sum},
  };
  for (const Mismatch& mismatch : kMismatches) {
    in_group(subject, 2, report, [&mismatch](Rank& rank, Communicator& comm) {
      const bool odd = comm.rank() == 1;
      const TensorView view =
          rank.tensor(odd ? mismatch.dtype : DType::f32, {odd ? mismatch.elements : std::int64_t{8}});
      const Collective own{odd ? mismatch.kind : Kind::all_reduce, view.dtype(), odd ? mismatch.reduce : Reduce::sum, 0,
                           view.elements()};
      const Collective theirs{odd ? Kind::all_reduce : mismatch.kind, odd ? DType::f32 : mismatch.dtype,
                              odd ? Reduce::sum : mismatch.reduce, 0, odd ? 8 : mismatch.elements};
      rank.expect_error(text("a mismatch of {}", mismatch.what),
                        [&] { rank.wait(comm.post(own, view, view, rank.stream())); },
                        {to_text(own), to_text(theirs), "rank 0", "rank 1"});
      rank.barrier("end");
    });
  }
}

void mismatch_of_roots(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {8});
    rank.expect_error("broadcasts from different roots",
                      [&] { rank.wait(comm.broadcast(view, comm.rank(), rank.stream())); },
                      {"broadcast", "rank 0", "rank 1"});
    rank.barrier("end");
  });
}

/// The type and size that member 1 receives in place of 6 f32, and the member that posts first.
struct TransferMismatch {
  DType dtype;
  std::int64_t elements;
  int first;
};

/// The sender may get the error later, because a backend may complete a send before it is received.
void mismatch_of_transfers(const CommunicatorSubject& subject, Report& report) {
  static constexpr std::int64_t kSent = 6;
  std::vector<TransferMismatch> mismatches;
  for (const int first : {0, 1})
    for (const std::int64_t more : {-1, 0, 1})
      mismatches.push_back({more == 0 ? DType::i32 : DType::f32, kSent + more, first});
  for (const TransferMismatch& mismatch : mismatches) {
    in_group(subject, 2, report, [mismatch](Rank& rank, Communicator& comm) {
      const bool sends = comm.rank() == 0;
      const TensorView view = rank.tensor(sends ? DType::f32 : mismatch.dtype, {sends ? kSent : mismatch.elements});
      const Transfer one = sends ? send(1, view, 4) : receive(0, view, 4);
      const std::string received = text("{} {}", mismatch.elements, name_of(mismatch.dtype));
      if (comm.rank() != mismatch.first) rank.store().get("posted", rank.long_deadline());
      const Work work = comm.exchange({&one, 1}, rank.stream());
      if (comm.rank() == mismatch.first) {
        rank.progress(20); // gives time to a transport that sends or announces at once
        rank.store().set("posted", "");
      }
      rank.expect_error(text("a transfer of {} f32, received as {}", kSent, received),
                        [&] {
                          rank.wait(work);
                          comm.barrier(rank.deadline());
                        },
                        {text("{} f32", kSent), received, "rank 0", "rank 1"});
      rank.barrier("end");
    });
  }
}

constexpr CommCheck kAbortChecks[] = {
    {"Abort.FailsPendingAndLaterCallsOfAllMembers", "C30", nullptr, fails_pending_and_later_calls},
    {"Abort.LaterPostsDoNotThrow", "C31", nullptr, posts_do_not_throw},
    {"Abort.MayComeFromAnyThread", "C30", nullptr, from_any_thread},
    {"Abort.UnblocksItsOwnMember", "C30", nullptr, unblocks_its_own_member},
    {"Abort.KeepsTheFirstReason", "C30", nullptr, keeps_the_first_reason},
    {"Abort.RefusedPostsAreNotCounted", "C29", nullptr, does_not_count},
    {"Abort.FailsCallsOutOfTurn", "C32", unless_host_advances, fails_calls_out_of_turn},
    {"Mismatch.OfCollectivesIsReportedToAll", "C33", unless_host_advances, mismatch_of_collectives},
    {"Mismatch.OfRootsIsFound", "C33", unless_host_advances, mismatch_of_roots},
    {"Mismatch.OfTransfersIsReportedToBoth", "C33", unless_host_advances, mismatch_of_transfers},
};

} // namespace

std::span<const CommCheck> abort_checks() {
  return kAbortChecks;
}

} // namespace triax::conformance
