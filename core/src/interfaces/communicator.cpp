// SPDX-License-Identifier: Apache-2.0
// The public calls of a communicator: they check arguments, count calls, and call the backend.
#include "triax/communicator.hpp"

#include <functional>

#include "triax/rank_activity.hpp"

namespace triax {

namespace {

using Kind = Collective::Kind;

/// Checks one call. Its errors name the call, the group and the views.
class Check {
 public:
  Check(std::string_view call, const Group& group) : call_(call), group_(group) {}

  void contiguous(std::string_view role, const TensorView& view) const {
    if (!view.contiguous()) fail(text("{} {} is not contiguous", role, to_text(view)), "copy it into one first");
  }
  void same_type(const TensorView& in, const TensorView& out) const {
    if (in.dtype() != out.dtype()) fail(text("in {} and out {} differ in type", to_text(in), to_text(out)));
  }
  void matches_collective(const Collective& collective, const TensorView& in) const {
    if (collective.dtype != in.dtype() || collective.elements != in.elements())
      fail(text("in is {}, but the collective is {}", to_text(in), to_text(collective)), "describe the elements of in");
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
  void divisible(std::string_view role, const TensorView& view) const {
    if (view.elements() % group_.size() == 0) return;
    fail(text("{} {} has {} elements, which is not divisible by the group size {}", role, to_text(view),
              view.elements(), group_.size()),
         "pad the view to a multiple of the group size");
  }
  /// The views must not overlap, unless the call is in place: `out` then begins exactly `offset` bytes after `in`. An
  /// all_gather passes its views in the opposite order. With any other overlap, the call would read elements that it
  /// has overwritten.
  void no_overlap_or_in_place(const TensorView& in, const TensorView& out, std::size_t offset) const {
    const auto* from = in.as<const std::byte>();
    const auto* to = out.as<const std::byte>();
    if (!from || !to) return; // planned views have no data
    const bool no_overlap = std::less_equal<>{}(from + in.bytes(), to) || std::less_equal<>{}(to + out.bytes(), from);
    if (no_overlap || to == from + offset) return;
    fail(text("in and out overlap: {} and {}", to_text(in), to_text(out)),
         "use views that do not overlap, or are exactly in place");
  }
  void no_overlap(const TensorView& in, const TensorView& out) const { no_overlap_or_in_place(in, out, in.bytes()); }
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

void check_collective(const Collective& collective, const Group& group, const TensorView& in, const TensorView& out) {
  const Check check(name_of(collective.kind), group);
  const auto own_index = static_cast<std::size_t>(group.group_rank);
  check.contiguous("in", in);
  check.contiguous("out", out);
  check.same_type(in, out);
  check.matches_collective(collective, in);
  if (collective.reduces()) check.reducible(in);
  switch (collective.kind) {
    case Kind::all_reduce:
      check.elements("out", out, in.elements());
      return check.no_overlap_or_in_place(in, out, 0);
    case Kind::reduce_scatter:
      check.elements("in", in, out.elements() * group.size());
      return check.no_overlap_or_in_place(in, out, own_index * out.bytes());
    case Kind::all_gather:
      check.elements("out", out, in.elements() * group.size());
      return check.no_overlap_or_in_place(out, in, own_index * in.bytes());
    case Kind::all_to_all:
      check.divisible("in", in);
      check.elements("out", out, in.elements());
      return check.no_overlap(in, out);
    case Kind::broadcast:
      check.same_view(in, out);
      return check.member("root", collective.root);
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
  return "unknown collective"; // a kind that another rank sent and this version does not know
}

std::string to_text(const Collective& collective) {
  std::string out = text("{} of {} {}", name_of(collective.kind), collective.elements, name_of(collective.dtype));
  if (collective.kind == Kind::broadcast) out += text(" from member {}", collective.root);
  if (collective.reduces()) out += collective.reduce == Reduce::sum ? " (sum)" : " (max)";
  return out;
}

Payload Communicator::payload_of(const Collective& collective, int member) const noexcept {
  const std::int64_t members = size(), all = collective.elements;
  const std::int64_t own = all * (member + 1) / members - all * member / members;
  const auto bytes = [&collective](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * bytes_of(collective.dtype);
  };
  switch (collective.kind) {
    case Kind::all_reduce:
      // Sent: the parts of `in` that other members reduce, then this member's result to every other member. Received:
      // the same number of bytes.
      return {bytes(all - own + own * (members - 1)), bytes(all - own + own * (members - 1))};
    case Kind::reduce_scatter:
    case Kind::all_to_all:
      return {bytes(all - all / members), bytes(all - all / members)};
    case Kind::all_gather:
      return {bytes(all * (members - 1)), bytes(all * (members - 1))};
    case Kind::broadcast:
      return member == collective.root ? Payload{bytes(all * (members - 1)), 0} : Payload{0, bytes(all)};
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

Work Communicator::record_post(const char* name, const Work& work) noexcept {
  last_name_.store(nullptr, std::memory_order_relaxed); // a thread that reads during this update sees no pending call
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
                     [&] { return record_post(name, do_collective(collective, in, out, stream, action)); });
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
                     [&] { return record_post("exchange", do_exchange(transfers, stream, action)); });
}

} // namespace triax
