// SPDX-License-Identifier: Apache-2.0
// `triax plugins` as scripts use it: exit status and stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "golden/program.hpp"
#include "scratch.hpp"

namespace triax::plugin {

namespace {

using testing::HasSubstr;

test::Outcome run(const std::vector<std::string>& arguments, const std::string& streams = "2>/dev/null") {
  std::string command = TRIAX_BINARY_DIR "/bin/triax plugins";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  return test::run_command(command + " " + streams);
}

TEST(PluginsDescribe, ByNameAndByPath) {
  const auto by_name = run({"describe", "sched-gpipe"});
  EXPECT_EQ(by_name.status, 0);
  EXPECT_THAT(by_name.text, HasSubstr("kind         scheduler"));
  const auto by_path = run({"describe", TRIAX_BINARY_DIR "/lib/triax/plugins/sched-gpipe.so"});
  EXPECT_EQ(by_path.text, by_name.text);
  EXPECT_EQ(run({"describe", "told", "--path", FIXTURES}).status, 0);
}

TEST(PluginsDescribe, TheOptionTable) {
  const auto told = run({"describe", FIXTURES "/told.so"});
  EXPECT_EQ(told.status, 0);
  for (const char* part : {"(required)", "1..1000000000", "\"yield\"", "spin|yield", "list of int", "how to wait"}) {
    EXPECT_THAT(told.text, HasSubstr(part));
  }
}

TEST(PluginsDescribe, TwoWhenNotFoundOneWhenBroken) {
  EXPECT_EQ(run({"describe", "sched-nowhere"}).status, 2);
  EXPECT_EQ(run({"describe", FIXTURES "/nowhere.so"}).status, 2);
  const auto broken = run({"describe", FIXTURES "/bad-magic.so", "--json"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.text, HasSubstr("\"problem\""));
}

TEST(PluginsDescribe, WithJsonARefusalIsOneObjectToo) {
  for (const char* plugin : {"sched-nowhere", FIXTURES "/nowhere.so"}) {
    const auto refused = run({"describe", plugin, "--json"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.text, testing::AllOf(testing::StartsWith("{\"problem\":\""), HasSubstr("nowhere"),
                                             testing::EndsWith("\"}\n")));
  }
}

TEST(Plugins, AFolderOfTheEnvironmentThatIsNotThereIsRefused) {
  ::setenv("TRIAX_PLUGIN_PATH", "/no/such/folder", 1);
  const auto listed = run({"list", "--json"}), described = run({"describe", "sched-gpipe", "--json"});
  ::unsetenv("TRIAX_PLUGIN_PATH");
  for (const test::Outcome& refused : {listed, described}) {
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.text, HasSubstr("TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder"));
  }
}

TEST(PluginsList, ShowsTheBrokenAndGoesOn) {
  const Scratch scratch; // without the looping fixtures, each of which would take its whole timeout
  for (const char* name : {"bad-magic.so", "crashing-create.so", "killed.so", "throwing-int.so"})
    std::filesystem::copy_file(std::filesystem::path(FIXTURES) / name, scratch / name);
  const auto listed = run({"list", "--path", scratch.folder()});
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.text, HasSubstr("its library initializer was killed by SIGKILL"));
  EXPECT_THAT(listed.text, HasSubstr("sched-gpipe"));
}

TEST(PluginsDescribe, APluginThatCrashesIsBroken) {
  const auto described = run({"describe", FIXTURES "/crashing-create.so"}, "2>&1 >/dev/null");
  EXPECT_EQ(described.status, 1);
  EXPECT_THAT(described.text, HasSubstr("crashing-create.so: its constructor crashed with SIGSEGV"));
}

TEST(Plugins, WhichFileIsUsedIsTold) {
  const Scratch scratch;
  const std::string own = TRIAX_BINARY_DIR "/lib/triax/plugins/sched-gpipe.so";
  std::filesystem::copy_file(own, scratch / "sched-gpipe.so");
  const auto described = run({"describe", "sched-gpipe", "--path", scratch.folder()});
  EXPECT_THAT(described.text, HasSubstr("file         " + (scratch / "sched-gpipe.so").string() + "\n"));
  EXPECT_THAT(described.text, HasSubstr("shadows      " + own + "\n"));
  EXPECT_THAT(run({"describe", "sched-gpipe"}).text, testing::Not(HasSubstr("shadows")));
  const auto listed = run({"list", "--path", scratch.folder()});
  EXPECT_THAT(listed.text, HasSubstr(" (shadows " + own + ")"));
  EXPECT_THAT(listed.text, HasSubstr(" (shadowed by " + (scratch / "sched-gpipe.so").string() + ")"));
}

TEST(PluginsList, AFolderThatIsNotThereIsRefused) {
  EXPECT_EQ(run({"list", "--path", "/no/such/folder"}).status, 2);
}

} // namespace

} // namespace triax::plugin
