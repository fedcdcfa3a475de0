// SPDX-License-Identifier: Apache-2.0
// Limits of the store: what is refused when it is full.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "control/server_store.hpp"

namespace triax::control::test {
namespace {

using ::testing::HasSubstr;
using Kind = Message::Kind;

TEST(ServerStore, RefusesGrowthWhenFullAndStillAnswers) {
  std::vector<Message> answers;
  ServerStore store(
      1, [&answers](int, const Message& answer) { answers.push_back(answer); }, 1000);
  const auto ask = [&](Kind kind, const std::string& key, const std::string& value = {}) {
    Message request = make_message(kind, 1, value);
    request.key = key;
    request.id = answers.size() + 1;
    store.handle(0, request);
    return answers.back();
  };
  EXPECT_EQ(ask(Kind::set, "large", std::string(2000, 'v')).kind, Kind::done);
  EXPECT_EQ(ask(Kind::set, "more", "v").kind, Kind::refused);
  EXPECT_THAT(answers.back().value, HasSubstr("the job's store is full: its keys and values have "));
  EXPECT_EQ(ask(Kind::add, "counter").kind, Kind::refused);
  EXPECT_EQ(ask(Kind::get, "large").value, std::string(2000, 'v'));
}

TEST(ServerStore, AValueThatReplacesAnotherDoesNotCountTwice) {
  std::vector<Kind> answers;
  ServerStore store(
      1, [&answers](int, const Message& answer) { answers.push_back(answer.kind); }, 3000);
  for (int time = 0; time < 10; ++time) {
    Message request = make_message(Kind::set, 0, std::string(1000, 'v'));
    request.key = "k";
    store.handle(0, request);
  }
  EXPECT_EQ(answers, std::vector<Kind>(10, Kind::done));
}

} // namespace
} // namespace triax::control::test
