// SPDX-License-Identifier: Apache-2.0
// Which toolchains of plugin and engine are compatible.
#include <gtest/gtest.h>

#include "plugin/toolchain.hpp"
#include "triax/toolchain.h"

namespace triax::plugin {

namespace {

constexpr const char* kOurs = "libstdc++-cxx11abi1;sanitizer=none;c++20;release=12";

std::string reason(const char* plugin, const char* engine = kOurs) {
  const Refusals refused = compatible(plugin, engine);
  return refused.empty() ? std::string() : refused.front().message;
}

TEST(Toolchain, ThisBuildFitsItself) {
  EXPECT_TRUE(compatible(TRIAX_TOOLCHAIN, TRIAX_TOOLCHAIN).empty());
}

TEST(Toolchain, AnotherReleaseOrALaterLanguageIsFine) {
  EXPECT_EQ(reason("libstdc++-cxx11abi1;sanitizer=none;c++20;release=15"), "");
  EXPECT_EQ(reason("libstdc++-cxx11abi1;sanitizer=none;c++23;release=15"), "");
  EXPECT_EQ(reason(kOurs, "libstdc++-cxx11abi1;sanitizer=none;c++23;release=15"), "");
}

TEST(Toolchain, PartsOfALaterHeaderAreNotCompared) {
  EXPECT_EQ(reason("libstdc++-cxx11abi1;sanitizer=none;c++20;release=12;machine=x"), "");
}

TEST(Toolchain, NamesTheDifference) {
  EXPECT_EQ(reason("libc++1;sanitizer=none;c++20;release=14"),
            "built with the C++ library libc++1; this triax with libstdc++");
  EXPECT_EQ(reason("libstdc++-cxx11abi0;sanitizer=none;c++20;release=12"),
            "built with _GLIBCXX_USE_CXX11_ABI=0; this triax with 1");
  EXPECT_EQ(reason("libstdc++-cxx11abi1-debug;sanitizer=none;c++20;release=12"),
            "built with _GLIBCXX_DEBUG; this triax without");
  EXPECT_EQ(reason(kOurs, "libstdc++-cxx11abi1-debug;sanitizer=none;c++20;release=12"),
            "built without _GLIBCXX_DEBUG; this triax with");
  EXPECT_EQ(reason("libstdc++-cxx11abi1;sanitizer=none;c++17;release=12"),
            "built as c++17; a plugin needs c++20 or later");
}

TEST(Toolchain, SanitizersMustAgreeInBothDirections) {
  const char* address = "libstdc++-cxx11abi1;sanitizer=address;c++20;release=12";
  EXPECT_EQ(reason(address), "built with the address sanitizer; this triax has no sanitizer");
  EXPECT_EQ(reason(kOurs, address), "built with no sanitizer; this triax has the address sanitizer");
  EXPECT_EQ(reason(address, "libstdc++-cxx11abi1;sanitizer=thread;c++20;release=12"),
            "built with the address sanitizer; this triax has the thread sanitizer");
  EXPECT_EQ(reason("libstdc++-cxx11abi1;c++20"), "its toolchain text \"libstdc++-cxx11abi1;c++20\" names no sanitizer");
}

TEST(Toolchain, APluginInCHasToAgreeInTheSanitizerOnly) {
  EXPECT_EQ(reason("c;sanitizer=none;c;release=0"), "");
  EXPECT_TRUE(is_c("c;sanitizer=none;c;release=0"));
  EXPECT_FALSE(is_c(kOurs));
  EXPECT_NE(reason("c;sanitizer=address;c;release=0"), "");
}

} // namespace

} // namespace triax::plugin
