// SPDX-License-Identifier: Apache-2.0
// Sends and receives: matching by edge and order, sets without order, guarantees of sends.
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "collective_values.hpp"
#include "communicator_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr std::int64_t kLargeView = (5 << 18) + 1; // elements: over 5 MiB, above the thresholds of transports

/// The transfer of this member on the edge from member 0 to member 1.
Transfer on_edge(Communicator& comm, const TensorView& view, int channel = 0) {
  return comm.rank() == 0 ? send(1, view, channel) : receive(0, view, channel);
}

void a_cycle_completes(const CommunicatorSubject& subject, Report& report) {
  for_groups(subject, report, [](Rank& rank, Communicator& comm) {
    const int n = comm.size(), next = (comm.rank() + 1) % n, before = (comm.rank() + n - 1) % n;
    for (const std::int64_t elements : {std::int64_t{1}, kLargeView}) {
      const TensorView out = rank.tensor(DType::i32, {elements}, input_of<std::int32_t>(comm.rank(), elements));
      const TensorView in = rank.tensor(DType::i32, {elements});
      const Transfer set[] = {send(next, out), receive(before, in)};
      rank.wait(comm.exchange(set, rank.stream()));
      expect_elements(rank, text("a cycle of exchanges of {} i32 in a group of {}", elements, n), in,
                      input_of<std::int32_t>(before, elements));
    }
  });
}

void an_empty_exchange_completes(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) { rank.wait(comm.exchange({}, rank.stream())); });
}

void sends_match_receives_in_order(const CommunicatorSubject& subject, Report& report) {
  constexpr int kTransfers = 100; // more than a backend may keep in flight
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    std::vector<TensorView> views;
    std::vector<Work> works;
    for (int i = 0; i < kTransfers; ++i) views.push_back(number(rank, comm.rank() == 0 ? i : -1));
    for (const TensorView& view : views) {
      const Transfer one = on_edge(comm, view);
      works.push_back(comm.exchange({&one, 1}, rank.stream()));
    }
    for (const Work& work : works) rank.wait(work);
    for (int i = 0; i < kTransfers; ++i) {
      const int got = number_in(rank, views[static_cast<std::size_t>(i)]);
      rank.expect(got == i, "receive {} of an edge got the data of send {}", i, got);
    }
  });
}

void order_is_that_of_posts(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const std::unique_ptr<Stream> held = rank.device().make_stream("held");
    HostEvent blocker;
    held->wait(blocker.arm()); // its call is posted first, and its turn comes last
    const bool sends = comm.rank() == 0;
    const TensorView a = number(rank, sends ? 1 : -1), b = number(rank, sends ? 2 : -1);
    const Transfer first = on_edge(comm, a), second = on_edge(comm, b);
    const Work work_a = comm.exchange({&first, 1}, *held);
    const Work work_b = comm.exchange({&second, 1}, rank.stream());
    rank.progress(20);
    blocker.fire();
    rank.wait(work_a);
    rank.wait(work_b);
    rank.expect(number_in(rank, a) == 1 && number_in(rank, b) == 2,
                "the receives that were posted first and second got sends {} and {}", number_in(rank, a),
                number_in(rank, b));
  });
}

void channels_do_not_wait(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const std::unique_ptr<Stream> other = rank.device().make_stream("other");
    for (const std::int64_t elements : {std::int64_t{1}, kLargeView}) {
      const bool sends = comm.rank() == 0;
      const auto make = [&](int value) {
        const TensorView view = rank.tensor(DType::i32, {elements});
        rank.put(view, std::vector<std::int32_t>(static_cast<std::size_t>(elements), sends ? value : -1));
        return view;
      };
      const TensorView a = make(10), b = make(20);
      const Transfer on3 = on_edge(comm, a, 3), on15 = on_edge(comm, b, 15);
      if (sends) { // posts channel 3 first; the receiver takes channel 15 first
        const Work work_a = comm.exchange({&on3, 1}, rank.stream());
        rank.wait(comm.exchange({&on15, 1}, *other));
        rank.wait(work_a);
      } else {
        rank.wait(comm.exchange({&on15, 1}, rank.stream()));
        rank.wait(comm.exchange({&on3, 1}, rank.stream()));
        rank.expect(number_in(rank, a.slice(0, 0, 1)) == 10 && number_in(rank, b.slice(0, 0, 1)) == 20,
                    "channels 3 and 15 received {} and {}, must be 10 and 20", number_in(rank, a.slice(0, 0, 1)),
                    number_in(rank, b.slice(0, 0, 1)));
      }
    }
  });
}

/// Both ends post the channels in one order, on two streams, and data may not cross between them.
void channels_match_themselves(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    std::vector<TensorView> views;
    std::vector<Transfer> set;
    const bool sends = comm.rank() == 0;
    for (int channel = 0; channel < 8; ++channel) views.push_back(number(rank, sends ? 100 + channel : -1));
    // Tagged backends match by channel, whatever the order within the set.
    for (int i = 0; i < 8; ++i) {
      const int channel = sends ? i : 7 - i;
      set.push_back(on_edge(comm, views[static_cast<std::size_t>(channel)], channel));
    }
    rank.wait(comm.exchange(set, rank.stream()));
    for (int channel = 0; channel < 8; ++channel) {
      const int got = number_in(rank, views[static_cast<std::size_t>(channel)]);
      rank.expect(got == 100 + channel, "channel {} received what channel {} sent", channel, got - 100);
    }
  });
}

