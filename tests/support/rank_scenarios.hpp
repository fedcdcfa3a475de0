// SPDX-License-Identifier: Apache-2.0
// What one rank that is a process does, for tests of backends whose ranks are processes. The rank writes errors to
// stderr.
//
// Threads: the program's main thread. Blocking: until the scenario ends.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "support/communicator_suite.hpp"
#include "support/file_store.hpp"

namespace triax::test::scenarios {

inline bool tells_death = false; // the library reports the death of a peer

constexpr std::int64_t kLarge = 1 << 20; // elements: 4 MiB, above the rendezvous threshold

/// An element of a member's vector; sums of these values are exact.
inline float given(int member, std::int64_t element) {
  return static_cast<float>((element * 31 + member * 7) % 1024);
}

inline TensorView given_to(Rank& rank, int member, std::int64_t elements) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = given(member, static_cast<std::int64_t>(i));
  return rank.tensor(DType::f32, {elements}, values);
}

inline void check(bool right, std::string_view what) {
  if (!right) throw Error(text("wrong: {}", what));
}

/// Checks that these are a member's values.
inline void check_given(Rank& rank, const TensorView& view, int member) {
  const std::vector<float> values = rank.values<float>(view);
  for (std::size_t i = 0; i < values.size(); ++i)
    check(values[i] == given(member, static_cast<std::int64_t>(i)), text("element {} of rank {}", i, member));
}

inline void reduce(Rank& rank, Communicator& comm, std::int64_t elements) {
  const TensorView in = given_to(rank, rank.index(), elements), out = rank.tensor(DType::f32, {elements});
  rank.wait(comm.all_reduce(in, out, Reduce::sum, rank.stream()));
  const std::vector<float> sums = rank.values<float>(out);
  for (std::int64_t i = 0; i < elements; ++i) {
    float sum = 0;
    for (int member = 0; member < comm.size(); ++member) sum += given(member, i);
    check(sums[static_cast<std::size_t>(i)] == sum, text("all_reduce of {}, element {}", elements, i));
  }
}

/// Each rank sends to the next, and receives from the previous.
inline void ring(Rank& rank, Communicator& comm, std::int64_t elements) {
  const int n = comm.size(), next = (rank.index() + 1) % n, before = (rank.index() + n - 1) % n;
  const TensorView out = given_to(rank, rank.index(), elements), in = rank.tensor(DType::f32, {elements});
  const Transfer set[] = {{Direction::send, next, 3, out}, {Direction::receive, before, 3, in}};
  rank.wait(comm.exchange(set, rank.stream()));
  check_given(rank, in, before);
}

inline void everything(Rank& rank) {
  Communicator& comm = rank.join_world();
  for (const std::int64_t elements :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, std::int64_t{50'001}, kLarge}) {
    reduce(rank, comm, elements);
    ring(rank, comm, elements);
  }
  comm.barrier(Rank::deadline());
}

/// Sends and leaves; the receiver posts its receive later.
inline void leaves_after_sending(Rank& rank) {
  Communicator& comm = rank.join_world();
  const TensorView view = rank.index() == 0 ? given_to(rank, 0, 100'000) : rank.tensor(DType::f32, {100'000});
  if (rank.index() == 0) {
    const Transfer last{Direction::send, 1, 0, view};
    const Work work = comm.exchange({&last, 1}, rank.stream());
    rank.store().set("sending", "");
    rank.wait(work);
    return;
  }
  rank.store().get("sending", Rank::deadline());
  std::this_thread::sleep_for(std::chrono::milliseconds(100)); // the sender may have left, or waits in its destructor
  const Transfer last{Direction::receive, 0, 0, view};
  rank.wait(comm.exchange({&last, 1}, rank.stream()));
  check_given(rank, view, 0);
}

/// Rank 1 is killed in the middle of a collective. The others fail when the library reports it, if it
/// does, else at their deadline.
inline void killed(Rank& rank, const std::function<Work(Communicator&)>& post) {
  Communicator& comm = rank.join_world();
  comm.barrier(Rank::deadline());
  for (int step = 0; step < 5; ++step) rank.device().wait(post(comm), Rank::deadline());
  if (rank.index() == 1) {
    post(comm);
    rank.device().progress();
    ::kill(::getpid(), SIGKILL);
  }
  try {
    for (int step = 0; step < 1000; ++step)
      rank.device().wait(post(comm), tells_death ? Rank::deadline() : deadline_in(1));
  } catch (const Error& error) {
    comm.abort(error.what());
    throw;
  }
}

inline void killed_reducing(Rank& rank) {
  const TensorView view = rank.tensor(DType::f32, {kLarge});
  killed(rank, [&](Communicator& comm) { return comm.all_reduce(view, view, Reduce::max, rank.stream()); });
}

inline void killed_exchanging(Rank& rank) {
  const TensorView out = rank.tensor(DType::f32, {kLarge}), in = rank.tensor(DType::f32, {kLarge});
  killed(rank, [&, at = std::vector<Transfer>()](Communicator& comm) mutable {
    const int n = comm.size();
    at = {{Direction::send, (rank.index() + 1) % n, 0, out}, {Direction::receive, (rank.index() + n - 1) % n, 0, in}};
    return comm.exchange(at, rank.stream());
  });
}

inline const std::map<std::string, std::function<void(Rank&)>> kAll = {
    {"everything", everything},
    {"leaves-after-sending", leaves_after_sending},
    {"killed-reducing", killed_reducing},
    {"killed-exchanging", killed_exchanging},
};

/// Exit status of the program: 0, or 3 after an Error.
inline int run(const std::string& scenario, int index, int ranks, const std::string& folder,
               const Communication& communication) {
  FileStore store(folder);
  const Layout layout = Layout::ptd(1, ranks, 1);
  try {
    Rank rank(index, layout, store, communication);
    kAll.at(scenario)(rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}

} // namespace triax::test::scenarios
