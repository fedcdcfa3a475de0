// SPDX-License-Identifier: Apache-2.0
// Measurements of communicators whose ranks are threads: every operation of comm-local, and a communicator with one
// wrong element or calls that write nothing, which are found. Turns wait for ranks that need progress of their peers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>

#include "bench/comm_threads.hpp"
#include "bench/side_plugins.hpp"
#include "support/error_of.hpp"
#include "support/installation.hpp"
#include "triax/plugin.hpp"

namespace triax::bench {
namespace {

using ::testing::HasSubstr;

const plugin::Library& local_library() {
  return plugin::load(test::plugin_file("comm-local"), CommBackend::kKind);
}

/// Adds 1 to an element of the output, after the call of another communicator.
class WrongElementTask final : public HostTask {
 public:
  explicit WrongElementTask(float* element) : element_(element) {}
  bool advance() noexcept override {
    *element_ += 1;
    return true;
  }

 private:
  float* element_;
};

enum CommDefect : std::int64_t { adds, writes_nothing };

class WrongCommunicator final : public Communicator {
 public:
  WrongCommunicator(std::unique_ptr<Communicator> real, int at, CommDefect defect)
      : Communicator(real->group()), real_(std::move(real)), at_(at), defect_(defect) {}
  void barrier(Deadline deadline) override { real_->barrier(deadline); }
  void abort(std::string_view why) noexcept override { real_->abort(why); }
  void progress() noexcept override { real_->progress(); }

 private:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override {
    const bool is_right = ++calls_ < at_;
    if (!is_right && defect_ == writes_nothing) return {stream.record(), action};
    const Work work = real_->post(collective, in, out, stream, action);
    if (is_right || rank() != 1) return work;
    stream.post(tasks_.emplace_back(out.as<float>() + 5));
    return {stream.record(), action};
  }
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override {
    return real_->exchange(transfers, stream, action);
  }

  std::unique_ptr<Communicator> real_;
  const int at_;
  const CommDefect defect_;
  int calls_ = 0;
  std::deque<WrongElementTask> tasks_;
};

/// comm-local, whose results on rank 1 are wrong from the call `from` on, or whose calls write nothing then.
class WrongBackend final : public CommBackend {
 public:
  explicit WrongBackend(const PluginContext& context)
      : from_(static_cast<int>(context.options.integer("from"))),
        defect_(static_cast<CommDefect>(context.options.integer("defect"))),
        real_(plugin::create<CommBackend>(local_library(), context)) {}
  CommTraits traits() const override { return real_->traits(); }
  Refusals supports(const CommRequest& request) const override { return real_->supports(request); }
  void start(Device& device) override { real_->start(device); }
  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    return std::make_unique<WrongCommunicator>(real_->join(group, store, deadline), from_, defect_);
  }

 private:
  const int from_;
  const CommDefect defect_;
  plugin::Instance<CommBackend> real_;
};

constexpr triax_option kWrongOptions[] = {option_int("from", "1", 1, 1e6, "the first wrong call"),
                                          option_int("defect", "0", 0, 1, "adds, or writes nothing")};

} // namespace

TRIAX_PLUGIN(CommBackend, WrongBackend, "comm-wrong", "0.1.0", "one wrong element", kWrongOptions)