void every_type_and_size(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    const int peer = 1 - comm.rank();
    for (const DType dtype : kAllTypes)
      with_type(dtype, [&]<class T>(T) {
        for (const std::int64_t elements : {0, 1, 999, 20'003}) {
          const TensorView out = rank.tensor(dtype, {elements}, input_of<T>(comm.rank(), elements));
          const TensorView in = rank.tensor(dtype, {elements});
          const Transfer set[] = {receive(peer, in), send(peer, out)};
          rank.wait(comm.exchange(set, rank.stream()));
          expect_elements(rank, text("a transfer of {} {}", elements, name_of(dtype)), in, input_of<T>(peer, elements));
        }
      });
  });
}

/// Exchanges and collectives of one group alternate, as in the steps of a pipeline.
void beside_collectives(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 3, report, [](Rank& rank, Communicator& comm) {
    const TensorView sum = number(rank, 0), out = number(rank, 0), in = number(rank, 0);
    const int next = (comm.rank() + 1) % 3, before = (comm.rank() + 2) % 3;
    for (int step = 0; step < 200; ++step) {
      rank.device().fill(out, 100 * step + comm.rank(), rank.stream());
      rank.device().fill(sum, step, rank.stream());
      const Transfer set[] = {send(next, out), receive(before, in)};
      const Work exchanged = comm.exchange(set, rank.stream());
      rank.wait(comm.all_reduce(sum, sum, Reduce::sum, rank.stream()));
      rank.expect(exchanged.event.fired(), "step {}: a call has completed before an earlier one of its stream", step);
      rank.expect(number_in(rank, sum) == 3 * step && number_in(rank, in) == 100 * step + before,
                  "step {}: sum {} and received {}, must be {} and {}", step, number_in(rank, sum), number_in(rank, in),
                  3 * step, 100 * step + before);
    }
  });
}

/// A buffered send completes before its receive is posted.
void buffered_sends_complete_alone(const CommunicatorSubject& subject, Report& report) {
  const auto bytes = static_cast<std::int64_t>(subject.traits.buffered_bytes);
  in_group(subject, 2, report, [bytes](Rank& rank, Communicator& comm) {
    for (const std::int64_t size : {std::int64_t{1}, bytes}) {
      const TensorView view = rank.tensor(DType::u8, {size});
      if (comm.rank() == 0) rank.put(view, input_of<std::uint8_t>(0, size));
      const Transfer one = on_edge(comm, view);
      if (comm.rank() == 0) rank.wait(comm.exchange({&one, 1}, rank.stream()));
      rank.barrier("sent");
      if (comm.rank() == 1) {
        rank.wait(comm.exchange({&one, 1}, rank.stream()));
        expect_elements(rank, text("a buffered send of {} bytes", size), view, input_of<std::uint8_t>(0, size));
      }
      rank.barrier("received");
    }
  });
}

/// A send completes with its receive, although nothing else is posted on either side.
void sends_complete_with_receives(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    connect(rank, comm);
    for (const std::int64_t elements : {std::int64_t{1}, kLargeView}) {
      const TensorView view = rank.tensor(DType::i32, {elements});
      if (comm.rank() == 0) rank.put(view, input_of<std::int32_t>(0, elements));
      const Transfer one = on_edge(comm, view);
      Work work;
      if (comm.rank() == 0) work = comm.exchange({&one, 1}, rank.stream());
      rank.barrier("posted the send");
      if (comm.rank() == 1) work = comm.exchange({&one, 1}, rank.stream());
      rank.wait(work);
      expect_elements(rank, text("a transfer of {} i32", elements), view, input_of<std::int32_t>(0, elements));
    }
  });
}

/// The receiver posts late, so that a send of a large view is under way for some time.
void sent_views_may_be_overwritten(const CommunicatorSubject& subject, Report& report) {
  in_group(subject, 2, report, [](Rank& rank, Communicator& comm) {
    constexpr std::chrono::milliseconds kMeanwhile{50};
    connect(rank, comm);
    for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{3000}, kLargeView}) {
      const TensorView view = rank.tensor(DType::i32, {elements});
      if (comm.rank() == 0) rank.put(view, input_of<std::int32_t>(0, elements));
      const Transfer one = on_edge(comm, view);
      if (comm.rank() == 1) std::this_thread::sleep_for(kMeanwhile);
      rank.wait(comm.exchange({&one, 1}, rank.stream()));
      if (comm.rank() == 0) {
        rank.put(view, std::vector<std::int32_t>(static_cast<std::size_t>(elements), -1));
      } else {
        expect_elements(rank, text("a transfer of {} i32, whose view the sender overwrites after its event", elements),
                        view, input_of<std::int32_t>(0, elements));
      }
      rank.barrier("received");
    }
  });
}

constexpr CommCheck kTransferChecks[] = {
    {"Exchange.OfACycleCompletes", "C24", nullptr, a_cycle_completes},
    {"Exchange.WithoutTransfersCompletes", "C24", nullptr, an_empty_exchange_completes},
    {"Exchange.MovesEveryTypeAndSize", "C8", nullptr, every_type_and_size},
    {"Send.FreesItsViewWithItsEvent", "C8", nullptr, sent_views_may_be_overwritten},
    {"Edge.TheKthSendMatchesTheKthReceive", "C23", nullptr, sends_match_receives_in_order},
    {"Edge.OrderIsThatOfThePosts", "C23", nullptr, order_is_that_of_posts},
    {"Channel.ReceivesWhatItSends", "C23", unless_tagged, channels_match_themselves},
    {"Channel.WaitsForNoOther", "C25", unless_tagged, channels_do_not_wait},
    {"Send.BufferedCompletesWithoutItsReceive", "C26", unless_buffered, buffered_sends_complete_alone},
    {"Send.CompletesWithItsReceive", "C26", nullptr, sends_complete_with_receives},
    {"Exchange.GoesBesideCollectives", "C27", nullptr, beside_collectives},
};

} // namespace

std::span<const CommCheck> transfer_checks() {
  return kTransferChecks;
}

} // namespace triax::conformance
