// SPDX-License-Identifier: Apache-2.0
#include "nccl_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "triax/poll_pause.hpp"
#include "triax/rank_activity.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::comm_nccl {

namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 5ms;            // between polls of NCCL's errors
constexpr auto kQuiet = 200ms;         // without a post, after which a rank polls the group status
constexpr auto kMaxQuiet = 2s;         // longest time between these polls
constexpr double kFinalizeTimeout = 2; // seconds for the other members to end the group too

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u8:
      return ncclUint8;
  }
  throw Error("no such type");
}

ncclRedOp_t op_of(Reduce reduce) {
  return reduce == Reduce::sum ? ncclSum : ncclMax;
}

std::size_t count_of(const TensorView& view) {
  return static_cast<std::size_t>(view.elements());
}

using Kind = Collective::Kind;

/// The function of NCCL, for messages.
const char* nccl_name(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "ncclAllReduce";
    case Kind::reduce_scatter:
      return "ncclReduceScatter";
    case Kind::all_gather:
      return "ncclAllGather";
    case Kind::broadcast:
      return "ncclBroadcast";
    case Kind::all_to_all:
      break;
  }
  return "ncclGroupEnd";
}

} // namespace

NcclCommunicator::NcclCommunicator(const NcclApi& api, Device& device, Store& store, const Group& group,
                                   GroupHandles handles, bool registers)
    : Communicator(group),
      api_(api),
      device_(device),
      registers_(registers),
      handles_(std::move(handles)),
      group_status_(store, handles_.key, this->group()),
      posted_(group.size()),
      last_post_(Clock::now()),
      status_interval_(kQuiet) {
  device_.add_source(*this);
}

NcclCommunicator::~NcclCommunicator() {
  device_.remove_source(*this);
  try {
    if (!ended() && busy())
      end(text("{} left group {} before its calls were complete", rank_text(rank()), group().id), true);
    if (!ended()) group_status_.announce_left(posted_);
  } catch (const std::exception&) { // the store is gone, so no member needs the message
  }
  send_pending_status();
  const Deadline deadline = device_.abort_flag().raised() ? Clock::now() : deadline_in(kFinalizeTimeout);
  for_handles([&](Handle& handle) { handle.finish(deadline); });
}

template <class Body>
void NcclCommunicator::for_handles(Body body) {
  for (const GroupHandles::EdgeHandle& edge : handles_.edges) body(*edge.handle);
  body(*handles_.group);
}

bool NcclCommunicator::busy() {
  bool any = false;
  for_handles([&](Handle& handle) { any |= handle.busy(); });
  return any;
}

void* NcclCommunicator::extension(std::string_view id) noexcept {
  return registers_ && id == Registration::kExtension ? static_cast<Registration*>(this) : nullptr;
}

void NcclCommunicator::add(void* data, std::size_t bytes) {
  for_handles([&](Handle& handle) { handle.register_block(data, bytes); });
}

std::string NcclCommunicator::rank_text(int member) const {
  return text("rank {}", group().ranks[static_cast<std::size_t>(member)]);
}

std::string NcclCommunicator::others_text() const {
  std::string list;
  for (int member = 0; member < size(); ++member)
    if (member != rank())
      list += (list.empty() ? "" : ", ") + std::to_string(group().ranks[static_cast<std::size_t>(member)]);
  return list;
}

// Posts.

auto NcclCommunicator::poller(const char* call) {
  return [this, call, until = WaitDeadline(deadline_in(device_.default_timeout())), polled = PolledWait(),
          pause = PollPause()]() mutable {
    device_.abort_flag().check();
    polled.poll();
    if (until.passed())
      throw Error(text("{} timed out; the other members are rank {}", call, others_text()),
                  text("group {}", group().id),
                  "another rank may be slow or lost; train.stall_timeout_s sets the timeout");
    const bool progressed = device_.progress();
    if (progressed) polled.advance();
    pause.after_poll(progressed);
  };
}

Work NcclCommunicator::posted(Payload bytes, Stream& stream, ActionId action) {
  count(bytes);
  last_post_ = Clock::now();
  return {stream.record(), action};
}

Work NcclCommunicator::refused(ActionId action) {
  send_pending_status();
  return failed_post(ended_.reason(), action);
}

