// SPDX-License-Identifier: Apache-2.0
// The address at which a job server listens.
//
// Threads: any. Blocking: name resolution may use the network. Errors: Error with the name, and for an interface with
// the interfaces that exist.
#pragma once

#include <string>
#include <string_view>

namespace triax::os {

struct Address {
  std::string host; // name or number
  int port = 0;
};

/// The IP address of an interface of this machine, given its name ("eth0"), its IP address ("10.0.0.7") or a host name.
/// Empty: loopback.
std::string address_of_interface(std::string_view interface);
bool is_loopback(std::string_view number);
/// "10.0.0.7:29500", "[::1]:29500"
std::string to_text(const Address& address);

} // namespace triax::os
