// SPDX-License-Identifier: Apache-2.0
// Texts that rank 0 sends arrive whole at the launcher, also if parts of them are discarded.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/text_messages.hpp"
#include "support/error_of.hpp"

namespace triax::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using triax::test::error_of;

/// Both ends of the messages, and what the conversation of the launcher has got.
class TextMessages : public ::testing::Test {
 protected:
  TextMessages()
      : shown_{{},
               {[] {
                  return std::optional(std::vector<std::int32_t>{7, 8});
                },
                [this](std::size_t sample, std::string_view part) { (sample == 0 ? first_ : second_) += part; },
                [this](std::size_t sample, const train::GeneratedText& text) { ends_.emplace_back(sample, text); },
                [this](const train::Answer& answer) { answer_ = answer; }}},
        receiver_(shown_),
        send_([this](std::string_view topic, std::string_view text) {
          sent_.push_back({0, std::string(topic), std::string(text)});
        }) {}

  /// Two samples; the first has bytes that are not UTF-8.
  void send_all() {
    const train::Conversation rank = sent_job(send_, {}).conversation;
    send_generating(send_);
    rank.text(0, "one ");
    rank.text(1, "TWO");
    rank.text(0, "\xFF\n");
    rank.text(0, "end");
    rank.ended(1, {"TWO", {1}, train::TextEnd::length});
    rank.ended(0, {"one \xFF\nend", {3, 4, 5}, train::TextEnd::stop});
    rank.answered({{7, 8}, {}, 0.1, 1.0 / 3});
  }
  void expect_whole() const {
    EXPECT_EQ(first_, "one \xFF\nend");
    EXPECT_EQ(second_, "TWO");
    ASSERT_EQ(ends_.size(), 2U);
    EXPECT_EQ(ends_[1].first, 0U);
    EXPECT_EQ(ends_[1].second.text, "one \xFF\nend");
    EXPECT_THAT(ends_[1].second.tokens, ElementsAre(3, 4, 5));
    EXPECT_EQ(ends_[1].second.end, train::TextEnd::stop);
    ASSERT_TRUE(answer_);
    EXPECT_THAT(answer_->prompt, ElementsAre(7, 8));
    EXPECT_EQ(answer_->samples.at(1).text, "TWO");
    EXPECT_EQ(answer_->prompt_s, 0.1);
    EXPECT_EQ(answer_->new_s, 1.0 / 3);
  }

  std::string first_, second_;
  std::vector<std::pair<std::size_t, train::GeneratedText>> ends_;
  std::optional<train::Answer> answer_;
  train::TextJob shown_;
  TextReceiver receiver_;
  std::vector<control::WorkerMessage> sent_;
  SendMessage send_;
};

TEST_F(TextMessages, ATextArrivesWithAllOfItsBytes) {
  send_all();
  EXPECT_FALSE(receiver_.has_begun());
  for (const control::WorkerMessage& message : sent_) EXPECT_TRUE(receiver_.take(message));
  EXPECT_TRUE(receiver_.has_begun());
  expect_whole();
}

TEST_F(TextMessages, TheEndOfATextHasThePartsThatWereDiscarded) {
  send_all();
  sent_.erase(sent_.begin() + 3); // the second part of the first sample
  for (const control::WorkerMessage& message : sent_) receiver_.take(message);
  expect_whole();
}

TEST_F(TextMessages, ScoresArriveWithAllOfTheirBits) {
  std::vector<train::SequenceScore> got;
  shown_.scores.emplace().scored = [&got](const std::vector<train::SequenceScore>& scores) {
    got.insert(got.end(), scores.begin(), scores.end());
  };
  const train::TextJob rank = sent_job(send_, shown_);
  send_generating(send_);
  rank.scores->scored({{3, -1.0 / 3, true}, {1, -7.5, false}});
  EXPECT_TRUE(got.empty());
  for (const control::WorkerMessage& message : sent_) EXPECT_TRUE(receiver_.take(message));
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].sequence, 3U);
  EXPECT_EQ(got[0].log_likelihood, -1.0 / 3);
  EXPECT_TRUE(got[0].is_greedy);
  EXPECT_FALSE(got[1].is_greedy);
}

TEST_F(TextMessages, OtherTopicsAreLeftToOthers) {
  EXPECT_FALSE(receiver_.take({0, "step", "{}"}));
}

TEST_F(TextMessages, AMalformedMessageNamesItsRank) {
  for (const char* topic : {"text", "text_end", "answer"})
    EXPECT_THAT(error_of([&] {
                  receiver_.take({3, topic, "x"});
                }),
                AllOf(HasSubstr("message from rank 3"), HasSubstr("malformed message of topic")));
}

TEST_F(TextMessages, ATextWhoseEndIsDiscardedIsAnError) {
  send_all();
  for (control::WorkerMessage message : sent_) {
    if (message.topic != "text_end") continue;
    message.discarded = 1;
    EXPECT_THAT(error_of([&] { receiver_.take(message); }), HasSubstr("generate fewer samples in one command"));
  }
}

} // namespace
} // namespace triax::launch
