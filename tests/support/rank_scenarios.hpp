// SPDX-License-Identifier: Apache-2.0
// What one rank that is a process does, for tests of backends whose ranks are processes. The rank writes errors to
// stderr.
//
// Threads: the program's main thread. Blocking: until the scenario ends.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "support/communicator_suite.hpp"
#include "triax/conformance/folder_store.hpp"
#include "triax/element_type.hpp"

namespace triax::test::scenarios {

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

/// Throws Error with the text of a pattern and its values, which is only built then: there are millions of elements.
template <class... Values>
void check(bool right, std::string_view pattern, const Values&... values) {
  if (!right) throw Error(text("wrong: {}", text(pattern, values...)));
}

/// Checks that these are a member's values.
inline void check_given(Rank& rank, const TensorView& view, int member) {
  const std::vector<float> values = rank.values<float>(view);
  for (std::size_t i = 0; i < values.size(); ++i)
    check(values[i] == given(member, static_cast<std::int64_t>(i)), "element {} of rank {}", i, member);
}

inline void reduce(Rank& rank, Communicator& comm, std::int64_t elements) {
  const TensorView in = given_to(rank, rank.index(), elements), out = rank.tensor(DType::f32, {elements});
  rank.wait(comm.all_reduce(in, out, Reduce::sum, rank.stream()));
  const std::vector<float> sums = rank.values<float>(out);
  for (std::int64_t i = 0; i < elements; ++i) {
    float sum = 0;
    for (int member = 0; member < comm.size(); ++member) sum += given(member, i);
    check(sums[static_cast<std::size_t>(i)] == sum, "all_reduce of {}, element {}", elements, i);
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

/// The other collectives, and both reductions, in a type. Values are small enough for sums that are exact in bf16.
template <class T>
void collectives(Rank& rank, Communicator& comm, std::int64_t elements) {
  const int n = comm.size(), own = rank.index();
  const DType dtype = dtype_of<T>();
  const auto given = [](int member, std::int64_t element) {
    return static_cast<float>((element * 5 + member * 3) % 16);
  };
  const auto make = [&](std::int64_t count, bool is_given) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; is_given && i < values.size(); ++i) values[i] = T(given(own, static_cast<std::int64_t>(i)));
    return rank.tensor(dtype, {count}, values);
  };
  const auto check_all = [&](const TensorView& view, const char* what, const auto& expected) {
    const std::vector<T> values = rank.values<T>(view);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (static_cast<float>(values[i]) != expected(static_cast<std::int64_t>(i)))
        throw Error(text("wrong: {} of {} {}, element {}", what, elements, name_of(dtype), i));
  };
  const auto reduced = [&](Reduce reduce, std::int64_t element) {
    float out = given(0, element);
    for (int member = 1; member < n; ++member) {
      const float value = given(member, element);
      out = reduce == Reduce::sum ? out + value : std::max(out, value);
    }
    return out;
  };
  const TensorView one = make(elements, true), all = make(n * elements, true);
  const TensorView one_out = make(elements, false), all_out = make(n * elements, false);
  for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
    rank.wait(comm.all_reduce(one, one_out, reduce, rank.stream()));
    check_all(one_out, "all_reduce", [&](std::int64_t i) { return reduced(reduce, i); });
    rank.wait(comm.reduce_scatter(all, one_out, reduce, rank.stream()));
    check_all(one_out, "reduce_scatter", [&](std::int64_t i) { return reduced(reduce, own * elements + i); });
  }
  rank.wait(comm.all_gather(one, all_out, rank.stream()));
  check_all(all_out, "all_gather", [&](std::int64_t i) { return given(static_cast<int>(i / elements), i % elements); });
  rank.wait(comm.all_to_all(all, all_out, rank.stream()));
  check_all(all_out, "all_to_all",
            [&](std::int64_t i) { return given(static_cast<int>(i / elements), own * elements + i % elements); });
  rank.wait(comm.broadcast(one, n - 1, rank.stream()));
  check_all(one, "broadcast", [&](std::int64_t i) { return given(n - 1, i); });
}

