// SPDX-License-Identifier: Apache-2.0
// Members that leave or are killed, and barriers.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "communicator_check_tables.hpp"
#include "triax/conformance/stop_once.hpp"

namespace triax::conformance {

namespace {

void leaving_is_reported(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    if (comm.rank() == 1) return; // the communicator ends with the rank
    const TensorView view = rank.tensor(DType::f32, {4});
    rank.expect_error("a call that waits for a member which has left",
                      [&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); },
                      {"rank 1 left group tensor.0 while rank 0 waits for it"});
  });
}

void leaving_with_calls_is_reported(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {4});
    if (comm.rank() == 1) {
      comm.all_reduce(view, view, Reduce::sum, rank.stream()); // never waited for
      rank.store().get("both have joined", rank.long_deadline());
      return;
    }
    rank.store().set("both have joined", "");
    rank.expect_error("a call of a member that has left",
                      [&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); },
                      {"rank 1 left group tensor.0 before its calls were complete"});
  });
}

/// Joins without the help of Rank, which keeps its communicators to the end.
std::unique_ptr<Communicator> join_alone(Rank& rank) {
  std::unique_ptr<Communicator> comm =
      rank.backend().join(rank.layout().group(rank.index(), kTensorAxis), rank.store(), rank.deadline());
  rank.barrier("joined");
  return comm;
}

void streams_may_live_longer(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, 2, report, [](Rank& rank) {
    std::unique_ptr<Communicator> comm = join_alone(rank);
    HostEvent blocker;
    const std::unique_ptr<Stream> stream = rank.device().make_stream("longer");
    std::unique_ptr<Stream> dropped = rank.device().make_stream("dropped");
    const TensorView view = rank.tensor(DType::f32, {4});
    const Event open = blocker.arm();
    stream->wait(open);
    dropped->wait(open);
    comm->all_reduce(view, view, Reduce::sum, *stream);
    comm->all_reduce(view, view, Reduce::sum, *dropped);
    comm.reset();
    dropped.reset();
    blocker.fire();
    stream->ready(); // reaches a call whose communicator is destroyed
    rank.barrier("end");
  });
}

void communicators_may_live_longer(const CommunicatorSubject& subject, Report& report) {
  run_ranks(subject.setup, 2, report, [](Rank& rank) {
    const std::unique_ptr<Communicator> comm = join_alone(rank);
    HostEvent never;
    std::unique_ptr<Stream> stream = rank.device().make_stream("short");
    const TensorView view = rank.tensor(DType::f32, {4});
    stream->wait(never.arm());
    comm->all_reduce(view, view, Reduce::sum, *stream);
    stream.reset(); // drops the call, and with it the group
    rank.progress(10);
    rank.expect_error("a barrier of a group with a dropped call", [&] { comm->barrier(rank.deadline()); }, {"group"});
    rank.barrier("end");
    never.fire();
  });
}

/// Member 1 is killed in the middle of a call. Another member learns of it from the job, as the engine's ranks do, and
/// aborts.
void peer_is_killed(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 3, report, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {300'000});
    rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    rank.barrier("all connections exist"); // and no member is still in that call when another one aborts
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    if (comm.rank() == 1) {
      rank.store().set("killed", "");
      rank.kill_process();
    }
    rank.store().get("killed", rank.long_deadline());
    rank.progress(100);
    comm.abort("rank 1 was lost");
    // The call may have completed before the peer was killed; the next one cannot.
    static_cast<void>(error_of([&] { rank.wait(work); }));
    rank.expect_error("a call without the killed member",
                      [&] { rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream())); }, {"rank 1"});
  });
}

void barrier_waits_for_all(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    for (int round = 1; round <= 20; ++round) {
      rank.store().add("come", 1);
      comm.barrier(rank.deadline());
      const std::int64_t come = rank.store().add("come", 0);
      rank.expect(come >= round * comm.size(), "barrier {} returned after {} of {} members had called it", round,
                  come - (round - 1) * comm.size(), comm.size());
      comm.barrier(rank.deadline());
    }
  });
}

void barrier_names_missing_ranks(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    if (comm.rank() == 1)
      rank.expect_error("a barrier without rank 0", [&] { comm.barrier(deadline_in(0.02)); }, {"tensor.0", "rank 0"});
    rank.barrier("end");
  });
}

/// The rank is aborted while it waits, as a watchdog does it.
void barrier_ends_with_its_rank(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    constexpr std::chrono::milliseconds kMeanwhile{20};
    if (comm.rank() == 1) {
      std::thread watchdog([&rank, kMeanwhile] {
        std::this_thread::sleep_for(kMeanwhile);
        rank.device().abort_flag().raise("the watchdog ended the rank");
      });
      rank.expect_error("a barrier of an aborted rank", [&] { comm.barrier(rank.deadline()); },
                        {"the watchdog ended the rank"});
      watchdog.join();
    }
    rank.barrier("end");
  });
}

void barrier_does_not_count_stops(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    StopOnce source([&rank] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      rank.store().set("continued", "");
    });
    if (comm.rank() == 1) {
      rank.device().add_source(source);
      const std::string error = error_of([&] { comm.barrier(deadline_in(1.2)); });
      rank.device().remove_source(source);
      rank.expect(error.empty(), "a barrier of 1.2 s whose process was stopped for 1.5 s ended with \"{}\"", error);
    } else {
      rank.store().get("continued", rank.long_deadline());
      comm.barrier(rank.deadline());
    }
  });
}

constexpr CommCheck kLossChecks[] = {
    {"Leaving.IsReportedToMembersThatWait", "C34", nullptr, leaving_is_reported},
    {"Leaving.WithPendingCallsIsReported", "C34", unless_host_advances, leaving_with_calls_is_reported},
    {"Leaving.StreamsMayLiveLonger", "C34", unless_host_advances, streams_may_live_longer},
    {"Leaving.CommunicatorsMayLiveLongerThanStreams", "C34", unless_host_advances, communicators_may_live_longer},
    {"Killed.PeerDoesNotKeepTheOthers", "C35", unless_processes, peer_is_killed},
    {"Barrier.ReturnsAfterAllMembersCame", "C36", nullptr, barrier_waits_for_all},
    {"Barrier.NamesTheMissingRanks", "C36", nullptr, barrier_names_missing_ranks},
    {"Barrier.EndsWhenTheRankIsAborted", "C36", nullptr, barrier_ends_with_its_rank},
    {"Barrier.DoesNotCountStops", "C36", nullptr, barrier_does_not_count_stops},
};

} // namespace

std::span<const CommCheck> loss_checks() {
  return kLossChecks;
}

} // namespace triax::conformance
