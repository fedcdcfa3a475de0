// SPDX-License-Identifier: Apache-2.0
// Files that are not libraries, and errors of broken plugins. tests/cli/plugins-broken.t has a message of each kind.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "plugin/loader.hpp"
#include "scratch.hpp"
#include "support/golden.hpp"
#include "triax/scheduler.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;
using test::replace_all;

/// The error's complete text, without the folder.
std::string message_in(const Error& error, const fs::path& folder) {
  std::string out = error.what();
  replace_all(out, folder.string() + "/", "DIR/");
  return out;
}

constexpr const char* kDamaged = "DIR/cut.so: is a damaged shared library (cut off?)\n  build or copy it again";

std::string load_error(const fs::path& file, std::string_view kind = {}) {
  try {
    load(file, kind);
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), file.string());
    return message_in(error, file.parent_path());
  }
  return "it loads";
}

std::string create_error(const std::string& name) {
  const fs::path file = fs::path(FIXTURES) / (name + ".so");
  const Library& library = load(file, "scheduler");
  const Options options;
  const Layout layout;
  try {
    create<Scheduler>(library, PluginContext{options, null_log(), layout});
  } catch (const Error& error) {
    return message_in(error, file.parent_path());
  }
  return "it is created";
}

TEST(BrokenCreateText, AnErrorThatFillsItsBufferIsCutOff) {
  EXPECT_THAT(create_error("long-error"), testing::HasSubstr("could not be created: " + std::string(1023, 'x')));
}

TEST(BrokenFile, AbsentFolderTextCutAndForeignHaveTheirOwnMessages) {
  const Scratch scratch;
  EXPECT_EQ(load_error(scratch / "absent.so"),
            "DIR/absent.so: no such file\n  triax plugins list shows the plugins that are found by name");
  fs::create_directory(scratch / "folder.so");
  EXPECT_EQ(load_error(scratch / "folder.so"), "DIR/folder.so: is a folder, not a library\n  name a library in it");
  std::ofstream(scratch / "text.so") << "not a library at all\n";
  EXPECT_EQ(load_error(scratch / "text.so"),
            "DIR/text.so: is not a shared library (no ELF header)\n  a plugin is the shared library that "
            "triax_add_plugin() builds");
  std::ofstream(scratch / "empty.so").close();
  EXPECT_EQ(load_error(scratch / "empty.so"),
            "DIR/empty.so: is not a shared library (no ELF header)\n  the file is empty: build the plugin again");

  const fs::path honest = fs::path(FIXTURES) / "honest.so";
  fs::copy_file(honest, scratch / "cut.so");
  fs::resize_file(scratch / "cut.so", sizeof(Elf64_Ehdr) + 10);
  EXPECT_EQ(load_error(scratch / "cut.so"), kDamaged);
  fs::resize_file(scratch / "cut.so", sizeof(Elf64_Ehdr) - 10);
  EXPECT_EQ(load_error(scratch / "cut.so"), kDamaged);

  const auto patched = [&](const char* name, std::streamoff offset, std::uint16_t value) {
    fs::copy_file(honest, scratch / name);
    std::fstream file(scratch / name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(offset);
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  patched("foreign.so", offsetof(Elf64_Ehdr, e_machine), EM_S390);
  EXPECT_THAT(load_error(scratch / "foreign.so"),
              testing::StartsWith("DIR/foreign.so: is a library for S/390; this triax is for "));
  patched("unknown.so", offsetof(Elf64_Ehdr, e_machine), 0x7777);
  EXPECT_THAT(load_error(scratch / "unknown.so"), testing::HasSubstr("for the machine with ELF number 30583; this"));
  patched("object.so", offsetof(Elf64_Ehdr, e_type), ET_REL);
  EXPECT_EQ(load_error(scratch / "object.so"),
            "DIR/object.so: is an ELF file, but not a shared library\n"
            "  it is an object file: triax_add_plugin() links it to a library");
}

TEST(BrokenFile, ReportsBrokenSymlinksAndTheirTargets) {
  const Scratch scratch;
  fs::create_symlink("gone.so", scratch / "dangling.so");
  EXPECT_EQ(load_error(scratch / "dangling.so"),
            "DIR/dangling.so: is a dangling symlink to gone.so\n  remove the symlink, or build its target");
  fs::create_symlink("loop.so", scratch / "loop.so");
  EXPECT_EQ(load_error(scratch / "loop.so"),
            "DIR/loop.so: is a symlink to loop.so, which cannot be followed: Too many levels of symbolic links\n"
            "  remove the symlink, or let it point to a library");
  ASSERT_EQ(mkfifo((scratch / "fifo.so").c_str(), 0600), 0);
  EXPECT_EQ(load_error(scratch / "fifo.so"), "DIR/fifo.so: is not a regular file\n  name a library");
}

TEST(BrokenFile, OneThatMayNotBeReadIsReported) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const Scratch scratch;
  fs::copy_file(fs::path(FIXTURES) / "honest.so", scratch / "honest.so");
  fs::permissions(scratch / "honest.so", fs::perms::none);
  EXPECT_EQ(load_error(scratch / "honest.so"),
            "DIR/honest.so: cannot be read: Permission denied\n  make it readable for this user");
}

TEST(BrokenFile, ALibraryCutOffIsNotHandedToDlopen) {
  const Scratch scratch;
  const fs::path honest = fs::path(FIXTURES) / "honest.so";
  fs::copy_file(honest, scratch / "honest.so");
  fs::resize_file(scratch / "honest.so", 3000); // complete headers, incomplete code
  fs::rename(scratch / "honest.so", scratch / "cut.so");
  EXPECT_EQ(load_error(scratch / "cut.so"), kDamaged);
}

TEST(BrokenFile, AnotherKindIsRefused) {
  EXPECT_EQ(load_error(fs::path(FIXTURES) / "honest.so", "optimizer"),
            "DIR/honest.so: honest is a plugin of kind scheduler; kind optimizer is needed");
}

TEST(BrokenFile, IsReportedAgainTheSecondTime) {
  const fs::path file = fs::path(FIXTURES) / "bad-magic.so";
  EXPECT_EQ(load_error(file), load_error(file));
}

} // namespace

} // namespace triax::plugin
