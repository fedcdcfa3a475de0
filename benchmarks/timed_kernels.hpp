// SPDX-License-Identifier: Apache-2.0
// A kernel set that times the calls of another one.
//
// Ownership: refers to the other set. Threads, blocking, errors: as the other set.
#pragma once

#include <array>
#include <chrono>

#include "triax/kernels.hpp"

namespace triax::bench {

struct OpTime {
  double seconds = 0, flops = 0, bytes = 0;
};

class TimedKernels final : public KernelSet {
 public:
  explicit TimedKernels(KernelSet& real) : real_(real) {}
  DeviceKind device_kind() const noexcept override { return real_.device_kind(); }
  Refusals supports(const KernelRequest& request) const override { return real_.supports(request); }
  void start(Device&) override {}
  using KernelSet::supports;

  const OpTime& of(Op op) const { return times_[static_cast<std::size_t>(op)]; }
  void clear() { times_ = {}; }

 protected:
  void run(const OpCall& call, const OpContext& context) override {
    const auto begin = std::chrono::steady_clock::now();
    real_.issue(call, context);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    OpTime& time = times_[static_cast<std::size_t>(call.op)];
    time.seconds += taken.count();
    time.flops += call.flops;
    time.bytes += call.bytes;
  }

 private:
  KernelSet& real_;
  std::array<OpTime, static_cast<std::size_t>(Op::multi_adamw) + 1> times_{};
};

} // namespace triax::bench
