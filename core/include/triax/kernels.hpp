// Kernel sets: the operations of kernel_ops.hpp on one device.
//
// Threads: one object per rank, used by the rank's main thread; a set may use threads of its own inside a call.
// Ownership: the core owns the set; memory comes in as views. Blocking: on the host an operation runs inside the call,
// after Stream::ready(); on CUDA it is enqueued.
//
// The public calls check shapes and count; authors override do_*. Before the first step the core runs every layer once
// against a planning set: each call's supports() is asked, its scratch_bytes() added to the plan, its prepare() called.
// An operation never allocates; scratch comes in by OpContext. The same set gives the same bits whatever the schedule,
// the number of threads or the position of a buffer (arenas are aligned to 256 bytes).
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
#include "triax/kernel_ops.hpp"

namespace triax {

inline constexpr std::uint32_t kKernelsInterface = 3;

TRIAX_API std::string_view name_of(Op op) noexcept;

/// One call, seen as data: for planning, tracing, counting, simulating.
struct OpCall {
  Op op;
  const void* args; // the argument struct of `op`
  double flops = 0; // of its GEMM-like work, multiply-add counts two; attention backward: five products
  double bytes = 0; // read and written, each view once

  template <class Args>
  const Args& as() const {
    return *static_cast<const Args*>(args);
  }
};

/// The call for an argument struct, with its counts. Throws Error naming operation, view and sizes if shapes or types
/// do not fit together.
#define TRIAX_OP(Args, name) TRIAX_API OpCall call_of(const Args& args);
TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

/// Where an operation runs, and the memory it may use until it returns (host) or its stream goes on (CUDA).
struct OpContext {
  Stream& stream;
  std::span<std::byte> scratch;
};

struct OpStats {
  std::uint64_t calls = 0;
  double flops = 0, bytes = 0;
};

/// What a run asks of a kernel set as a whole; single operations are asked by supports(OpCall).
struct KernelRequest {
  DType compute = DType::f32; // of activations and working weights
  DType master = DType::f32;  // of master weights, gradients, optimizer state
};

class TRIAX_API KernelSet {
 public:
  using Interface = KernelSet;
  static constexpr const char* kKind = "kernels";
  static constexpr std::uint32_t kInterfaceVersion = kKernelsInterface;

  virtual ~KernelSet();

  virtual DeviceKind device_kind() const noexcept = 0;
  virtual Support supports(const KernelRequest& request) const = 0;
  /// Whether this machine has the device that make_device() would make; asked before any rank starts. Must not take
  /// memory or make a context: ranks may be started as processes afterwards.
  virtual Support device_available(const DeviceRequest& request) const;
  /// The rank's device, on the rank's main thread. The default makes the host's, and throws Error for another kind: the
  /// core itself knows no other.
  virtual std::unique_ptr<Device> make_device(const DeviceRequest& request) const;
  /// Before the first operation. The device outlives the set.
  virtual void start(Device& device) = 0;

  virtual Support supports(const OpCall& call) const;
  /// Scratch the call needs. The default covers the default of each fused operation, and in it what this function says
  /// of its primitives; a set that overrides one, or whose primitives need scratch, overrides this too.
  virtual std::size_t scratch_bytes(const OpCall& call) const;
  /// Whatever is worth doing once per shape (choosing an algorithm, making a primitive). Never by timing.
  virtual void prepare(const OpCall& call);

#define TRIAX_OP(Args, name)                              \
  void name(const Args& args, const OpContext& context) { \
    issue(call_of(args), context);                        \
  }
  TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

  /// A call as data; what the named calls come down to.
  void issue(const OpCall& call, const OpContext& context);

  const OpStats& stats(Op op) const noexcept {
    return stats_[static_cast<std::size_t>(op)];
  }

 protected:
  /// Runs the do_* of the call. A set that models time instead of computing overrides this alone.
  virtual void run(const OpCall& call, const OpContext& context);

  /// Primitives: the default throws Error("... does not implement ...").
#define TRIAX_OP(Args, name) virtual void do_##name(const Args& args, const OpContext& context);
  TRIAX_PRIMITIVES(TRIAX_OP)
  /// Fused operations: the default is made of do_* of primitives.
  TRIAX_FUSED(TRIAX_OP)
#undef TRIAX_OP

 private:
  /// Calls the do_* of the call: no count, no check of the scratch.
  void dispatch(const OpCall& call, const OpContext& context);

  static constexpr std::size_t kOps = static_cast<std::size_t>(Op::multi_adamw) + 1;
  std::array<OpStats, kOps> stats_{};
};

/// A set that runs nothing: it asks `real` whether it supports each call, has it prepare, and keeps the largest
/// scratch. The refusals are listed, each once.
class TRIAX_API PlanKernels final : public KernelSet {
 public:
  explicit PlanKernels(KernelSet& real) : real_(real) {}
  DeviceKind device_kind() const noexcept override { return real_.device_kind(); }
  Support device_available(const DeviceRequest& request) const override { return real_.device_available(request); }
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const override {
    return real_.make_device(request);
  }
  Support supports(const KernelRequest& request) const override { return real_.supports(request); }
  void start(Device&) override {}
  using KernelSet::supports;

  std::size_t scratch_needed() const noexcept { return scratch_; }
  const std::vector<Support>& refusals() const noexcept { return refusals_; }

 protected:
  void run(const OpCall& call, const OpContext& context) override;

 private:
  KernelSet& real_;
  std::size_t scratch_ = 0;
  std::vector<Support> refusals_;
};

} // namespace triax