template <class Calls>
Work NcclCommunicator::post_set(Handle& handle, Payload bytes, Stream& stream, ActionId action, Calls calls) {
  const cudaStream_t native = api_.launch_stream(stream);
  const auto calls_on_stream = [&](ncclComm_t comm) { return calls(comm, native); };
  if (!handle.launch_set(native, calls_on_stream, poller("ncclGroupEnd"))) return refused(action);
  return posted(bytes, stream, action);
}

Work NcclCommunicator::do_collective(const Collective& collective, const TensorView& in, const TensorView& out,
                                     Stream& stream, ActionId action) {
  if (ended()) return refused(action);
  ++posted_.collectives; // before the launch, which may poll the group status: it then shows a peer that has left
  const Payload bytes = payload_of(collective);
  if (collective.kind == Kind::all_to_all) {
    if (in.elements() == 0) return posted({}, stream, action);
    return post_set(group_handle(), bytes, stream, action,
                    [&](ncclComm_t comm, cudaStream_t native) { return launch_all_to_all(in, out, comm, native); });
  }
  const char* name = nccl_name(collective.kind);
  const cudaStream_t native = api_.launch_stream(stream);
  const auto call = [&](ncclComm_t comm) { return launch(collective, in, out, comm, native); };
  // Without elements nothing moves, on any member.
  if (in.elements() > 0 && !group_handle().launch(name, native, call, poller(name))) return refused(action);
  return posted(bytes, stream, action);
}

ncclResult_t NcclCommunicator::launch(const Collective& of, const TensorView& in, const TensorView& out,
                                      ncclComm_t comm, cudaStream_t native) {
  const ncclDataType_t type = type_of(of.dtype);
  switch (of.kind) {
    case Kind::all_reduce:
      return api_.all_reduce(in.data(), out.data(), count_of(in), type, op_of(of.reduce), comm, native);
    case Kind::reduce_scatter:
      return api_.reduce_scatter(in.data(), out.data(), count_of(out), type, op_of(of.reduce), comm, native);
    case Kind::all_gather:
      return api_.all_gather(in.data(), out.data(), count_of(in), type, comm, native);
    case Kind::broadcast:
      return api_.broadcast(in.data(), out.data(), count_of(in), type, of.root, comm, native);
    case Kind::all_to_all:
      break; // a set of sends and receives
  }
  return ncclInvalidArgument;
}

/// Sends and receives, including one to itself: NCCL's own all-to-all is newer than the oldest NCCL allowed.
ncclResult_t NcclCommunicator::launch_all_to_all(const TensorView& in, const TensorView& out, ncclComm_t comm,
                                                 cudaStream_t native) {
  const std::size_t part = count_of(in) / static_cast<std::size_t>(size()), width = part * bytes_of(in.dtype());
  const ncclDataType_t type = type_of(in.dtype());
  ncclResult_t result = ncclSuccess;
  for (int peer = 0; peer < size() && goes_on(result); ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * width;
    result = api_.send(in.as<std::byte>() + offset, part, type, peer, comm, native);
    if (goes_on(result)) result = api_.recv(out.as<std::byte>() + offset, part, type, peer, comm, native);
  }
  return result;
}

ncclResult_t NcclCommunicator::transfer(const Transfer& one, int peer, ncclComm_t comm, cudaStream_t native) {
  const TensorView& view = one.view;
  if (view.elements() == 0) return ncclSuccess; // empty on both sides
  return one.direction == Direction::send
             ? api_.send(view.data(), count_of(view), type_of(view.dtype()), peer, comm, native)
             : api_.recv(view.data(), count_of(view), type_of(view.dtype()), peer, comm, native);
}

const GroupHandles::EdgeHandle* NcclCommunicator::edge_of_all(std::span<const Transfer> transfers) const {
  if (handles_.edges.empty() || transfers.empty()) return nullptr;
  const Transfer& first = transfers.front();
  for (const Transfer& other : transfers)
    if (other.peer != first.peer || other.direction != first.direction) return nullptr;
  const Edge along = first.direction == Direction::send ? Edge{rank(), first.peer} : Edge{first.peer, rank()};
  const auto found = std::ranges::find(handles_.edges, along, &GroupHandles::EdgeHandle::edge);
  return found == handles_.edges.end() ? nullptr : &*found;
}

