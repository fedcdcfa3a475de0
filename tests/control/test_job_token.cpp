// SPDX-License-Identifier: Apache-2.0
// Job tokens: creation, token files, comparison.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "control/job_token.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::control {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using triax::test::error_of;
using triax::test::TempFolder;
using triax::test::write_file;

TEST(JobToken, EachThatIsMadeIsAnother) {
  const JobToken one = JobToken::make(), other = JobToken::make();
  EXPECT_THAT(one.secret(), MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(one.secret().size(), 64u);
  EXPECT_NE(one.secret(), other.secret());
  EXPECT_TRUE(one.given());
}

TEST(JobToken, MatchesOnlyAnEqualToken) {
  const JobToken token("secret");
  EXPECT_TRUE(token.matches("secret"));
  for (const char* wrong : {"", "secre", "secret ", "Secret", "secreT"}) EXPECT_FALSE(token.matches(wrong)) << wrong;
  EXPECT_FALSE(token.matches(std::string_view("secret\0", 7)));
}

TEST(JobToken, WithoutOneEverythingMatches) {
  EXPECT_FALSE(JobToken().given());
  EXPECT_TRUE(JobToken().matches(""));
  EXPECT_TRUE(JobToken().matches("anything"));
}

struct TokenFileTest : ::testing::Test {
  std::string put(std::string_view bytes, mode_t mode = 0600) {
    write_file(file, bytes);
    ::chmod(file.c_str(), mode);
    return error_of([&] { JobToken::from_file(file); });
  }
  const TempFolder folder;
  const std::filesystem::path file = folder / "token";
};

TEST_F(TokenFileTest, TheFirstLineIsTheToken) {
  for (const char* bytes : {"s3cret", "s3cret\n", "s3cret\r\n", "s3cret\nnotes\n"}) {
    put(bytes);
    EXPECT_EQ(JobToken::from_file(file).secret(), "s3cret");
  }
  put(text("{}\n", std::string(512, 'x')), 0400);
  EXPECT_EQ(JobToken::from_file(file).secret().size(), 512u);
}

TEST_F(TokenFileTest, RefusesAFileThatOtherUsersCanOpen) {
  for (const mode_t mode : {0640, 0604, 0620, 0601}) {
    EXPECT_EQ(put("secret\n", mode), text("{}: other users can read this file, and the token in it "
                                          "lets them join the job\n  chmod 600 {}",
                                          file, file));
  }
}

TEST_F(TokenFileTest, RefusesFilesWithoutAToken) {
  EXPECT_THAT(put(""), HasSubstr("token: the first line is empty"));
  EXPECT_THAT(put("\nsecret\n"), HasSubstr("the first line is empty"));
  EXPECT_THAT(put(std::string(513, 'x')), HasSubstr("the first line is longer than 512 bytes"));
  EXPECT_THAT(put(std::string(100000, 'x')), HasSubstr("the first line is longer than 512 bytes"));
  EXPECT_THAT(error_of([&] { JobToken::from_file(folder / "none"); }), HasSubstr("none: does not exist"));
  EXPECT_THAT(error_of([&] { JobToken::from_file(folder.path()); }), HasSubstr("is not a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { JobToken::from_file(folder / "pipe"); }), HasSubstr("is not a regular file"));
}

} // namespace
} // namespace triax::control
