// SPDX-License-Identifier: Apache-2.0
// The connections that a job server rejected: their number, and for each kind the claimed rank, the address and the
// reason. Limited, so that connections from outside the job cannot fill memory or the log.
//
// Texts never contain a token. Control characters are escaped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triax::control {

/// Connections with the same claimed rank, address and reason.
struct Rejection {
  int rank = -1;               // the claimed rank; -1: no valid handshake
  std::string address, reason; // "10.0.0.7", "wrong token"
  std::int64_t count = 0;
};

struct Rejections {
  static constexpr std::size_t kMaxKinds = 16;

  void add(int rank, std::string_view address, std::string_view reason);

  std::int64_t total = 0;
  std::vector<Rejection> kinds; // the first kMaxKinds, in order of arrival
};

/// "rejected 3 connections: rank 1 from 127.0.0.1: wrong token (2 times); 10.0.0.9: no valid handshake"; empty: none.
std::string to_text(const Rejections& rejections);

} // namespace triax::control
