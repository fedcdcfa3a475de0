// SPDX-License-Identifier: Apache-2.0
// Kernel sets: implementations of the operations of kernel_ops.hpp for one kind of device.
//
// Threads: one object per rank, used by the rank's main thread, or by another thread of the rank where the host updates
// with a delay, one call at a time; a set may use its own threads inside a call. Ownership: the core owns the set;
// memory is passed in as views. Blocking: on the host an operation runs inside the call, after
// Stream::ready(); on CUDA it is enqueued. Errors: Error.
//
// The public functions check shapes, count the calls, and call do_*, which a set overrides. Before the first step the
// core runs every layer once with the kernel set of a dry run: for each call, this calls supports() and prepare(), and
// adds scratch_bytes() to the memory of the rank. Operations never allocate; scratch memory is in OpContext. A set must
// give the same bits for every schedule, number of threads and buffer address (arenas are aligned to 256 bytes). The
// contract is at the end, in numbered clauses, and at the operations in kernel_ops.hpp.
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

/// Version of the interface; docs/plugins/changelog.md has its history.
inline constexpr std::uint32_t kKernelsInterface = 6;

/// "gemm"
TRIAX_API std::string_view name_of(Op op) noexcept;

/// One call of an operation as data: for dry runs, tracing, counting and simulation.
struct OpCall {
  Op op;
  const void* args; // the argument struct of `op`
  double flops = 0; // FLOPs of matrix products: 2 per multiply-add; the backward of attention counts as five products
  double bytes = 0; // each view counts once, or twice if the operation reads and writes it

  /// The argument struct, whose type is that of `op`.
  template <class Args>
  const Args& as() const {
    return *static_cast<const Args*>(args);
  }
};

#define TRIAX_OP_CALL(Args, name) TRIAX_API OpCall call_of(const Args& args);
/// The call for an argument struct, with its counts. Throws Error with the operation, view and sizes if shapes or types
/// do not match.
/// @{
TRIAX_OPERATIONS(TRIAX_OP_CALL)
/// @}
#undef TRIAX_OP_CALL

/// The stream of an operation, and scratch memory that it may use until it has finished on the stream.
struct OpContext {
  Stream& stream;
  std::span<std::byte> scratch;
};

/// The types that a run needs from a kernel set; supports(OpCall) checks single operations.
struct KernelRequest {
  DType compute = DType::f32; // of activations and working weights
  DType master = DType::f32;  // of master weights, gradients, optimizer state
};

/// A plugin of the kind kernels: the operations of one rank, on one kind of device.
class TRIAX_API KernelSet : public Extensible {
 public:
  using Interface = KernelSet;
  static constexpr const char* kKind = "kernels";
  static constexpr std::uint32_t kInterfaceVersion = kKernelsInterface;
  static constexpr std::size_t kOps = static_cast<std::size_t>(Op::multi_adamw) + 1;

  virtual ~KernelSet();

  /// The kind of device that the operations run on.
  virtual DeviceKind device_kind() const noexcept = 0;
  /// Every reason why it cannot serve the run, or none. Called before any rank is started.
  virtual Refusals supports(const KernelRequest& request) const = 0;
  /// Whether this machine has the device that make_device() would create. Called before any rank starts. Must not
  /// allocate device memory or create a context, because ranks may be started as processes afterwards.
  virtual Refusals device_available(const DeviceRequest& request) const;
  /// Creates the rank's device, on the rank's main thread. The default creates the host device, and throws Error if
  /// device_kind() is another kind.
  virtual std::unique_ptr<Device> make_device(const DeviceRequest& request) const;
  /// Called before the first operation. The device outlives the set.
  virtual void start(Device& device) = 0;

  /// Every reason why it cannot run this call, or none. The default asks for each primitive of a fused operation.
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

#define TRIAX_OP_POST(Args, name)                         \
  void name(const Args& args, const OpContext& context) { \
    issue(call_of(args), context);                        \
  }
  /// Enqueues the operation on the stream. Throws Error if shapes or types do not match, or the scratch memory is too
  /// small.
  /// @{
  TRIAX_OPERATIONS(TRIAX_OP_POST)
  /// @}
#undef TRIAX_OP_POST

  /// Runs a call that is given as data; the named functions above use it.
  void issue(const OpCall& call, const OpContext& context);

  /// How often an operation was called. Those that it consists of are not counted.
  std::uint64_t calls(Op op) const noexcept {
    return calls_[static_cast<std::size_t>(op)];
  }

