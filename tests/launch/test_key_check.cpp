// SPDX-License-Identifier: Apache-2.0
// Checks of the keys of [launch] before any rank starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/key_check.hpp"
#include "support/temp_folder.hpp"

namespace triax::launch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(KeyCheck, DoesNotCheckKeysThatAreNotSet) {
  EXPECT_THAT(check_keys({}), IsEmpty());
  config::LaunchKeys keys;
  keys.interface = "lo";
  EXPECT_THAT(check_keys(keys), IsEmpty());
}

TEST(KeyCheck, AnInterfaceThatIsNotHereIsRefusedWithThoseThatAre) {
  config::LaunchKeys keys;
  keys.interface = "eth77";
  const Refusals refused = check_keys(keys);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].message,
            "launch.interface: \"eth77\" is not a network interface of this machine, nor the address or name of one");
  EXPECT_THAT(refused[0].hint, HasSubstr("lo 127.0.0.1"));
}

TEST(KeyCheck, ATokenFileIsThereAndItsOwnersAlone) {
  const test::TempFolder folder;
  config::LaunchKeys keys;
  keys.token_file = folder / "token";
  const auto reason = [&keys] {
    const Refusals refused = check_keys(keys);
    return refused.empty() ? std::string() : refused.front().message;
  };
  const std::string key = "launch.token_file: " + keys.token_file.string() + ": ";
  EXPECT_EQ(reason(), key + "does not exist");
  test::write_file(keys.token_file, "");
  std::filesystem::permissions(keys.token_file, std::filesystem::perms(0600));
  EXPECT_EQ(reason(), key + "the first line is empty");
  test::write_file(keys.token_file, "secret\n");
  EXPECT_EQ(reason(), "");
  std::filesystem::permissions(keys.token_file, std::filesystem::perms(0644));
  EXPECT_THAT(reason(), HasSubstr("other users can read this file"));
}

TEST(KeyCheck, BothAreReportedAtOnce) {
  config::LaunchKeys keys;
  keys.interface = "eth77";
  keys.token_file = "/nowhere/token";
  EXPECT_EQ(check_keys(keys).size(), 2u);
}

} // namespace
} // namespace triax::launch