Work NcclCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  if (ended()) return refused(action);
  Payload bytes;
  for (const Transfer& one : transfers) {
    if (one.channel != 0)
      throw Error(text("exchange: channel {}: NCCL has no channels; transfers between two ranks match in the order in "
                       "which they are posted",
                       one.channel),
                  text("group {}", group().id), "use channel 0, or another communicator");
    const auto peer = static_cast<std::size_t>(one.peer);
    const bool sends = one.direction == Direction::send;
    ++(sends ? posted_.sends : posted_.receives)[peer];
    (sends ? bytes.out : bytes.in) += one.view.bytes();
  }
  if (bytes.out + bytes.in == 0) return posted(bytes, stream, action);
  if (const GroupHandles::EdgeHandle* edge = edge_of_all(transfers)) {
    const int peer = edge->edge.from == rank() ? kReceiver : kSender;
    return post_set(*edge->handle, bytes, stream, action, [&](ncclComm_t comm, cudaStream_t native) {
      ncclResult_t result = ncclSuccess;
      for (const Transfer& one : transfers)
        if (goes_on(result)) result = transfer(one, peer, comm, native);
      return result;
    });
  }
  return post_set(group_handle(), bytes, stream, action, [&](ncclComm_t comm, cudaStream_t native) {
    ncclResult_t result = ncclSuccess;
    for (const Transfer& one : transfers)
      if (goes_on(result)) result = transfer(one, one.peer, comm, native);
    return result;
  });
}

void NcclCommunicator::barrier(Deadline deadline) {
  const auto check = [this] {
    if (!ended()) progress();
    if (ended()) {
      send_pending_status();
      throw Error(ended_.reason(), text("barrier of group {}", group().id));
    }
    device_.abort_flag().check();
    device_.progress();
  };
  check();
  group_status_.barrier(++barriers_, deadline, check);
}

// The end of the group, and its message to the other members.

void NcclCommunicator::abort(std::string_view why) noexcept {
  end(text("{} aborted group {}: {}", rank_text(rank()), group().id, why), true);
}

void NcclCommunicator::end(const std::string& reason, bool announce) noexcept {
  if (!announce) announced_ = true;
  if (!ended_.raise(reason)) return;
  device_.abort_flag().raise(reason); // before the output of an aborted kernel can be taken for a result
  for_handles([](Handle& handle) { handle.abort(); }); // start all before any wait (handle.hpp)
}

/// Called by the main thread only, because abort() may run on a thread that must not wait for the store.
void NcclCommunicator::send_pending_status() noexcept {
  if (!ended() || announced_.exchange(true)) return;
  try {
    group_status_.announce_abort(ended_.reason());
  } catch (const std::exception&) { // the store is gone, so no member needs the message
    return;
  }
}

void NcclCommunicator::progress() noexcept {
  if (ended()) return send_pending_status();
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLook;
  try {
    look_for_errors();
    if (now - last_post_ < kQuiet) {
      status_interval_ = kQuiet;
    } else if (now >= next_status_poll_) {
      poll_status();
      next_status_poll_ = now + status_interval_;
      status_interval_ = std::min<Clock::duration>(2 * status_interval_, kMaxQuiet);
    }
  } catch (const std::exception&) { // the store failed; the run itself detects a lost store
    next_status_poll_ = now + kMaxQuiet;
  }
}

void NcclCommunicator::look_for_errors() {
  for_handles([this](Handle& handle) {
    std::string why;
    const ncclResult_t state = handle.state(why);
    if (state == ncclSuccess || state == ncclInProgress) return;
    end(text("{}: NCCL failed on {}, in a group with rank {}: {}; {}", handle.name(), rank_text(rank()), others_text(),
             why, hint_for(state)),
        true);
  });
}

void NcclCommunicator::poll_status() {
  if (group_status_.changed())
    if (const auto why = group_status_.aborted()) return end(*why, false);
  for (int member = 0; member < size(); ++member) {
    const std::optional<Posted>& left = group_status_.left()[static_cast<std::size_t>(member)];
    if (!left || !waits_for(member, *left)) continue;
    return end(text("{} left group {} while {} waits for it", rank_text(member), group().id, rank_text(rank())), true);
  }
}

bool NcclCommunicator::waits_for(int member, const Posted& theirs) const {
  const auto peer = static_cast<std::size_t>(member), own = static_cast<std::size_t>(rank());
  return posted_.collectives > theirs.collectives || posted_.sends[peer] > theirs.receives[own] ||
         posted_.receives[peer] > theirs.sends[own];
}

} // namespace triax::comm_nccl
