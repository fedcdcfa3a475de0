// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <algorithm>
#include <cstring>

#include "triax/reduce.hpp"

namespace triax::p2p {

namespace {

/// Bytes for a small all_reduce: the message that is sent, or the result.
std::size_t small_bytes(const Plan& plan) {
  return Arena::aligned(sizeof(Signature) + plan.small_bytes);
}

} // namespace

Reduction::Reduction(PeerEndpoints& endpoints, const Plan& plan)
    : CollectiveCall(endpoints),
      plan_(plan),
      owners_(static_cast<std::size_t>(endpoints.size())),
      sources_(static_cast<std::size_t>(endpoints.size()), nullptr) {}

std::int64_t Reduction::chunks(int member) const noexcept {
  const std::int64_t elements = slice_begin(member + 1) - slice_begin(member);
  return std::max<std::int64_t>(1, (elements + chunk_elements_ - 1) / chunk_elements_);
}

std::int64_t Reduction::results(int owner) const noexcept {
  return reduces_all() ? chunks(owner) : std::max<std::int64_t>(0, chunks(owner) - Plan::kDepth);
}

std::int64_t Reduction::begin_of(int member, std::int64_t chunk) const noexcept {
  return std::min(slice_begin(member) + chunk * chunk_elements_, slice_begin(member + 1));
}

std::size_t Reduction::bytes_at(int member, std::int64_t chunk) const noexcept {
  return static_cast<std::size_t>((begin_of(member, chunk + 1) - begin_of(member, chunk)) * width_);
}

CollectiveCall::StagingNeed Reduction::staging_need(const Collective& of) const noexcept {
  if (is_small(plan_, of)) return {false, 2 * small_bytes(plan_)};
  const auto others = static_cast<std::size_t>(size() - 1);
  const std::size_t chunk = Arena::aligned(plan_.chunk_bytes);
  if (endpoints_.transport().direct() && of.reduce == Reduce::sum) {
    return {true, (Plan::kDepth * others + 2) * chunk}; // the others' parts, and sums, which may be twice as wide
  }
  return {false, Plan::kDepth * (2 * others + 1) * chunk};
}

/// Order: parts, then results, each [chunk][other member]; then the chunks that this member reduces.
std::byte* Reduction::buffer(Buffer buffer, std::int64_t chunk, int member) const noexcept {
  const int others = size() - 1, turn = static_cast<int>(chunk % Plan::kDepth);
  int number = 2 * Plan::kDepth * others + turn;
  if (buffer != Buffer::mine) {
    number = (static_cast<int>(buffer) * Plan::kDepth + turn) * others + (member < rank() ? member : member - 1);
  }
  return buffers_ + static_cast<std::size_t>(number) * Arena::aligned(plan_.chunk_bytes);
}

void Reduction::fetch_parts(int owner) noexcept {
  Owner& fed = owners_[static_cast<std::size_t>(owner)];
  while (fed.fetched < chunks(owner) && fed.fetched < fed.sent + Plan::kDepth) {
    const std::int64_t chunk = fed.fetched;
    // The part that used this buffer before must have left; the first one may have left with the opening.
    if (request(Use::part_out, chunk, owner).open()) return;
    if (chunk == Plan::kDepth && request(Use::opening_out, 0, owner).open()) return;
    ++fed.fetched;
    Event& fetch = fed.fetch[chunk % Plan::kDepth] = {};
    download(fetch, buffer(Buffer::part, chunk, owner), in_ + begin_of(owner, chunk) * width_, bytes_at(owner, chunk));
  }
}

bool Reduction::may_send(int owner) noexcept {
  Owner& fed = owners_[static_cast<std::size_t>(owner)];
  const std::int64_t turn = fed.sent % Plan::kDepth;
  return fed.sent < fed.fetched && arrived(fed.fetch[turn]) && arrived(fed.store[turn]);
}

void Reduction::store_result(int owner) noexcept {
  if (!reduces_all()) return; // its result is empty
  Owner& fed = owners_[static_cast<std::size_t>(owner)];
  const std::int64_t chunk = fed.results;
  Event& store = fed.store[chunk % Plan::kDepth] = {};
  upload(store, out_ + begin_of(owner, chunk) * width_, buffer(Buffer::result, chunk, owner), bytes_at(owner, chunk));
}

void Reduction::fetch_mine() noexcept {
  Owner& own = owners_[static_cast<std::size_t>(rank())];
  while (own.fetched < chunks(rank()) && own.fetched < reduced_ + Plan::kDepth) {
    const std::int64_t chunk = own.fetched, turn = chunk % Plan::kDepth;
    // The result that used this buffer before must have left, and be on the device.
    if (!arrived(own.store[turn])) return;
    for (int member = 0; member < size(); ++member) {
      if (member != rank() && request(Use::result_out, chunk, member).open()) return;
    }
    ++own.fetched;
    Event& fetch = own.fetch[turn] = {};
    download(fetch, buffer(Buffer::mine, chunk), in_ + begin_of(rank(), chunk) * width_, bytes_at(rank(), chunk));
  }
}

void Reduction::launch() noexcept {
  chunk_elements_ = static_cast<std::int64_t>(plan_.chunk_bytes) / width_;
  reduced_ = 0;
  adding_ = -1;
  std::fill(owners_.begin(), owners_.end(), Owner{});
  small_ = is_small(plan_, of());
  if (small_) return launch_small();
  for (int k = 1; k < size(); ++k) {
    const int member = (rank() + k) % size();
    receive_opening(member);
    for (std::int64_t chunk = with_opening(rank()) ? 1 : 0;
         chunk < std::min<std::int64_t>(Plan::kDepth, chunks(rank())); ++chunk) {
      receive_part(chunk, member);
    }
  }
}

void Reduction::launch_small() noexcept {
  const auto bytes = static_cast<std::size_t>(of().elements * width_);
  for (int k = 1; k < size(); ++k) receive_opening((rank() + k) % size());
  if (staged()) return download(owners_[0].fetch[0], buffers_ + sizeof(signature_), in_, bytes);
  if (bytes > 0) std::memcpy(scratch_->packed() + sizeof(signature_), in_, bytes);
  send_small(scratch_->packed());
}

/// Packs signature and data into one buffer: a short contiguous message leaves sooner, and `in` may then be written.
void Reduction::send_small(std::byte* packed) noexcept {
  const auto bytes = static_cast<std::size_t>(of().elements * width_);
  std::memcpy(packed, &signature_, sizeof(signature_));
  for (int k = 1; k < size(); ++k) {
    const int member = (rank() + k) % size();
    send(request(Use::opening_out, 0, member), member, packed, sizeof(signature_) + bytes, tag(rank(), Phase::opening));
  }
}

bool Reduction::run() noexcept {
  if (small_) return run_small();
  bool moved = true;
  while (moved && !endpoints_.aborted()) {
    moved = reduce_next();
    for (int k = 1; k < size(); ++k) moved |= feed((rank() + k) % size());
  }
  return finished();
}

bool Reduction::run_small() noexcept {
  if (staged()) return run_small_staged();
  if (reduced_ == 0) {
    if (!all_here(0)) return false;
    add(in_, out_, 0, of().elements);
    ++reduced_;
  }
  return in_progress() == 0;
}

bool Reduction::run_small_staged() noexcept {
  Owner& own = owners_[0];
  if (own.sent == 0) {
    if (!arrived(own.fetch[0])) return false;
    send_small(buffers_);
    ++own.sent;
  }
  if (reduced_ == 0) {
    if (!all_here(0)) return false;
    std::byte* sums = buffers_ + small_bytes(plan_);
    add(buffers_ + sizeof(signature_), sums, 0, of().elements);
    upload(own.store[0], out_, sums, static_cast<std::size_t>(of().elements * width_));
    ++reduced_;
  }
  return copies_ended() && arrived(own.store[0]) && in_progress() == 0;
}

/// True if the parts of the chunk have arrived from all members, and their signatures agree.
bool Reduction::all_here(std::int64_t chunk) noexcept {
  for (int member = 0; member < size(); ++member) {
    if (member == rank()) continue;
    if (request(Use::part_in, chunk, member).open()) return false;
    if (chunk == 0 && request(Use::opening_in, 0, member).open()) return false;
  }
  for (int member = 0; member < size() && chunk == 0; ++member) {
    if (member != rank() && !agrees(member)) return false;
  }
  return true;
}

std::byte* Reduction::part_buffer(std::int64_t chunk, int member) noexcept {
  return direct() ? buffer(Buffer::part, chunk, member) : part(chunk, member);
}

void Reduction::gather(const std::byte* mine, std::int64_t chunk) noexcept {
  for (int member = 0; member < size(); ++member) {
    sources_[static_cast<std::size_t>(member)] = member == rank() ? mine : part_buffer(chunk, member);
  }
}

void Reduction::add(const std::byte* mine, std::byte* to, std::int64_t chunk, std::int64_t elements) noexcept {
  if (elements == 0) return;
  gather(mine, chunk);
  reduce_members(of().dtype, of().reduce, sources_, to, elements);
}

void Reduction::receive_part(std::int64_t chunk, int member) noexcept {
  receive(request(Use::part_in, chunk, member), member, part_buffer(chunk, member), bytes_at(rank(), chunk),
          tag(member, Phase::part, chunk), side());
}

bool Reduction::feed(int owner) noexcept {
  Owner& fed = owners_[static_cast<std::size_t>(owner)];
  const std::int64_t all = chunks(owner), expected = results(owner);
  bool moved = false;
  while (fed.results < std::min(fed.sent, expected) && !request(Use::result_in, fed.results, owner).open()) {
    if (staged()) store_result(owner);
    ++fed.results;
    moved = true;
  }
  if (staged()) fetch_parts(owner);
  while (fed.sent < all && fed.sent < fed.results + Plan::kDepth && !request(Use::part_out, fed.sent, owner).open() &&
         (!staged() || may_send(owner))) {
    const std::int64_t chunk = fed.sent++, begin = begin_of(owner, chunk);
    const std::size_t bytes = bytes_at(owner, chunk);
    const std::byte* from = staged() ? buffer(Buffer::part, chunk, owner) : in_ + begin * width_;
    std::byte* to = staged() ? buffer(Buffer::result, chunk, owner) : out_ + begin * width_;
    moved = true;
    if (chunk < expected) {
      receive(request(Use::result_in, chunk, owner), owner, reduces_all() ? to : nullptr, reduces_all() ? bytes : 0,
              tag(owner, Phase::result, chunk), result_side());
    }
    const bool together = chunk == 0 && with_opening(owner);
    if (chunk == 0) send_opening(owner, from, together ? bytes : 0);
    if (!together) {
      send(request(Use::part_out, chunk, owner), owner, from, bytes, tag(rank(), Phase::part, chunk), side());
    }
  }
  return moved;
}

bool Reduction::reduce_next() noexcept {
  const std::int64_t chunk = reduced_;
  if (staged()) fetch_mine();
  if (chunk == chunks(rank()) || !all_here(chunk)) return false;
  for (int member = 0; member < size(); ++member) {
    if (member != rank() && request(Use::result_out, chunk, member).open()) return false;
  }
  const std::int64_t begin = begin_of(rank(), chunk);
  std::byte* out = out_ + (reduces_all() ? begin : begin - slice_begin(rank())) * width_;
  std::byte* to = staged() ? buffer(Buffer::mine, chunk) : out;
  const std::size_t bytes = bytes_at(rank(), chunk);
  if (!added(chunk, out, static_cast<std::int64_t>(bytes) / width_)) return false;
  ++reduced_;
  const bool more = chunk + Plan::kDepth < chunks(rank());
  for (int k = 1; k < size(); ++k) {
    const int member = (rank() + k) % size();
    if (more) receive_part(chunk + Plan::kDepth, member);
    if (chunk >= results(rank())) continue;
    send(request(Use::result_out, chunk, member), member, to, reduces_all() ? bytes : 0,
         tag(rank(), Phase::result, chunk), result_side());
  }
  return true;
}

bool Reduction::added(std::int64_t chunk, std::byte* out, std::int64_t elements) noexcept {
  const std::byte* mine = in_ + begin_of(rank(), chunk) * width_;
  if (!staged() && !direct()) {
    add(mine, out, chunk, elements);
    return true;
  }
  Owner& own = owners_[static_cast<std::size_t>(rank())];
  Event& fetch = own.fetch[chunk % Plan::kDepth];
  if (staged()) {
    if (chunk >= own.fetched || !arrived(fetch)) return false;
    std::byte* to = buffer(Buffer::mine, chunk);
    add(to, to, chunk, elements);
    Event& store = own.store[chunk % Plan::kDepth] = {};
    upload(store, out, to, static_cast<std::size_t>(elements * width_));
    return true;
  }
  if (adding_ < chunk) {
    adding_ = chunk;
    gather(mine, chunk);
    std::byte* sums =
        buffers_ + static_cast<std::size_t>(Plan::kDepth * (size() - 1)) * Arena::aligned(plan_.chunk_bytes);
    sum_on_device(fetch, of().dtype, sources_, sums, out, elements);
  }
  return arrived(fetch);
}

bool Reduction::finished() noexcept {
  if (in_progress() > 0 || reduced_ < chunks(rank())) return false;
  for (int member = 0; member < size(); ++member) {
    const Owner& fed = owners_[static_cast<std::size_t>(member)];
    if (member != rank() && (fed.sent < chunks(member) || fed.results < results(member))) return false;
  }
  return copies_ended();
}

} // namespace triax::p2p
