// SPDX-License-Identifier: Apache-2.0
// Dynamic symbols of libraries, and of files that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "plugin/elf_symbols.hpp"
#include "plugin/loader.hpp"
#include "scratch.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kMineHelper = "_ZN4mine6helperEi"; // mine::helper(int)

TEST(ElfSymbols, TellsWhatIsExportedFromWhatIsNeeded) {
  const DynamicSymbols symbols = read_symbols(fixture("missing-helper"));
  EXPECT_THAT(symbols.defined, ElementsAre(TRIAX_ENTRY_NAME));
  EXPECT_THAT(symbols.undefined, Contains(kMineHelper));
  EXPECT_TRUE(exports(fixture("exports-more"), kMineHelper));
  EXPECT_FALSE(exports(fixture("missing-helper"), kMineHelper)) << "it needs the symbol, and does not define it";
}

TEST(ElfSymbols, WeakSymbolsAreNotNeeded) {
  EXPECT_THAT(read_symbols(fixture("honest")).undefined, Not(Contains("__gmon_start__")));
}

TEST(ElfSymbols, AreRemovedFromASet) {
  std::unordered_set<std::string> symbols = {kMineHelper, "elsewhere"};
  remove_exported(fixture("exports-more"), symbols);
  EXPECT_THAT(symbols, ElementsAre("elsewhere"));
}

TEST(ElfSymbols, AFileThatIsNoLibraryHasNone) {
  const Scratch scratch;
  std::ofstream(scratch / "text.so") << "not a library";
  std::ofstream(scratch / "empty.so").close();
  fs::copy_file(fixture("honest"), scratch / "cut.so");
  fs::resize_file(scratch / "cut.so", 3000); // the section headers are at the end
  for (const char* name : {"text.so", "empty.so", "cut.so", "absent.so"}) {
    EXPECT_THAT(read_symbols(scratch / name).defined, IsEmpty()) << name;
    EXPECT_FALSE(exports(scratch / name, TRIAX_ENTRY_NAME)) << name;
  }
}

} // namespace

} // namespace triax::plugin
