// SPDX-License-Identifier: Apache-2.0
// The public calls of a communicator: they check arguments, count calls, and call the backend.
#include "triax/communicator.hpp"

#include <functional>

#include "triax/rank_activity.hpp"

namespace triax {

namespace {

/// Checks one call; its errors have the call, the group and the views.
class Check {
 public:
  Check(std::string_view call, const Group& group) : call_(call), group_(group) {}

  void contiguous(std::string_view role, const TensorView& view) const {
    if (!view.contiguous()) fail(text("{} {} is not contiguous", role, to_text(view)), "copy it into one first");
  }
  void same_type(const TensorView& in, const TensorView& out) const {
    if (in.dtype() != out.dtype()) fail(text("in {} and out {} differ in type", to_text(in), to_text(out)));
  }
  void elements(std::string_view role, const TensorView& view, std::int64_t expected) const {
    if (view.elements() == expected) return;
    fail(text("{} {} has {} elements; {} are needed in a group of {}", role, to_text(view), view.elements(), expected,
              group_.size()));
  }
  /// The views may not overlap, except in place: the second then begins exactly `offset` bytes into the first. With any
  /// other overlap, the call would read elements that it has overwritten.
  void apart_or_at(const TensorView& in, const TensorView& out, std::size_t offset) const {
    const auto* from = in.as<const std::byte>();
    const auto* to = out.as<const std::byte>();
    const bool apart = std::less_equal<>{}(from + in.bytes(), to) || std::less_equal<>{}(to + out.bytes(), from);
    if (!from || apart || to == from + offset) return;
    fail(text("in and out overlap: {} and {}", to_text(in), to_text(out)),
         "use views that are apart, or exactly in place");
  }
  void apart(const TensorView& in, const TensorView& out) const { apart_or_at(in, out, in.bytes()); }
  void member(std::string_view role, int index) const {
    if (index >= 0 && index < group_.size()) return;
    fail(text("{} {} is outside a group of {}", role, index, group_.size()), "members are counted from 0");
  }
  void not_self(int peer) const {
    if (peer == group_.index) fail(text("peer {} is this member itself", peer), "copy with Device::copy");
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw Error(text("{}: {}", call_, what), text("group {}", group_.id), std::move(hint));
  }

  std::string_view call_;
  const Group& group_;
};

Check check_pair(std::string_view call, const Group& group, const TensorView& in, const TensorView& out) {
  const Check check(call, group);
  check.contiguous("in", in);
  check.contiguous("out", out);
  check.same_type(in, out);
  return check;
}

} // namespace

Store::~Store() = default;
Communicator::~Communicator() = default;
CommBackend::~CommBackend() = default;

Work Communicator::posted(const char* name, const Work& work) noexcept {
  last_name_.store(nullptr, std::memory_order_relaxed); // a thread that reads between these lines sees no call
  last_state_.store(work.event.state(), std::memory_order_release);
  last_generation_.store(work.event.generation(), std::memory_order_relaxed);
  last_action_.store(work.action, std::memory_order_relaxed);
  last_name_.store(name, std::memory_order_release);
  return work;
}

PendingCall Communicator::pending() const noexcept {
  const PendingCall call{last_name_.load(std::memory_order_acquire), last_action_.load(std::memory_order_relaxed)};
  EventState* state = last_state_.load(std::memory_order_acquire);
  if (!call.name || !state || state->fired(last_generation_.load(std::memory_order_relaxed))) return {};
  return call;
}

Work Communicator::all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                              ActionId action) {
  const Check check = check_pair("all_reduce", group_, in, out);
  check.elements("out", out, in.elements());
  check.apart_or_at(in, out, 0);
  ++stats_.ops;
  const ActivityScope call(ActivityScope::Kind::plugin_call, "all_reduce", typeid(*this));
  return posted("all_reduce", do_all_reduce(in, out, reduce, stream, action));
}

Work Communicator::reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                  ActionId action) {
  const Check check = check_pair("reduce_scatter", group_, in, out);
  check.elements("in", in, out.elements() * size());
  check.apart_or_at(in, out, static_cast<std::size_t>(index()) * out.bytes());
  ++stats_.ops;
  const ActivityScope call(ActivityScope::Kind::plugin_call, "reduce_scatter", typeid(*this));
  return posted("reduce_scatter", do_reduce_scatter(in, out, reduce, stream, action));
}

Work Communicator::all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  const Check check = check_pair("all_gather", group_, in, out);
  check.elements("out", out, in.elements() * size());
  check.apart_or_at(out, in, static_cast<std::size_t>(index()) * in.bytes());
  ++stats_.ops;
  const ActivityScope call(ActivityScope::Kind::plugin_call, "all_gather", typeid(*this));
  return posted("all_gather", do_all_gather(in, out, stream, action));
}

Work Communicator::all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  const Check check = check_pair("all_to_all", group_, in, out);
  check.elements("in", in, in.elements() / size() * size());
  check.elements("out", out, in.elements());
  check.apart(in, out);
  ++stats_.ops;
  const ActivityScope call(ActivityScope::Kind::plugin_call, "all_to_all", typeid(*this));
  return posted("all_to_all", do_all_to_all(in, out, stream, action));
}

Work Communicator::broadcast(const TensorView& view, int root, Stream& stream, ActionId action) {
  const Check check("broadcast", group_);
  check.contiguous("view", view);
  check.member("root", root);
  ++stats_.ops;
  const ActivityScope call(ActivityScope::Kind::plugin_call, "broadcast", typeid(*this));
  return posted("broadcast", do_broadcast(view, root, stream, action));
}

Work Communicator::exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  const Check check("exchange", group_);
  for (const Transfer& transfer : transfers) {
    const std::string_view role = transfer.direction == Direction::send ? "sent view" : "received view";
    check.contiguous(role, transfer.view);
    check.member("peer", transfer.peer);
    check.not_self(transfer.peer);
  }
  ++stats_.ops;
  const ActivityScope call(ActivityScope::Kind::plugin_call, "exchange", typeid(*this));
  return posted("exchange", do_exchange(transfers, stream, action));
}

} // namespace triax
