// SPDX-License-Identifier: Apache-2.0
// The public calls of a communicator: they check arguments, count calls, and call the backend.
#include "triax/communicator.hpp"

#include <functional>

#include "triax/rank_activity.hpp"

namespace triax {

namespace {

using Kind = Collective::Kind;

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
  void described(const Collective& of, const TensorView& in) const {
    if (of.dtype != in.dtype() || of.elements != in.elements())
      fail(text("in is {}, but the collective is {}", to_text(in), to_text(of)), "describe the elements of in");
  }
  void same_view(const TensorView& in, const TensorView& out) const {
    if (in.data() != out.data() || in.elements() != out.elements())
      fail(text("in {} and out {} are not the same view", to_text(in), to_text(out)), "give one view as both");
  }
  void reducible(const TensorView& in) const {
    if (in.dtype() == DType::u8)
      fail(text("{} cannot be reduced", to_text(in)), "reduce f32, f64, bf16, f16, i32 or i64");
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
    if (!from) return; // planned views have no data
    const bool apart = std::less_equal<>{}(from + in.bytes(), to) || std::less_equal<>{}(to + out.bytes(), from);
    if (apart || to == from + offset) return;
    fail(text("in and out overlap: {} and {}", to_text(in), to_text(out)),
         "use views that are apart, or exactly in place");
  }
  void apart(const TensorView& in, const TensorView& out) const { apart_or_at(in, out, in.bytes()); }
  void member(std::string_view role, int index) const {
    if (index >= 0 && index < group_.size()) return;
    fail(text("{} {} is outside a group of {}", role, index, group_.size()), "members are counted from 0");
  }
  void not_self(int peer) const {
    if (peer == group_.group_rank) fail(text("peer {} is this member itself", peer), "copy with Device::copy");
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw Error(text("{}: {}", call_, what), text("group {}", group_.id), std::move(hint));
  }

  std::string_view call_;
  const Group& group_;
};

void check_collective(const Collective& of, const Group& group, const TensorView& in, const TensorView& out) {
  const Check check(name_of(of.kind), group);
  const auto own = static_cast<std::size_t>(group.group_rank);
  check.contiguous("in", in);
  check.contiguous("out", out);
  check.same_type(in, out);
  check.described(of, in);
  if (of.reduces()) check.reducible(in);
  switch (of.kind) {
    case Kind::all_reduce:
      check.elements("out", out, in.elements());
      return check.apart_or_at(in, out, 0);
    case Kind::reduce_scatter:
      check.elements("in", in, out.elements() * group.size());
      return check.apart_or_at(in, out, own * out.bytes());
    case Kind::all_gather:
      check.elements("out", out, in.elements() * group.size());
      return check.apart_or_at(out, in, own * in.bytes());
    case Kind::all_to_all:
      check.elements("in", in, in.elements() / group.size() * group.size());
      check.elements("out", out, in.elements());
      return check.apart(in, out);
    case Kind::broadcast:
      check.same_view(in, out);
      return check.member("root", of.root);
  }
}

} // namespace

Store::~Store() = default;
Communicator::~Communicator() = default;
CommBackend::~CommBackend() = default;

const char* name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
    case Kind::all_to_all:
      return "all_to_all";
    case Kind::broadcast:
      return "broadcast";
  }
  return "unknown collective"; // from another rank
}

std::string to_text(const Collective& collective) {
  std::string out = text("{} of {} {}", name_of(collective.kind), collective.elements, name_of(collective.dtype));
  if (collective.kind == Kind::broadcast) out += text(" from member {}", collective.root);
  if (collective.reduces()) out += collective.reduce == Reduce::sum ? " (sum)" : " (max)";
  return out;
}

Payload Communicator::payload_of(const Collective& of, int member) const noexcept {
  const std::int64_t members = size(), all = of.elements, own = all * (member + 1) / members - all * member / members;
  const auto bytes = [&of](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * bytes_of(of.dtype); };
  switch (of.kind) {
    case Kind::all_reduce: // out: the others' parts of `in`, and this member's result to each other; in: as many
      return {bytes(all - own + own * (members - 1)), bytes(all - own + own * (members - 1))};
    case Kind::reduce_scatter:
    case Kind::all_to_all:
      return {bytes(all - all / members), bytes(all - all / members)};
    case Kind::all_gather:
      return {bytes(all * (members - 1)), bytes(all * (members - 1))};
    case Kind::broadcast:
      return member == of.root ? Payload{bytes(all * (members - 1)), 0} : Payload{0, bytes(all)};
  }
  return {};
}

Work Communicator::failed_post(const std::string& reason, ActionId action) {
  --stats_.ops;
  if (!failed_event_.state()) {
    failed_event_ = failed_.arm();
    failed_.fail(reason);
  }
  return {failed_event_, action};
}

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

Work Communicator::post(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                        ActionId action) {
  check_collective(collective, group_, in, out);
  ++stats_.ops;
  const char* name = name_of(collective.kind);
  return call_plugin(name, typeid(*this),
                     [&] { return posted(name, do_collective(collective, in, out, stream, action)); });
}

Work Communicator::all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                              ActionId action) {
  return post({Kind::all_reduce, in.dtype(), reduce, 0, in.elements()}, in, out, stream, action);
}

Work Communicator::reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                  ActionId action) {
  return post({Kind::reduce_scatter, in.dtype(), reduce, 0, in.elements()}, in, out, stream, action);
}

Work Communicator::all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  return post({Kind::all_gather, in.dtype(), Reduce::sum, 0, in.elements()}, in, out, stream, action);
}

Work Communicator::all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  return post({Kind::all_to_all, in.dtype(), Reduce::sum, 0, in.elements()}, in, out, stream, action);
}

Work Communicator::broadcast(const TensorView& view, int root, Stream& stream, ActionId action) {
  return post({Kind::broadcast, view.dtype(), Reduce::sum, root, view.elements()}, view, view, stream, action);
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
  return call_plugin("exchange", typeid(*this),
                     [&] { return posted("exchange", do_exchange(transfers, stream, action)); });
}

} // namespace triax
