// SPDX-License-Identifier: Apache-2.0
// Reading the ELF note and the required libraries of a plugin file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/elf_note.hpp"
#include "scratch.hpp"
#include "triax/abi.h"
#include "triax/error.hpp"
#include "triax/toolchain.h"
#include "triax/version.h"

namespace triax::plugin {

namespace {

TEST(Note, IsTakenApart) {
  const Note note = parse_note("triax=0.3.0;abi=1.2;libstdc++-cxx11abi1;sanitizer=none;c++20;release=12");
  EXPECT_EQ(note.triax, "0.3.0");
  EXPECT_EQ(note.abi, "1.2");
  EXPECT_EQ(note.toolchain, "libstdc++-cxx11abi1;sanitizer=none;c++20;release=12");
  EXPECT_EQ(parse_note("").toolchain, "");
  EXPECT_EQ(parse_note("triax=0.3.0").triax, "0.3.0");
  EXPECT_EQ(parse_note("triax=0.3.0").toolchain, "");
}

TEST(Note, IsLeftByTheMacro) {
  const ElfFile elf = read_elf(fixture("described"));
  EXPECT_EQ(elf.note.text, "triax=" TRIAX_VERSION ";abi=1.1;" TRIAX_TOOLCHAIN);
  EXPECT_EQ(elf.note.triax, TRIAX_VERSION);
  EXPECT_EQ(elf.note.abi, "1.1");
  EXPECT_EQ(elf.note.toolchain, TRIAX_TOOLCHAIN);
}

TEST(Note, MayBeAbsent) {
  EXPECT_EQ(read_elf(fixture("honest")).note.text, "");
}

TEST(Elf, NamesTheLibrariesThatAreWanted) {
  EXPECT_THAT(read_elf(fixture("missing-dependency")).needed, testing::Contains("libfixture-gone.so"));
  EXPECT_THAT(read_elf(fixture("other-core")).needed, testing::Contains("libtriax_core.so.9.9"));
}

} // namespace

} // namespace triax::plugin
