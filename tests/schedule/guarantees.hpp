// SPDX-License-Identifier: Apache-2.0
// Guarantees of backends, for tests that must pass with all of them.
//
// Threads: pure functions. Ownership: values. Blocking: never.
#pragma once

#include <string>
#include <vector>

#include "schedule/assumptions.hpp"
#include "triax/text.hpp"

namespace triax::test {

inline constexpr schedule::Guarantee kLoosest{CommTraits::Order::tagged, CommTraits::Send::buffered,
                                              CommTraits::Post::nonblocking};

/// Each combination of guarantees for all communication, and then different backends per class.
inline std::vector<schedule::Assumptions> all_assumptions() {
  std::vector<schedule::Assumptions> out;
  for (const auto order : {CommTraits::Order::serial, CommTraits::Order::channel, CommTraits::Order::tagged})
    for (const auto send : {CommTraits::Send::rendezvous, CommTraits::Send::buffered})
      for (const auto post : {CommTraits::Post::nonblocking, CommTraits::Post::blocking})
        out.push_back(schedule::everywhere({order, send, post}));
  constexpr schedule::Guarantee kSerial{CommTraits::Order::serial, CommTraits::Send::rendezvous,
                                        CommTraits::Post::nonblocking};
  constexpr schedule::Guarantee kTagged{CommTraits::Order::tagged, CommTraits::Send::rendezvous,
                                        CommTraits::Post::nonblocking};
  out.push_back({kSerial, kTagged, kTagged});
  out.push_back({kSerial, kTagged, kSerial});
  out.push_back({kTagged, schedule::kMinGuarantee, kSerial});
  out.push_back({schedule::kMinGuarantee, kTagged, kLoosest});
  return out;
}

inline std::string to_text(const schedule::Guarantee& of) {
  return text("order {}, send {}, post {}", static_cast<int>(of.order), static_cast<int>(of.send),
              static_cast<int>(of.post));
}
inline std::string to_text(const schedule::Assumptions& of) {
  return text("edges {}; reductions {}; layers {}", to_text(of.edges), to_text(of.reductions), to_text(of.layers));
}

} // namespace triax::test
