// `triax plugins` as a script sees it: exit status, what is on stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/helper.hpp"

namespace triax::plugin {

namespace {

using testing::HasSubstr;

HelperResult run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TRIAX_BINARY_DIR "/bin/triax", "plugins"});
  return run_helper(arguments, std::chrono::seconds(120));
}

TEST(PluginsDescribe, ByNameAndByPath) {
  const auto by_name = run({"describe", "sched-gpipe"});
  EXPECT_EQ(by_name.status, 0);
  EXPECT_THAT(by_name.output, HasSubstr("kind         scheduler"));
  const auto by_path = run({"describe", TRIAX_BINARY_DIR "/lib/triax/plugins/sched-gpipe.so"});
  EXPECT_EQ(by_path.output, by_name.output);
  EXPECT_EQ(run({"describe", "told", "--path", FIXTURES}).status, 0);
}

TEST(PluginsDescribe, TheOptionTable) {
  const auto told = run({"describe", FIXTURES "/told.so"});
  EXPECT_EQ(told.status, 0);
  for (const char* part : {"(required)", "1..1000000000", "\"yield\"", "spin|yield", "list of int", "how to wait"}) {
    EXPECT_THAT(told.output, HasSubstr(part));
  }
}

TEST(PluginsDescribe, TwoWhenNotFoundOneWhenBroken) {
  EXPECT_EQ(run({"describe", "sched-nowhere"}).status, 2);
  EXPECT_EQ(run({"describe", FIXTURES "/nowhere.so"}).status, 2);
  const auto broken = run({"describe", FIXTURES "/bad-magic.so", "--json"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.output, HasSubstr("\"problem\""));
}

TEST(PluginsDescribe, WithJsonARefusalIsOneObjectToo) {
  for (const char* plugin : {"sched-nowhere", FIXTURES "/nowhere.so"}) {
    const auto refused = run({"describe", plugin, "--json"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.output, testing::AllOf(testing::StartsWith("{\"problem\":\""), HasSubstr("nowhere"),
                                               testing::EndsWith("\"}\n")));
  }
}

TEST(Plugins, AFolderOfTheEnvironmentThatIsNotThereIsRefused) {
  ::setenv("TRIAX_PLUGIN_PATH", "/no/such/folder", 1);
  const auto listed = run({"list", "--json"}), described = run({"describe", "sched-gpipe", "--json"});
  ::unsetenv("TRIAX_PLUGIN_PATH");
  for (const HelperResult& refused : {listed, described}) {
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.output, HasSubstr("TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder"));
  }
}

TEST(PluginsList, ShowsTheBrokenAndGoesOn) {
  const auto listed = run({"list", "--path", FIXTURES});
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.output, HasSubstr("does not load: killed by signal 9"));
  EXPECT_THAT(listed.output, HasSubstr("sched-gpipe"));
}

TEST(PluginsList, AFolderThatIsNotThereIsRefused) {
  EXPECT_EQ(run({"list", "--path", "/no/such/folder"}).status, 2);
}

} // namespace

} // namespace triax::plugin
