// SPDX-License-Identifier: Apache-2.0
// Text that grows by bytes: characters and stop sequences that are in several parts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/text_stream.hpp"

namespace triax::data {
namespace {

using Parts = std::vector<std::string>;

/// What each part returns; the last one is that of finish().
Parts returned(TextStream stream, const Parts& parts) {
  Parts out;
  for (const std::string& part : parts) out.push_back(stream.add(part));
  out.push_back(stream.finish());
  return out;
}

TEST(TextStream, CharactersAreWhole) {
  EXPECT_EQ(returned(TextStream(), {"a", "\xC3", "\xA9", "\xF0\x9F", "\x98", "\x80!"}),
            (Parts{"a", "", "é", "", "", "😀!", ""}));
}

/// The same as Python's bytes.decode(errors="replace").
TEST(TextStream, InvalidBytesAreReplaced) {
  EXPECT_EQ(returned(TextStream(), {"a\xFF", "b"}), (Parts{"a\uFFFD", "b", ""}));
  EXPECT_EQ(returned(TextStream(), {"\xE2\x82", "x"}), (Parts{"", "\uFFFDx", ""})) << "one for the part of a character";
  EXPECT_EQ(returned(TextStream(), {"\xE2\x82"}), (Parts{"", "\uFFFD"}));
  EXPECT_EQ(returned(TextStream(), {"\xED\xA0\x80"}), (Parts{"\uFFFD\uFFFD\uFFFD", ""})) << "a surrogate";
  EXPECT_EQ(returned(TextStream(), {"\xC3\xC3\xA9"}), (Parts{"\uFFFDé", ""}));
}

TEST(TextStream, AStopTextMayBeInSeveralParts) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.add("one E"), "one ");
  EXPECT_FALSE(stream.is_stopped());
  EXPECT_EQ(stream.add("N"), "");
  EXPECT_EQ(stream.add("ED two EN"), "ENED two ");
  EXPECT_EQ(stream.add("D three"), "");
  EXPECT_TRUE(stream.is_stopped());
  EXPECT_EQ(stream.add("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, TheFirstStopTextCounts) {
  TextStream stream({"xyz", "b", "\n\n"});
  EXPECT_EQ(stream.add("a\n"), "a");
  EXPECT_EQ(stream.add("c\n"), "\nc");
  EXPECT_EQ(stream.add("\nb xyz"), "");
  EXPECT_TRUE(stream.is_stopped());
}

TEST(TextStream, WhatWasHeldBackIsInTheEnd) {
  EXPECT_EQ(returned(TextStream({"END"}), {"an EN"}), (Parts{"an ", "EN"}));
  EXPECT_EQ(returned(TextStream({"é!"}), {"caf\xC3", "\xA9"}), (Parts{"caf", "", "é"}));
}

/// Stop sequences that begin with their own end.
TEST(TextStream, StopTextsMayOverlapThemselves) {
  TextStream stream({"aab"});
  EXPECT_EQ(stream.add("aa"), "");
  EXPECT_EQ(stream.add("a"), "a");
  EXPECT_EQ(stream.add("b"), "");
  EXPECT_TRUE(stream.is_stopped());
}

} // namespace
} // namespace triax::data
