#include "reduction.hpp"

#include <algorithm>
#include <cstring>

#include "reduce.hpp"

namespace comm_ucx {

Reduction::Reduction(Links& links, const Plan& plan)
    : Collective(links),
      plan_(plan),
      owners_(static_cast<std::size_t>(links.size())),
      sources_(static_cast<std::size_t>(links.size()), nullptr) {}

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

void Reduction::launch() noexcept {
  chunk_elements_ = static_cast<std::int64_t>(plan_.chunk_bytes) / width_;
  reduced_ = 0;
  std::fill(owners_.begin(), owners_.end(), Owner{});
  small_ = reduces_all() && small(plan_, static_cast<std::size_t>(signature_.elements * width_));
  if (small_) return launch_small();
  for (int k = 1; k < size(); ++k) {
    const int member = (index() + k) % size();
    receive_opening(member);
    for (std::int64_t chunk = with_opening(index()) ? 1 : 0;
         chunk < std::min<std::int64_t>(Plan::kDepth, chunks(index())); ++chunk) {
      receive_part(chunk, member);
    }
  }
}

void Reduction::launch_small() noexcept {
  const auto bytes = static_cast<std::size_t>(signature_.elements * width_);
  // Packed once: short messages in one piece leave sooner, and `in` may be written at once.
  std::byte* packed = lane_->packed();
  std::memcpy(packed, &signature_, sizeof(signature_));
  if (bytes > 0) std::memcpy(packed + sizeof(signature_), in_, bytes);
  for (int k = 1; k < size(); ++k) receive_opening((index() + k) % size());
  for (int k = 1; k < size(); ++k) {
    const int member = (index() + k) % size();
    send(request(Use::opening_out, 0, member), member, packed, sizeof(signature_) + bytes,
         tag(index(), Phase::opening));
  }
}

bool Reduction::run() noexcept {
  if (small_) return run_small();
  bool moved = true;
  while (moved && !links_.aborted()) {
    moved = reduce_next();
    for (int k = 1; k < size(); ++k) moved |= feed((index() + k) % size());
  }
  return finished();
}

bool Reduction::run_small() noexcept {
  if (reduced_ == 0) {
    if (!all_here(0)) return false;
    add(in_, out_, 0, signature_.elements);
    ++reduced_;
  }
  return under_way() == 0;
}

/// Whether the chunk's parts have come from all, and agree.
bool Reduction::all_here(std::int64_t chunk) noexcept {
  for (int member = 0; member < size(); ++member) {
    if (member == index()) continue;
    if (request(Use::part_in, chunk, member).open()) return false;
    if (chunk == 0 && request(Use::opening_in, 0, member).open()) return false;
  }
  for (int member = 0; member < size() && chunk == 0; ++member) {
    if (member != index() && !agrees(member)) return false;
  }
  return true;
}

void Reduction::add(const std::byte* mine, std::byte* to, std::int64_t chunk, std::int64_t elements) noexcept {
  if (elements == 0) return;
  for (int member = 0; member < size(); ++member) {
    sources_[static_cast<std::size_t>(member)] = member == index() ? mine : part(chunk, member);
  }
  reduce_members(dtype(), static_cast<Reduce>(signature_.reduce), sources_, to, elements);
}

void Reduction::receive_part(std::int64_t chunk, int member) noexcept {
  receive(request(Use::part_in, chunk, member), member, part(chunk, member), bytes_at(index(), chunk),
          tag(member, Phase::part, chunk));
}

bool Reduction::feed(int owner) noexcept {
  Owner& fed = owners_[static_cast<std::size_t>(owner)];
  const std::int64_t all = chunks(owner), expected = results(owner);
  bool moved = false;
  while (fed.results < std::min(fed.sent, expected) && !request(Use::result_in, fed.results, owner).open()) {
    ++fed.results;
    moved = true;
  }
  while (fed.sent < all && fed.sent < fed.results + Plan::kDepth && !request(Use::part_out, fed.sent, owner).open()) {
    const std::int64_t chunk = fed.sent++, begin = begin_of(owner, chunk);
    const std::size_t bytes = bytes_at(owner, chunk);
    moved = true;
    if (chunk < expected) {
      receive(request(Use::result_in, chunk, owner), owner, reduces_all() ? out_ + begin * width_ : nullptr,
              reduces_all() ? bytes : 0, tag(owner, Phase::result, chunk));
    }
    const bool together = chunk == 0 && with_opening(owner);
    if (chunk == 0) send_opening(owner, in_ + begin * width_, together ? bytes : 0);
    if (!together) {
      send(request(Use::part_out, chunk, owner), owner, in_ + begin * width_, bytes, tag(index(), Phase::part, chunk));
    }
  }
  return moved;
}

bool Reduction::reduce_next() noexcept {
  const std::int64_t chunk = reduced_;
  if (chunk == chunks(index()) || !all_here(chunk)) return false;
  for (int member = 0; member < size(); ++member) {
    if (member != index() && request(Use::result_out, chunk, member).open()) return false;
  }
  const std::int64_t begin = begin_of(index(), chunk);
  std::byte* to = out_ + (reduces_all() ? begin : begin - slice_begin(index())) * width_;
  const std::size_t bytes = bytes_at(index(), chunk);
  add(in_ + begin * width_, to, chunk, static_cast<std::int64_t>(bytes) / width_);
  ++reduced_;
  const bool more = chunk + Plan::kDepth < chunks(index());
  for (int k = 1; k < size(); ++k) {
    const int member = (index() + k) % size();
    if (more) receive_part(chunk + Plan::kDepth, member);
    if (chunk >= results(index())) continue;
    send(request(Use::result_out, chunk, member), member, to, reduces_all() ? bytes : 0,
         tag(index(), Phase::result, chunk));
  }
  return true;
}

bool Reduction::finished() const noexcept {
  if (under_way() > 0 || reduced_ < chunks(index())) return false;
  for (int member = 0; member < size(); ++member) {
    const Owner& fed = owners_[static_cast<std::size_t>(member)];
    if (member != index() && (fed.sent < chunks(member) || fed.results < results(member))) return false;
  }
  return true;
}

} // namespace comm_ucx
