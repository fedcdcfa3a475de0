// SPDX-License-Identifier: Apache-2.0
// kernels-sim: takes the time that a modelled device would need, and computes nothing.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "triax/kernels.hpp"
#include "triax/plugin.hpp"
#include "triax/rank_activity.hpp"
#include "triax/step_control.hpp"

namespace {

using namespace triax;
using std::chrono::microseconds;

constexpr double kMax = 1e6;          // seconds; a longer operation is cut to this
constexpr microseconds kTooShort{50}; // shorter waits are added to the next operation's
constexpr microseconds kNap{100};     // longest sleep between two polls while a rank waits
constexpr microseconds kSlice{1000};  // longest sleep without polling the transports: no NIC advances them

void sleep_until(Clock::time_point when) {
  const auto since = when.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  const timespec until{seconds.count(), std::chrono::nanoseconds(since - seconds).count()};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr); // steady_clock's clock; a signal may end it early
}

/// Sleeps while a rank waits for another rank's modelled time, because spinning would take cores that the ranks share.
/// A sleep takes at most a sixteenth of the time waited so far, and at most kNap.
class Naps final : public ProgressSource {
 public:
  void works() noexcept { working_ = true; }
  void rests() noexcept {
    working_ = false;
    since_ = Clock::now();
  }
  void progress() noexcept override {
    if (working_) return;
    const Clock::time_point now = Clock::now();
    const Clock::duration nap = std::min<Clock::duration>(kNap, (now - since_) / 16);
    if (nap > kNap / 10) sleep_until(now + nap);
  }

 private:
  bool working_ = false;
  Clock::time_point since_ = Clock::now(); // end of the last operation
};

void zero(const TensorView& view) {
  std::memset(view.data(), 0, view.bytes());
}

class SimKernels final : public KernelSet {
 public:
  explicit SimKernels(const PluginContext& context)
      : flops_per_s_(context.options.number("tflops") * 1e12),
        bytes_per_s_(context.options.number("gb_per_s") * 1e9),
        overhead_s_(context.options.number("op_us") * 1e-6) {}

  SimKernels(const SimKernels&) = delete;
  SimKernels& operator=(const SimKernels&) = delete;
  ~SimKernels() override {
    if (device_) device_->remove_source(naps_);
  }

  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  bool computes() const noexcept override { return false; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall&) const override { return {}; }
  std::size_t scratch_bytes(const OpCall&) const override { return 0; }
  void prepare(const OpCall&) override {}
  void start(Device& device) override {
    device_ = &device;
    device.add_source(naps_);
  }

 protected:
  void run(const OpCall& call, const OpContext& context) override {
    naps_.works();
    write_what_a_step_reads(call);
    take(seconds(call), context.stream);
    naps_.rests();
  }

 private:
  /// The roofline model (Williams et al., CACM 2009): arithmetic and memory traffic overlap; the slower one counts.
  double seconds(const OpCall& call) const {
    return overhead_s_ + std::max(call.flops / flops_per_s_, call.bytes / bytes_per_s_);
  }

  static void write_what_a_step_reads(const OpCall& call) {
    switch (call.op) {
      case Op::xent_loss:
        return zero(call.as<XentLoss>().loss);
      case Op::xent_fused:
        return zero(call.as<XentFused>().loss);
      case Op::sum_squares:
        return zero(call.as<SumSquares>().out);
      case Op::step_control:
        return decide_step(*call.as<StepControl>().scalars, 0, true, 0, call.as<StepControl>().scaling);
      default:
        return;
    }
  }

  void take(double seconds, const Stream& stream) {
    Clock::time_point now = Clock::now();
    if (stream.current() != action_) behind_ = {};
    action_ = stream.current();
    const auto taken = std::chrono::duration<double>(std::min(seconds, kMax));
    const Clock::time_point until = now - behind_ + std::chrono::duration_cast<Clock::duration>(taken);
    while (until - now > kTooShort) {
      device_->abort_flag().check();
      move_transports();
      sleep_until(std::min(until, now + kSlice));
      now = Clock::now();
    }
    behind_ = now - until;
  }

  /// To the watchdog, the operation is one call, however long it takes: calls of transports do not count as its
  /// progress.
  void move_transports() {
    const RankActivity::Binding other(transports_);
    device_->progress();
  }

  const double flops_per_s_, bytes_per_s_, overhead_s_;
  Device* device_ = nullptr;
  Naps naps_;
  RankActivity transports_;
  ActionId action_ = kNoAction;
  Clock::duration behind_{}; // measured minus modelled time of the action's operations so far
};

constexpr triax_option kOptions[] = {
    option_float("tflops", "100", 1e-12, 1e9, "compute rate of the device, in 10^12 operations per second"),
    option_float("gb_per_s", "2000", 1e-9, 1e9, "memory bandwidth of the device, in 10^9 bytes per second"),
    option_float("op_us", "0", 0, 1e9, "fixed time of every operation, in microseconds"),
};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, SimKernels, "kernels-sim", "0.1.0",
             "takes the time of a modelled device without computing, to test schedules and communicators of any size",
             kOptions)
