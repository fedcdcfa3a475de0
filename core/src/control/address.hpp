// SPDX-License-Identifier: Apache-2.0
// Where the server of a job listens.
//
// Threads: any. Ownership: values. Blocking: resolving a name may ask the network. Errors: Error naming what was looked
// for and, for an interface, which there are.
#pragma once

#include <string>
#include <string_view>

namespace triax::control {

struct Address {
  std::string host; // name or number
  int port = 0;
};

/// The number of an interface of this machine, by its name ("eth0") or by a number or host name that belongs to it
/// ("10.0.0.7"). Empty: loopback.
std::string address_of_interface(std::string_view interface);
bool is_loopback(std::string_view number);
/// "10.0.0.7:29500", "[::1]:29500"
std::string to_text(const Address& address);

} // namespace triax::control
