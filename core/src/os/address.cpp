// SPDX-License-Identifier: Apache-2.0
#include "os/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

struct Interface {
  std::string name, number; // empty number: no usable IP address
  bool v4 = false;
};

/// Empty unless it is an IP address that is valid without naming its interface.
std::string number_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> number{};
  if (address && address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, number.data(), number.size());
  } else if (address && address->sa_family == AF_INET6) {
    const in6_addr& bits = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&bits)) ::inet_ntop(AF_INET6, &bits, number.data(), number.size());
  }
  return number.data();
}

std::vector<Interface> interfaces() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0)
    throw Error(text("cannot list the network interfaces of this machine: {}", errno_text()), "launch.interface");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(found, ::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* of = found; of; of = of->ifa_next)
    all.push_back({of->ifa_name, number_of(of->ifa_addr), of->ifa_addr && of->ifa_addr->sa_family == AF_INET});
  return all;
}

/// "lo 127.0.0.1, eth0 10.0.0.7"
std::string listed(const std::vector<Interface>& all) {
  std::string list;
  for (const Interface& one : all) {
    if (one.number.empty()) continue;
    list.append(list.empty() ? "" : ", ").append(one.name).append(" ").append(one.number);
  }
  return list;
}

/// IP addresses of a number or host name; empty if there are none.
std::vector<std::string> numbers_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  std::vector<std::string> numbers;
  for (const addrinfo* one = found; one; one = one->ai_next) numbers.push_back(number_of(one->ai_addr));
  return numbers;
}

} // namespace

std::string address_of_interface(std::string_view interface) {
  if (interface.empty()) return "127.0.0.1";
  const std::vector<Interface> all = interfaces();
  const auto is_named = [&](const Interface& one) { return one.name == interface; };
  const auto serves = [&](bool v4) {
    return std::find_if(all.begin(), all.end(),
                        [&](const Interface& one) { return is_named(one) && one.v4 == v4 && !one.number.empty(); });
  };
  if (const auto four = serves(true); four != all.end()) return four->number;
  if (const auto six = serves(false); six != all.end()) return six->number;
  const std::string hint = "give a network interface or its address; this machine has " + listed(all);
  if (std::any_of(all.begin(), all.end(), is_named))
    throw Error(text("network interface \"{}\" has no address", interface), "launch.interface", hint);

  std::vector<std::string> numbers = numbers_of(std::string(interface));
  // Some systems map the host name to a loopback address first.
  std::stable_partition(numbers.begin(), numbers.end(), [](const std::string& one) { return !is_loopback(one); });
  for (const std::string& number : numbers) {
    // All of 127.0.0.0/8 is loopback, whichever address the interface has.
    const bool ours = is_loopback(number) ||
                      std::any_of(all.begin(), all.end(), [&](const Interface& one) { return one.number == number; });
    if (ours && !number.empty()) return number;
  }
  throw Error(text("\"{}\" is not a network interface of this machine, nor the address or name of one", interface),
              "launch.interface", hint);
}

bool is_loopback(std::string_view number) {
  const std::string text(number);
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

std::string to_text(const Address& address) {
  const bool colons = address.host.find(':') != std::string::npos;
  return (colons ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

} // namespace triax::os
