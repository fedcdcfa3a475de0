// SPDX-License-Identifier: Apache-2.0
// The queue of unread messages has a limit, and counts what it discards.
#include <gtest/gtest.h>

#include "control/message_queue.hpp"

namespace triax::control {
namespace {

const std::string kText(1000, 'x');

TEST(MessageQueue, KeepsTheOrderOfAllRanks) {
  MessageQueue queue(1 << 20);
  EXPECT_TRUE(queue.add({0, "step", "1"}));
  EXPECT_TRUE(queue.add({1, "note", "2"}));
  EXPECT_TRUE(queue.add({0, "step", "3"}));
  const std::vector<WorkerMessage> read = queue.drain();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].text + read[1].text + read[2].text, "123");
  EXPECT_EQ(read[2].discarded, 0);
  EXPECT_TRUE(queue.drain().empty());
}

TEST(MessageQueue, DiscardsTheOldestOfTheSameRankAndTopic) {
  MessageQueue queue(10000);
  EXPECT_TRUE(queue.add({0, "note", "kept"}));
  EXPECT_TRUE(queue.add({1, "step", "kept too"}));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.add({0, "step", std::to_string(i) + kText}));
  const std::vector<WorkerMessage> read = queue.drain();
  ASSERT_GT(read.size(), 4u);
  EXPECT_EQ(read[0].text, "kept");
  EXPECT_EQ(read[1].text, "kept too");
  EXPECT_EQ(read.back().text, "99" + kText);
  const auto steps = static_cast<std::int64_t>(read.size()) - 2;
  EXPECT_EQ(read[2].text, std::to_string(100 - steps) + kText);
  EXPECT_EQ(read[2].discarded, 100 - steps);
  EXPECT_EQ(read.back().discarded, 0);
}

TEST(MessageQueue, CountsTheMessagesThatANewerOneReplaces) {
  MessageQueue queue(1500);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.add({0, "step", kText}));
  const std::vector<WorkerMessage> read = queue.drain();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].discarded, 2);
}

TEST(MessageQueue, TakesNoMoreThanItsLimit) {
  MessageQueue queue(1500);
  EXPECT_TRUE(queue.add({0, "step", kText}));
  EXPECT_FALSE(queue.add({0, "note", kText}));
  EXPECT_FALSE(queue.add({1, "step", kText}));
  EXPECT_EQ(queue.drain().size(), 1u);
  EXPECT_TRUE(queue.add({1, "step", kText}));
}

} // namespace
} // namespace triax::control
