// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/merge_table.hpp"

#include <algorithm>
#include <bit>

namespace triax::data {

namespace {

/// Up to this length, searching all pairs for each merge is faster than a heap.
constexpr std::size_t kShort = 64;

} // namespace

MergeTable::MergeTable(std::span<const Merge> merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2, 2 * merges.size()));
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::uint64_t key = key_of(merges[rank].left, merges[rank].right);
    std::size_t at = slot_of(key);
    while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
    slots_[at] = {key, {static_cast<std::uint32_t>(rank), merges[rank].result}};
  }
}

void Merger::merge(std::vector<std::int32_t>& ids) {
  if (ids.size() < 2) return;
  if (ids.size() <= kShort) {
    merge_short(ids);
  } else {
    merge_long(ids);
  }
}

void Merger::merge_short(std::vector<std::int32_t>& ids) {
  pairs_.resize(ids.size() - 1);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) pairs_[i] = table_->find(ids[i], ids[i + 1]);
  while (!pairs_.empty()) {
    const auto best = std::ranges::min_element(pairs_, {}, &MergeTable::Found::rank);
    if (best->rank == MergeTable::kNever) return;
    const auto at = static_cast<std::size_t>(best - pairs_.begin());
    ids[at] = best->result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    pairs_.erase(best);
    if (at > 0) pairs_[at - 1] = table_->find(ids[at - 1], ids[at]);
    if (at + 1 < ids.size()) pairs_[at] = table_->find(ids[at], ids[at + 1]);
  }
}

/// Uses a heap of candidates. A candidate that is out of date is detected when it is removed: one of its ids was merged
/// or has changed.
void Merger::merge_long(std::vector<std::int32_t>& ids) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  constexpr std::int32_t kGone = -1;
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto count = static_cast<std::uint32_t>(ids.size());
  heap_.clear();
  links_.resize(count);
  const auto consider = [&](std::uint32_t at) {
    if (at == kNone || links_[at].next == kNone) return;
    const MergeTable::Found found = table_->find(ids[at], ids[links_[at].next]);
    if (found.rank == MergeTable::kNever) return;
    heap_.push_back({found.rank, at, found.result});
    std::ranges::push_heap(heap_, later);
  };
  for (std::uint32_t i = 0; i < count; ++i) links_[i] = {i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1};
  for (std::uint32_t i = 0; i < count; ++i) consider(i);
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, later);
    const Candidate top = heap_.back();
    heap_.pop_back();
    const std::uint32_t next = ids[top.at] == kGone ? kNone : links_[top.at].next;
    if (next == kNone || table_->find(ids[top.at], ids[next]).rank != top.rank) continue;
    ids[top.at] = top.result;
    ids[next] = kGone;
    links_[top.at].next = links_[next].next;
    if (links_[next].next != kNone) links_[links_[next].next].previous = top.at;
    consider(links_[top.at].previous);
    consider(top.at);
  }
  std::erase(ids, kGone);
}

} // namespace triax::data