inline void everything(Rank& rank) {
  Communicator& comm = rank.join_world();
  for (const std::int64_t elements :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, std::int64_t{50'001}, kLarge}) {
    reduce(rank, comm, elements);
    ring(rank, comm, elements);
  }
  for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{50'001}}) {
    collectives<float>(rank, comm, elements);
    collectives<double>(rank, comm, elements);
    collectives<Bf16>(rank, comm, elements);
  }
  comm.barrier(Rank::deadline());
}

/// Rank 0 sends another type than rank 1 receives: both get an error.
inline void other_type(Rank& rank) {
  Communicator& comm = rank.join_world();
  const bool sends = rank.index() == 0;
  const TensorView view = rank.tensor(sends ? DType::f32 : DType::i32, {6});
  const Transfer one{sends ? Direction::send : Direction::receive, 1 - rank.index(), 4, view};
  rank.wait(comm.exchange({&one, 1}, rank.stream()));
  comm.barrier(Rank::deadline()); // the send may have completed
}

/// Rank 0 sends a message whose bytes an int does not count, nor an even number. Needs 5 GiB of memory.
inline void above_2_gib(Rank& rank) {
  Communicator& comm = rank.join_world();
  constexpr std::int64_t kBytes = (std::int64_t{1} << 31) + (std::int64_t{1} << 20) + 7;
  const bool sends = rank.index() == 0;
  const TensorView view = rank.tensor(DType::u8, {kBytes});
  std::uint8_t* const data = view.as<std::uint8_t>();
  const auto value = [](std::int64_t i) { return static_cast<std::uint8_t>(i * 7 + i / 4096); };
  for (std::int64_t i = 0; sends && i < kBytes; ++i) data[i] = value(i);
  const Transfer one{sends ? Direction::send : Direction::receive, 1 - rank.index(), 0, view};
  rank.wait(comm.exchange({&one, 1}, rank.stream()));
  for (std::int64_t i = 0; !sends && i < kBytes; ++i)
    if (data[i] != value(i)) throw Error(text("wrong: byte {}", i));
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

/// Rank 1 is killed in the middle of a call. The others fail when the library reports it, if it detects lost peers,
/// else at their deadline.
inline void killed(Rank& rank, bool detects_lost_peers, const std::function<Work(Communicator&)>& post) {
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
      rank.device().wait(post(comm), detects_lost_peers ? Rank::deadline() : deadline_in(1));
  } catch (const Error& error) {
    comm.abort(error.what());
    throw;
  }
}

inline void killed_reducing(Rank& rank, bool detects_lost_peers) {
  const TensorView view = rank.tensor(DType::f32, {kLarge});
  killed(rank, detects_lost_peers,
         [&](Communicator& comm) { return comm.all_reduce(view, view, Reduce::max, rank.stream()); });
}

inline void killed_exchanging(Rank& rank, bool detects_lost_peers) {
  const TensorView out = rank.tensor(DType::f32, {kLarge}), in = rank.tensor(DType::f32, {kLarge});
  killed(rank, detects_lost_peers, [&, at = std::vector<Transfer>()](Communicator& comm) mutable {
    const int n = comm.size();
    at = {{Direction::send, (rank.index() + 1) % n, 0, out}, {Direction::receive, (rank.index() + n - 1) % n, 0, in}};
    return comm.exchange(at, rank.stream());
  });
}

inline void run(const std::string& scenario, Rank& rank, bool detects_lost_peers) {
  const std::map<std::string, std::function<void(Rank&)>> all = {
      {"everything", everything},
      {"other-type", other_type},
      {"above-2-gib", above_2_gib},
      {"leaves-after-sending", leaves_after_sending},
      {"killed-reducing", [&](Rank& of) { killed_reducing(of, detects_lost_peers); }},
      {"killed-exchanging", [&](Rank& of) { killed_exchanging(of, detects_lost_peers); }},
  };
  all.at(scenario)(rank);
}

/// Exit status of the program: 0, or 3 after an Error. `detects_lost_peers`: the library reports the death of a peer.
inline int run(const std::string& scenario, int index, int ranks, const std::string& folder,
               const Communication& communication, bool detects_lost_peers) {
  conformance::FolderStore store(folder);
  const Layout layout = Layout::ptd(1, ranks, 1);
  try {
    Rank rank(index, layout, store, communication);
    run(scenario, rank, detects_lost_peers);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return 0;
}

} // namespace triax::test::scenarios
