// SPDX-License-Identifier: Apache-2.0
#include "control/rejections.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "triax/text.hpp"

namespace triax::control {

namespace {

constexpr std::size_t kMaxReason = 200; // bytes
constexpr std::size_t kMaxShown = 4;    // kinds in a message

std::string to_text(const Rejection& kind) {
  std::string out = kind.rank < 0 ? kind.address : text("rank {} from {}", kind.rank, kind.address);
  out += ": " + kind.reason;
  if (kind.count > 1) out += text(" ({} times)", kind.count);
  return out;
}

} // namespace

void Rejections::add(int rank, std::string_view address, std::string_view reason) {
  ++total;
  const std::string shown = printable(reason.substr(0, kMaxReason));
  const auto same = std::ranges::find_if(kinds, [&](const Rejection& kind) {
    return kind.rank == rank && kind.address == address && kind.reason == shown;
  });
  if (same != kinds.end()) {
    ++same->count;
  } else if (kinds.size() < kMaxKinds) {
    kinds.push_back({rank, std::string(address), shown, 1});
  }
}

std::string to_text(const Rejections& rejections) {
  if (rejections.total == 0) return {};
  std::string out = text("rejected {} connection{}: ", rejections.total, rejections.total == 1 ? "" : "s");
  std::int64_t hidden = rejections.total;
  for (std::size_t i = 0; i < std::min(kMaxShown, rejections.kinds.size()); ++i) {
    out += (i > 0 ? "; " : "") + to_text(rejections.kinds[i]);
    hidden -= rejections.kinds[i].count;
  }
  return hidden > 0 ? out + text("; and {} more", hidden) : out;
}

} // namespace triax::control