 protected:
  /// Calls the do_* of the call. A set that models time instead of computing overrides only this function.
  virtual void run(const OpCall& call, const OpContext& context);

#define TRIAX_OP_DO(Args, name) virtual void do_##name(const Args& args, const OpContext& context);
  /// A primitive. The default throws Error("... does not implement ...").
  /// @{
  TRIAX_PRIMITIVES(TRIAX_OP_DO)
  /// @}
  /// A fused operation. The default calls do_* of primitives.
  /// @{
  TRIAX_FUSED(TRIAX_OP_DO)
  /// @}
#undef TRIAX_OP_DO

 private:
  /// Calls the do_* of the call; does not count, and does not check the scratch size.
  void dispatch(const OpCall& call, const OpContext& context);

  std::array<std::uint64_t, kOps> calls_{};
};

/// The kernel set of a dry run: runs nothing. For each call it asks `real` for supports() and scratch_bytes(),
/// calls its prepare(), and keeps the largest scratch size. Unsupported calls are listed, each reason once.
class TRIAX_API DryRunKernels final : public KernelSet {
 public:
  explicit DryRunKernels(KernelSet& real) : real_(real) {}
  DeviceKind device_kind() const noexcept override { return real_.device_kind(); }
  Refusals device_available(const DeviceRequest& request) const override { return real_.device_available(request); }
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const override {
    return real_.make_device(request);
  }
  Refusals supports(const KernelRequest& request) const override { return real_.supports(request); }
  void start(Device&) override {}
  int threads() const noexcept override { return real_.threads(); }
  using KernelSet::supports;

  /// The largest scratch size in bytes, and the reasons of the calls that `real` does not support.
  /// @{
  std::size_t scratch_needed() const noexcept { return scratch_; }
  const Refusals& refusals() const noexcept { return refusals_; }
  /// @}

 protected:
  void run(const OpCall& call, const OpContext& context) override;

 private:
  KernelSet& real_;
  std::size_t scratch_ = 0;
  Refusals refusals_;
};

} // namespace triax

// Contract
//
// Before the first call
//
// [K1] supports(KernelRequest) accepts types, or refuses them: each reason has a message. Keys that it names are full
//      names of configuration keys ("train.precision"). Equal requests get equal answers, from every object. It accepts
//      a floating type.
// [K2] supports(OpCall) refuses single calls: each reason has a message. Equal calls get equal answers, from every
//      object. A call that it accepts computes, in each type that supports(KernelRequest) accepts.
// [K3] supports(OpCall), prepare() and scratch_bytes() work before start(), and on views without data. scratch_bytes()
//      depends on types, shapes and strides, not on addresses.
// [K4] make_device() creates a device of device_kind(). threads() is at least 1.
//
// Memory
//
// [K5] An operation writes its outputs and scratch memory, and nothing else: not its inputs, and nothing beside or
//      between the rows of a view.
// [K6] scratch_bytes() is enough: an operation uses no scratch memory beside it.
// [K7] A result does not depend on what scratch memory holds before the call.
// [K8] An output that is not the target of a "+=" is not read. It may hold NaN.
// [K9] On the host, an operation does not allocate after its first call, in any thread.
//
// Values
//
// [K10] A "+=" adds to the values of its target.
// [K11] Where the comment of an operation allows that an output is an input, the values are those of separate views.
// [K12] A view may begin at any multiple of the size of its elements.
// [K13] Working weights are master weights, rounded to nearest, ties to even.
// [K14] A backward operation is the derivative of its forward.
//
// Bits
//
// [K15] Equal calls give equal bits, in every object, whatever was called before.
// [K16] The bits do not depend on the address of a view that is aligned to 256 bytes.
// [K17] In an operation without sums, the bits of an element do not depend on where it is in memory.
// [K18] The bits do not depend on the number of threads.
//
// Streams
//
// [K19] On a device with native streams, an operation begins after the earlier work of its stream. The host does not
//       wait for it.
//
// Repeats
//
// [K56] A primitive that computes a result of a fused operation again, from another output of it, gives equal bits:
//       act_fwd of z gives the y of linear_fwd, and norm_fwd of y the normed, mean and rstd of bias_dropout_add_norm.
//       K16 limits the addresses. RepeatLimits (cheap_recompute.hpp) names the calls that a set excepts.
