// SPDX-License-Identifier: Apache-2.0
// One member over a communicator that completes each call at once: what it posts there, and what it writes to the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "faulty_communicator.hpp"
#include "support/error_of.hpp"

namespace triax::comm_faulty {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Group kGroup{"tensor", "tensor.0", {4, 5, 6}, 1};

/// Keeps the transfers of its last exchange.
class CompletingCommunicator final : public Communicator {
 public:
  explicit CompletingCommunicator(std::vector<Transfer>& last) : Communicator(kGroup), last_(last) {}
  void progress() noexcept override {}
  void barrier(Deadline) override {}
  void abort(std::string_view) noexcept override {}

 protected:
  Work do_collective(const Collective& collective, const TensorView&, const TensorView&, Stream&,
                     ActionId action) override {
    count(payload_of(collective));
    return {{}, action};
  }
  Work do_exchange(std::span<const Transfer> transfers, Stream&, ActionId action) override {
    last_.assign(transfers.begin(), transfers.end());
    return {{}, action};
  }

 private:
  std::vector<Transfer>& last_;
};

/// Lines of the level info; each is also written to a descriptor, if there is one.
class KeptLog final : public Log {
 public:
  explicit KeptLog(int descriptor = -1) : descriptor_(descriptor) {}
  bool enabled(LogLevel level) const noexcept override { return level == LogLevel::info; }
  void write(LogLevel, std::string_view line) noexcept override {
    lines.emplace_back(line);
    if (descriptor_ >= 0 && ::write(descriptor_, line.data(), line.size()) < 0) ::_exit(1);
  }
  std::vector<std::string> lines;

 private:
  const int descriptor_;
};

/// A member whose calls have the fault.
class Member {
 public:
  explicit Member(FaultOptions options, Log& log, CommTraits traits = {})
      : options_(std::move(options)),
        comm_(std::make_unique<CompletingCommunicator>(last_), traits, options_, *device_, log) {}

  Communicator& comm() { return comm_; }
  Stream& stream() { return *stream_; }
  void all_reduce() {
    const TensorView view(values_.data(), DType::f32, {4});
    comm_.all_reduce(view, view, Reduce::sum, *stream_);
  }
  /// The transfers that the wrapped communicator gets.
  std::vector<Transfer> exchanged(const std::vector<Transfer>& transfers) {
    comm_.exchange(transfers, *stream_);
    return last_;
  }
  TensorView element(std::size_t i) { return {values_.data() + i, DType::f32, {1}}; }

 private:
  const FaultOptions options_;
  std::vector<float> values_ = std::vector<float>(64);
  std::vector<Transfer> last_;
  const std::unique_ptr<Device> device_ = make_host_device();
  FaultyCommunicator comm_;
  const std::unique_ptr<Stream> stream_ = device_->make_stream("main"); // ends its tasks before their owner
};

/// The lines of two posts of which the second has the fault.
std::vector<std::string> lines_of(Fault fault) {
  KeptLog log;
  Member member({.fault = fault, .at = 2}, log);
  member.all_reduce();
  test::error_of([&] { member.all_reduce(); });
  return log.lines;
}

TEST(InjectedCalls, AreInTheLog) {
  for (const Fault fault : {Fault::drop, Fault::corrupt, Fault::fail, Fault::hang_advance})
    EXPECT_THAT(
        lines_of(fault),
        ElementsAre(text("comm-faulty: all_reduce is post 2 of group tensor.0: injected fault {}", name_of(fault))));
  for (const Fault fault : {Fault::none, Fault::delay, Fault::reorder})
    EXPECT_THAT(lines_of(fault), IsEmpty()) << name_of(fault);
}

/// What a process logs in whose first post the fault ends or stops it.
std::string line_of_process(Fault fault) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    KeptLog log(ends[1]);
    Member member({.fault = fault, .at = 1}, log);
    member.all_reduce();
    ::_exit(1); // it must not return
  }
  ::close(ends[1]);
  char line[256] = "";
  const ssize_t size = ::read(ends[0], line, sizeof line);
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << name_of(fault);
  return {line, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

TEST(InjectedCalls, ThatEndOrStopTheProcessAreInTheLogBefore) {
  for (const Fault fault : {Fault::die, Fault::hang_post})
    EXPECT_EQ(line_of_process(fault),
              text("comm-faulty: all_reduce is post 1 of group tensor.0: injected fault {}", name_of(fault)));
}

using Edge = std::tuple<Direction, int, int>;

Edge edge_of(const Transfer& transfer) {
  return {transfer.direction, transfer.peer, transfer.channel};
}

std::map<Edge, std::vector<const void*>> views_by_edge(const std::vector<Transfer>& transfers) {
  std::map<Edge, std::vector<const void*>> out;
  for (const Transfer& transfer : transfers) out[edge_of(transfer)].push_back(transfer.view.data());
  return out;
}

std::vector<const void*> views_in_order(const std::vector<Transfer>& transfers) {
  std::vector<const void*> out;
  for (const Transfer& transfer : transfers) out.push_back(transfer.view.data());
  return out;
}

TEST(InjectedCalls, OfReorderHaveTheTransfersInAnotherOrder) {
  Member member({.fault = Fault::reorder}, null_log());
  std::vector<Transfer> transfers;
  for (const Direction direction : {Direction::receive, Direction::send})
    for (const int peer : {0, 2})
      for (const int channel : {0, 1})
        for (int turn = 0; turn < 2; ++turn)
          transfers.push_back({direction, peer, channel, member.element(transfers.size())});
  std::set<std::vector<const void*>> orders;
  for (int post = 0; post < 20; ++post) {
    const std::vector<Transfer> got = member.exchanged(transfers);
    EXPECT_EQ(views_by_edge(got), views_by_edge(transfers)) << "transfers of an edge keep their order";
    orders.insert(views_in_order(got));
  }
  EXPECT_GT(orders.size(), 10u);
  EXPECT_FALSE(orders.contains({}));
  Member none({}, null_log());
  EXPECT_EQ(views_in_order(none.exchanged(transfers)), views_in_order(transfers));
}

} // namespace
} // namespace triax::comm_faulty
