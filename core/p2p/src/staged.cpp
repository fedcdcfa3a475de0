// SPDX-License-Identifier: Apache-2.0
// How a call moves staged device memory: the pieces of flows, and copies, whose completion is polled.
#include "call.hpp"
#include "staged_message.hpp"
#include "staging.hpp"
#include "triax/error.hpp"

namespace triax::p2p {

template <class Copy>
bool Call::begin_copy(Event& event, Copy copy) noexcept {
  try {
    event = copy(*endpoints_.transport().staging());
  } catch (const std::exception& error) {
    endpoints_.abort(
        text("group {}: rank {}: {}", endpoints_.id(), endpoints_.world_rank(endpoints_.rank()), error.what()));
    return false;
  }
  if (copying_) return true;
  copying_ = true;
  endpoints_.transport().begin_copying();
  return true;
}

void Call::download(Event& event, std::byte* buffer, const std::byte* device, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (begin_copy(event, [&](Staging& staging) { return staging.download(buffer, device, bytes); }))
    last_download_ = event; // else the previous one is still the last
}

void Call::upload(Event& event, std::byte* device, const std::byte* buffer, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (begin_copy(event, [&](Staging& staging) { return staging.upload(device, buffer, bytes); }))
    last_upload_ = event; // else the previous one is still the last
}

void Call::copy_on_device(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  begin_copy(last_upload_, [&](Staging& staging) { return staging.copy(to, from, bytes); });
}

void Call::sum_on_device(Event& event, DType dtype, std::span<const std::byte* const> sources, std::byte* sums,
                         std::byte* out, std::int64_t elements) noexcept {
  event = {};
  if (elements == 0) return;
  if (begin_copy(event, [&](Staging& staging) { return staging.sum(dtype, sources, sums, out, elements); }))
    last_upload_ = event; // else the previous one is still the last
}

bool Call::arrived(const Event& copy) noexcept {
  if (!copy.fired()) return false;
  if (const char* why = copy.failure()) {
    endpoints_.abort(text("group {}: rank {}: {}", endpoints_.id(), endpoints_.world_rank(endpoints_.rank()), why));
    return false;
  }
  return true;
}

/// Copies of one direction complete in order; after a device error, later copies fail too.
bool Call::copies_ended() noexcept {
  if (!copying_) return true;
  if (!last_download_.fired() || !last_upload_.fired()) return false;
  copying_ = false;
  endpoints_.transport().end_copying();
  arrived(last_download_) && arrived(last_upload_); // a failed copy aborts
  return true;
}

bool Call::push(StagedMessage& flow) noexcept {
  for (bool moved = true; moved && !endpoints_.aborted();) {
    moved = false;
    // The piece that used this buffer before must have left.
    if (flow.copies < flow.pieces() && flow.copies < flow.posts + StagedMessage::kBuffers && !flow.open(flow.copies)) {
      const std::int64_t next = flow.copies++;
      flow.copy_of(next) = {};
      download(flow.copy_of(next), flow.buffer(next), flow.device + flow.begin_of(next), flow.bytes_of(next));
      moved = true;
    }
    if (flow.posts < flow.copies && arrived(flow.copy_of(flow.posts))) {
      const std::int64_t next = flow.posts++;
      for (int member = flow.first; member <= flow.last; ++member) {
        if (member == flow.own) continue;
        send(flow.request(next, member), member, flow.buffer(next), flow.bytes_of(next), flow.tag);
      }
      moved = true;
    }
  }
  return flow.posts == flow.pieces();
}

bool Call::pull(StagedMessage& flow) noexcept {
  for (bool moved = true; moved && !endpoints_.aborted();) {
    moved = false;
    // The piece that used this buffer before must be on the device.
    if (flow.posts < flow.pieces() && flow.posts < flow.copies + StagedMessage::kBuffers &&
        arrived(flow.copy_of(flow.posts))) {
      const std::int64_t next = flow.posts++;
      receive(flow.request(next, flow.first), flow.first, flow.buffer(next), flow.bytes_of(next), flow.tag);
      moved = true;
    }
    if (flow.copies < flow.posts && !flow.open(flow.copies) && whole(flow)) {
      const std::int64_t next = flow.copies++;
      flow.copy_of(next) = {};
      upload(flow.copy_of(next), flow.device + flow.begin_of(next), flow.buffer(next), flow.bytes_of(next));
      moved = true;
    }
  }
  return flow.copies == flow.pieces();
}

bool Call::whole(StagedMessage& flow) noexcept {
  const Request& received = flow.request(flow.copies, flow.first);
  if (received.status == Status::ok && received.length == flow.bytes_of(flow.copies)) return true;
  other_length(flow, flow.begin_of(flow.copies) + received.length, received.length == flow.piece);
  return false;
}

} // namespace triax::p2p
