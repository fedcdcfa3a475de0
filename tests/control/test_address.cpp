// SPDX-License-Identifier: Apache-2.0
// The address of a network interface by its name, and address text.
#include <gmock/gmock.h>

#include "os/address.hpp"
#include "os/socket.hpp"
#include "support/error_of.hpp"

namespace triax::control {
namespace {

using ::testing::HasSubstr;
using triax::test::error_of;

TEST(Address, AnInterfaceHasANumber) {
  EXPECT_EQ(os::address_of_interface(""), "127.0.0.1");
  EXPECT_EQ(os::address_of_interface("lo"), "127.0.0.1");
  EXPECT_EQ(os::address_of_interface("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(os::address_of_interface("127.0.1.1"), "127.0.1.1");
  EXPECT_TRUE(os::is_loopback(os::address_of_interface("localhost")));
}

TEST(Address, RefusesUnknownInterfacesAndListsTheKnownOnes) {
  for (const char* unknown : {"eth77", "198.51.100.1", "0.0.0.0", "::", "no-such-host.invalid"}) {
    const std::string error = error_of([&] { os::address_of_interface(unknown); });
    EXPECT_THAT(error, HasSubstr("\"" + std::string(unknown) + "\" is not a network interface of this machine"));
    EXPECT_THAT(error, HasSubstr("this machine has lo 127.0.0.1"));
  }
}

TEST(Address, Loopback) {
  for (const char* number : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(os::is_loopback(number));
  for (const char* number : {"10.0.0.7", "128.0.0.1", "::", "fd00::2", "::ffff:10.0.0.7", "localhost", ""})
    EXPECT_FALSE(os::is_loopback(number)) << number;
}

TEST(Address, Text) {
  EXPECT_EQ(to_text(os::Address{"10.0.0.7", 29500}), "10.0.0.7:29500");
  EXPECT_EQ(to_text(os::Address{"n7", 1}), "n7:1");
  EXPECT_EQ(to_text(os::Address{"::1", 29500}), "[::1]:29500");
}

} // namespace
} // namespace triax::control
