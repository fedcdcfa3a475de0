// SPDX-License-Identifier: Apache-2.0
// The public functions of a kernel set: counting, dispatch, and defaults that build fused operations from primitives.
#include <algorithm>
#include <typeinfo>

#include "base/plausible_bytes.hpp"
#include "kernels/expand_attention.hpp"
#include "os/library_of.hpp"
#include "triax/kernels.hpp"
#include "triax/rank_activity.hpp"

namespace triax {

namespace {

[[noreturn]] void not_implemented(const KernelSet& set, Op op) {
  throw Error(text("{} does not implement {}", library_of(typeid(set)), name_of(op)), {},
              text("override do_{} in its kernel set, or choose a set that has it", name_of(op)));
}

/// Calls visit(OpCall) for each primitive of a fused call; nothing for a primitive. `scratch` is that of a dry run.
template <class Visit>
void visit_primitives(const OpCall& call, kernels::Scratch& scratch, Visit&& visit) {
  const auto emit = [&](const auto& primitive) { visit(call_of(primitive)); };
  switch (call.op) {
#define TRIAX_OP(Args, name)                         \
  case Op::name:                                     \
    kernels::expand(call.as<Args>(), scratch, emit); \
    return;
    TRIAX_FUSED(TRIAX_OP)
#undef TRIAX_OP
    default:
      return;
  }
}

} // namespace

KernelSet::~KernelSet() = default;

Refusals KernelSet::device_available(const DeviceRequest&) const {
  return {};
}

std::unique_ptr<Device> KernelSet::make_device(const DeviceRequest&) const {
  if (device_kind() == DeviceKind::host) return make_host_device();
  throw Error(
      text("{} computes on a {} device, but does not create it", library_of(typeid(*this)), name_of(device_kind())), {},
      "override make_device() in its kernel set");
}

int KernelSet::threads() const noexcept {
  return 1;
}

bool KernelSet::computes() const noexcept {
  return true;
}

Refusals KernelSet::supports(const OpCall& call) const {
  Refusals answer;
  kernels::Scratch none = kernels::Scratch::dry_run();
  visit_primitives(call, none, [&](const OpCall& primitive) {
    for (const Refusal& refusal : supports(primitive))
      if (std::find(answer.begin(), answer.end(), refusal) == answer.end()) answer.add(refusal);
  });
  return answer;
}

std::size_t KernelSet::scratch_bytes(const OpCall& call) const {
  std::size_t of_primitives = 0;
  kernels::Scratch own = kernels::Scratch::dry_run();
  visit_primitives(call, own,
                   [&](const OpCall& primitive) { of_primitives = std::max(of_primitives, scratch_bytes(primitive)); });
  return own.taken() + of_primitives;
}

void KernelSet::prepare(const OpCall& call) {
  kernels::Scratch none = kernels::Scratch::dry_run();
  visit_primitives(call, none, [&](const OpCall& primitive) { prepare(primitive); });
}

void KernelSet::issue(const OpCall& call, const OpContext& context) {
  // Host operations run inside this call, so everything that the stream waits for must have finished.
  if (device_kind() == DeviceKind::host) context.stream.ready();
  call_plugin(name_of(call.op).data(), typeid(*this), [&] { run(call, context); });
  ++calls_[static_cast<std::size_t>(call.op)];
}

void KernelSet::run(const OpCall& call, const OpContext& context) {
  const std::size_t needed = scratch_bytes(call);
  if (context.scratch.size() < needed) [[unlikely]] {
    throw Error(text("{}: the scratch memory has {} bytes, but {} are needed", name_of(call.op), context.scratch.size(),
                     needed),
                {}, "pass the largest scratch_bytes() of the calls that use this memory");
  }
  dispatch(call, context);
}

void KernelSet::dispatch(const OpCall& call, const OpContext& context) {
  switch (call.op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return do_##name(call.as<Args>(), context);
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  }
}

#define TRIAX_OP(Args, name)                                 \
  void KernelSet::do_##name(const Args&, const OpContext&) { \
    not_implemented(*this, Op::name);                        \
  }
TRIAX_PRIMITIVES(TRIAX_OP)
#undef TRIAX_OP

// Calls do_* of the primitives directly, so that only the fused call is counted.
#define TRIAX_OP(Args, name)                                              \
  void KernelSet::do_##name(const Args& args, const OpContext& context) { \
    kernels::Scratch scratch(context.scratch);                            \
    kernels::expand(args, scratch, [&](const auto& primitive) {           \
      dispatch(call_of(primitive), {context.stream, scratch.rest()});     \
    });                                                                   \
  }
TRIAX_FUSED(TRIAX_OP)
#undef TRIAX_OP

void DryRunKernels::run(const OpCall& call, const OpContext&) {
  call_plugin("prepare", typeid(real_), [&] {
    if (Refusals answer = real_.supports(call); !answer.empty()) {
      for (Refusal& refusal : answer)
        if (std::find(refusals_.begin(), refusals_.end(), refusal) == refusals_.end())
          refusals_.add(std::move(refusal));
      return;
    }
    scratch_ = std::max(scratch_, plausible_bytes(real_.scratch_bytes(call), "scratch_bytes()"));
    real_.prepare(call);
  });
}

} // namespace triax
