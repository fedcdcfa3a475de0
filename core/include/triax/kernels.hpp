// SPDX-License-Identifier: Apache-2.0
// Kernel sets: implementations of the operations of kernel_ops.hpp for one kind of device.
//
// Threads: one object per rank, used by the rank's main thread; a set may use its own threads inside a call. Ownership:
// the core owns the set; memory is passed in as views. Blocking: on the host an operation runs inside the call, after
// Stream::ready(); on CUDA it is enqueued. Errors: Error.
//
// The public functions check shapes, count FLOPs and bytes, and call do_*, which a set overrides. Before the first step
// the core runs every layer once with a planning set: for each call, this calls supports() and prepare(), and adds
// scratch_bytes() to the memory plan. Operations never allocate; scratch memory is in OpContext. A set must give the
// same bits for every schedule, number of threads and buffer address (arenas are aligned to 256 bytes).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/extension.hpp"
#include "triax/kernel_ops.hpp"

namespace triax {

inline constexpr std::uint32_t kKernelsInterface = 6;

TRIAX_API std::string_view name_of(Op op) noexcept;

/// One call of an operation as data: for planning, tracing, counting and simulation.
struct OpCall {
  Op op;
  const void* args; // the argument struct of `op`
  double flops = 0; // of matrix products, a multiply-add counts two; attention backward: five products
  double bytes = 0; // read and written, each view once

  template <class Args>
  const Args& as() const {
    return *static_cast<const Args*>(args);
  }
};

/// The call for an argument struct, with its counts. Throws Error with the operation, view and sizes if shapes or types
/// do not match.
#define TRIAX_OP(Args, name) TRIAX_API OpCall call_of(const Args& args);
TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

/// The stream of an operation, and scratch memory that it may use until it has finished on the stream.
struct OpContext {
  Stream& stream;
  std::span<std::byte> scratch;
};

struct OpStats {
  std::uint64_t calls = 0;
  double flops = 0, bytes = 0;
};

/// The types that a run needs from a kernel set; supports(OpCall) checks single operations.
struct KernelRequest {
  DType compute = DType::f32; // of activations and working weights
  DType master = DType::f32;  // of master weights, gradients, optimizer state
};

class TRIAX_API KernelSet : public Extensible {
 public:
  using Interface = KernelSet;
  static constexpr const char* kKind = "kernels";
  static constexpr std::uint32_t kInterfaceVersion = kKernelsInterface;

  virtual ~KernelSet();

  virtual DeviceKind device_kind() const noexcept = 0;
  virtual Refusals supports(const KernelRequest& request) const = 0;
  /// Whether this machine has the device that make_device() would create. Called before any rank starts. Must not
  /// allocate device memory or create a context, because ranks may be started as processes afterwards.
  virtual Refusals device_available(const DeviceRequest& request) const;
  /// Creates the rank's device, on the rank's main thread. The default creates the host device, and throws Error if
  /// device_kind() is another kind.
  virtual std::unique_ptr<Device> make_device(const DeviceRequest& request) const;
  /// Called before the first operation. The device outlives the set.
  virtual void start(Device& device) = 0;

  virtual Refusals supports(const OpCall& call) const;
  /// Bytes of scratch memory that the call needs. The default is enough for the default implementation of each fused
  /// operation: its temporaries, plus scratch_bytes() of its primitives. A set that overrides a fused operation, or
  /// whose primitives need scratch, overrides this function too.
  virtual std::size_t scratch_bytes(const OpCall& call) const;
  /// Per-shape setup, such as algorithm selection or primitive creation. Must not autotune by timing.
  virtual void prepare(const OpCall& call);
  /// CPU threads that compute an operation on the host, for reports. The default is 1: the rank's main thread.
  virtual int threads() const noexcept;
  /// Whether operations compute: false for a set that models their time, of which nothing is saved. The default is
  /// true.
  virtual bool computes() const noexcept;

#define TRIAX_OP(Args, name)                              \
  void name(const Args& args, const OpContext& context) { \
    issue(call_of(args), context);                        \
  }
  TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

  /// Runs a call that is given as data; the named functions above use it.
  void issue(const OpCall& call, const OpContext& context);

  const OpStats& stats(Op op) const noexcept {
    return stats_[static_cast<std::size_t>(op)];
  }

 protected:
  /// Calls the do_* of the call. A set that models time instead of computing overrides only this function.
  virtual void run(const OpCall& call, const OpContext& context);

  /// Primitives. The default throws Error("... does not implement ...").
#define TRIAX_OP(Args, name) virtual void do_##name(const Args& args, const OpContext& context);
  TRIAX_PRIMITIVES(TRIAX_OP)
  /// Fused operations. The default calls do_* of primitives.
  TRIAX_FUSED(TRIAX_OP)
#undef TRIAX_OP

 private:
  /// Calls the do_* of the call; does not count, and does not check the scratch size.
  void dispatch(const OpCall& call, const OpContext& context);

  static constexpr std::size_t kOps = static_cast<std::size_t>(Op::multi_adamw) + 1;
  std::array<OpStats, kOps> stats_{};
};

/// The planning set: runs nothing. For each call it asks `real` for supports() and scratch_bytes(), calls its
/// prepare(), and keeps the largest scratch size. Unsupported calls are listed, each reason once.
class TRIAX_API PlanKernels final : public KernelSet {
 public:
  explicit PlanKernels(KernelSet& real) : real_(real) {}
  DeviceKind device_kind() const noexcept override { return real_.device_kind(); }
  Refusals device_available(const DeviceRequest& request) const override { return real_.device_available(request); }
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const override {
    return real_.make_device(request);
  }
  Refusals supports(const KernelRequest& request) const override { return real_.supports(request); }
  void start(Device&) override {}
  int threads() const noexcept override { return real_.threads(); }
  using KernelSet::supports;

  std::size_t scratch_needed() const noexcept { return scratch_; }
  const Refusals& refusals() const noexcept { return refusals_; }

 protected:
  void run(const OpCall& call, const OpContext& context) override;

 private:
  KernelSet& real_;
  std::size_t scratch_ = 0;
  Refusals refusals_;
};

} // namespace triax