namespace {

Side side_of(const plugin::Library& library) {
  Side side{"--plugin", {}, {}};
  side.choice.name = library.descriptor->name;
  side.choice.library = &library;
  return side;
}

CommPlan small_plan(CommOperation operation) {
  CommPlan plan;
  plan.operation = operation;
  plan.ranks = 4;
  plan.sizes = {4096, 65536};
  plan.rounds = 4;
  plan.turn_s = 1e-4;
  return plan;
}

TEST(CommThreads, MeasureEveryOperation) {
  for (const std::string& name : comm_operation_names()) {
    CommPlan plan = small_plan(*find_comm_operation(name));
    plan.sides = {side_of(local_library()), side_of(local_library())};
    std::vector<SizeResult> results;
    measure_threads(plan, nullptr, [&](const SizeResult& result) { results.push_back(result); });
    ASSERT_EQ(results.size(), 2u) << name;
    EXPECT_EQ(results[1].bytes, 65536);
    for (const SideTimes& times : results[1].sides) {
      EXPECT_EQ(times.turns_s.size(), 8u) << name;
      EXPECT_GT(mean_s(times), 0) << name;
      EXPECT_LE(times.min_s, times.p99_s) << name;
      EXPECT_GE(times.calls, 1) << name;
    }
    EXPECT_EQ(ratio_of(results[1]).rounds, 4);
  }
}

class WrongResults : public ::testing::Test {
 protected:
  /// The error of a measurement in which results are wrong from call `from` on.
  static std::string error_from(std::int64_t from, CommDefect defect = adds,
                                CommOperation operation = CommOperation::all_reduce) {
    plugin::Library wrong;
    wrong.descriptor = triax_plugin_entry_v1();
    CommPlan plan = small_plan(operation);
    plan.sides = {side_of(wrong)};
    plan.sides[0].choice.options.set("defect", static_cast<std::int64_t>(defect));
    plan.sides[0].choice.options.set("from", from);
    return test::error_of([&] { measure_threads(plan, nullptr, [](const SizeResult&) {}); });
  }
};

TEST_F(WrongResults, AreFoundBeforeTheTurns) {
  const std::string error = error_from(1);
  EXPECT_THAT(error, HasSubstr("rank 1 failed: comm-wrong, all_reduce of 4096 bytes of f32: wrong result: element 5"));
  EXPECT_THAT(error, HasSubstr("1 of 1024 elements are wrong"));
}

TEST_F(WrongResults, AreFoundAfterTheTurns) {
  EXPECT_THAT(error_from(2), HasSubstr("rank 1 failed: comm-wrong, all_reduce of 4096 bytes of f32: wrong result"));
}

TEST_F(WrongResults, OfCallsThatWriteNothingAreFound) {
  EXPECT_THAT(error_from(2, writes_nothing), HasSubstr("all_reduce of 4096 bytes of f32: wrong result"));
  EXPECT_THAT(error_from(2, writes_nothing, CommOperation::broadcast),
              HasSubstr("broadcast of 4096 bytes of f32: wrong result"));
}

/// The end of a call on a rank. Rank 1 waits until rank 0 has polled after its own call.
class HelpedTask final : public HostTask {
 public:
  HelpedTask(int rank, int call) : rank_(rank), call_(call) {}
  bool advance() noexcept override {
    if (rank_ == 0) {
      ended = call_;
      ended_at = Clock::now();
    }
    return rank_ != 1 || polled >= call_;
  }

  static inline std::atomic<int> polled = 0;
  static inline int ended = 0; // of rank 0, as ended_at
  static inline Clock::time_point ended_at;

 private:
  const int rank_, call_;
};

class HelpedCommunicator final : public Communicator {
 public:
  HelpedCommunicator(std::unique_ptr<Communicator> real, Device& device)
      : Communicator(real->group()), real_(std::move(real)), device_(device) {
    device_.add_source(*this);
  }
  ~HelpedCommunicator() override { device_.remove_source(*this); }
  void barrier(Deadline deadline) override { real_->barrier(deadline); }
  void abort(std::string_view why) noexcept override { real_->abort(why); }
  /// Not in the round in which the call ends.
  void progress() noexcept override {
    if (rank() == 0 && Clock::now() - HelpedTask::ended_at > std::chrono::microseconds(100))
      HelpedTask::polled = HelpedTask::ended;
  }

 private:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override {
    real_->post(collective, in, out, stream, action);
    stream.post(tasks_.emplace_back(rank(), ++calls_));
    return {stream.record(), action};
  }
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override {
    return real_->exchange(transfers, stream, action);
  }

  std::unique_ptr<Communicator> real_;
  Device& device_;
  int calls_ = 0;
  std::deque<HelpedTask> tasks_;
};

class HelpedBackend final : public CommBackend {
 public:
  explicit HelpedBackend(const PluginContext& context) : real_(plugin::create<CommBackend>(local_library(), context)) {}
  CommTraits traits() const override { return real_->traits(); }
  Refusals supports(const CommRequest& request) const override { return real_->supports(request); }
  void start(Device& device) override {
    device_ = &device;
    real_->start(device);
  }
  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    return std::make_unique<HelpedCommunicator>(real_->join(group, store, deadline), *device_);
  }

 private:
  Device* device_ = nullptr;
  plugin::Instance<CommBackend> real_;
};

TEST(CommThreads, FinishTheCallsOfTheOtherSide) {
  triax_plugin descriptor = *local_library().descriptor;
  descriptor.create = plugin_detail::create<CommBackend, HelpedBackend>;
  descriptor.destroy = [](void* object) { delete static_cast<CommBackend*>(object); };
  plugin::Library helped;
  helped.descriptor = &descriptor;
  CommPlan plan = small_plan(CommOperation::all_reduce);
  plan.sides = {side_of(helped), side_of(local_library())};
  plan.timeout_s = 20;
  int results = 0;
  measure_threads(plan, nullptr, [&](const SizeResult&) { ++results; });
  EXPECT_EQ(results, 2);
}

} // namespace
} // namespace triax::bench
