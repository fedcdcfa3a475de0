// SPDX-License-Identifier: Apache-2.0
// Where libraries are searched for, and which are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

#include "doctor/dynamic_linker.hpp"
#include "plugin/scratch.hpp"

namespace triax::doctor {

namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const fs::path kLinked = fs::path(FIXTURES).parent_path() / "linked";

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A cache as ldconfig writes it, behind one of the older format.
std::string cache_text(const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto count = static_cast<std::uint32_t>(entries.size());
  std::string table, strings;
  const std::uint32_t begin = 48 + 24 * count;
  for (const auto& [name, path] : entries) {
    const auto at = begin + static_cast<std::uint32_t>(strings.size());
    table += bytes_of(std::int32_t{0x303}) + bytes_of(at) + bytes_of(at + static_cast<std::uint32_t>(name.size()) + 1);
    table += bytes_of(std::uint32_t{0}) + bytes_of(std::uint64_t{0});
    strings += name + '\0' + path + '\0';
  }
  std::string header = "glibc-ld.so.cache1.1" + bytes_of(count) + bytes_of(static_cast<std::uint32_t>(strings.size()));
  header.resize(48, '\0');
  return "ld.so-1.7.0" + header + table + strings;
}

TEST(LinkerCache, IsReadFromTheFormatOfGlibc) {
  const Scratch folder;
  std::ofstream(folder / "cache") << cache_text({{"liba.so.1", "/x/liba.so.1"}, {"libb.so.2", "/y/libb.so.2"}});
  EXPECT_THAT(read_linker_cache(folder / "cache"),
              ElementsAre(Pair("liba.so.1", "/x/liba.so.1"), Pair("libb.so.2", "/y/libb.so.2")));
}

TEST(LinkerCache, ThatIsCutOffHasWhatIsLeft) {
  const Scratch folder;
  const std::string whole = cache_text({{"liba.so.1", "/x/liba.so.1"}, {"libb.so.2", "/y/libb.so.2"}});
  for (const std::size_t size : {std::size_t{0}, std::size_t{20}, std::size_t{11 + 48 + 10}}) {
    std::ofstream(folder / "cache") << whole.substr(0, size);
    EXPECT_THAT(read_linker_cache(folder / "cache"), IsEmpty()) << size;
  }
  EXPECT_THAT(read_linker_cache(folder / "absent"), IsEmpty());
}

TEST(LinkerCache, OfThisMachineHasTheCLibrary) {
  if (!fs::exists("/etc/ld.so.cache")) GTEST_SKIP() << "this machine has no /etc/ld.so.cache";
  EXPECT_TRUE(read_linker_cache().contains("libc.so.6"));
}

TEST(Dependencies, OfAPluginThatLoadsAreFound) {
  EXPECT_THAT(trace_dependencies(fixture("honest"), linker_paths()).missing, IsEmpty());
}

TEST(Dependencies, ThatAreMissingHaveEveryPlaceInOrder) {
  LinkerPaths paths = linker_paths();
  paths.library_path = {"/no/such/folder", "/usr"};
  paths.defaults = {"/lib"};
  paths.cache = {{"libfixture-gone.so.7", "/opt/libfixture-gone.so.7"}};
  const Dependencies found = trace_dependencies(fixture("missing-dependency"), paths);
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].name, "libfixture-gone.so");
  EXPECT_EQ(found.missing[0].needed_by, fixture("missing-dependency"));
  EXPECT_THAT(
      found.missing[0].searched,
      ElementsAre("LD_LIBRARY_PATH: /no/such/folder (no such folder), /usr", "RUNPATH of missing-dependency.so: none",
                  "/etc/ld.so.cache: not this version, but libfixture-gone.so.7", "default folders: /lib"));
}

TEST(Dependencies, OfADependencyAreTracedThroughItsRunpath) {
  const fs::path file = fixture("missing-indirect");
  const Dependencies found = trace_dependencies(file, linker_paths());
  EXPECT_THAT(found.files, Contains(kLinked / "needy" / "libfixture-needy.so"));
  ASSERT_EQ(found.missing.size(), 1U);
  EXPECT_EQ(found.missing[0].needed_by, kLinked / "needy" / "libfixture-needy.so");
}

TEST(Dependencies, AreFoundInEachPlace) {
  const fs::path file = fixture("missing-dependency");
  LinkerPaths paths = linker_paths();
  paths.library_path = {kLinked};
  EXPECT_THAT(trace_dependencies(file, paths).missing, IsEmpty());
  paths.library_path.clear();
  paths.cache.emplace("libfixture-gone.so", kLinked / "libfixture-gone.so");
  EXPECT_THAT(trace_dependencies(file, paths).missing, IsEmpty());
  paths.cache = {};
  paths.defaults.push_back(kLinked);
  EXPECT_THAT(trace_dependencies(file, paths).missing, IsEmpty());
}

/// The dynamic linker passes over a library for another machine, and so does a diagnosis.
TEST(Dependencies, AreNotFilesThatAreNoLibraries) {
  const Scratch folder;
  std::ofstream(folder / "libfixture-gone.so") << "INPUT(-lfixture)";
  LinkerPaths paths = linker_paths();
  paths.library_path = {folder.folder()};
  EXPECT_EQ(trace_dependencies(fixture("missing-dependency"), paths).missing.size(), 1U);
}

} // namespace

} // namespace triax::doctor
