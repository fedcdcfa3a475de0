// SPDX-License-Identifier: Apache-2.0
// Generated tokens are those of the training forward, on every layout; and how texts end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <limits>

#include "launch/run_threads.hpp"
#include "report/run_log.hpp"
#include "train/generate_text.hpp"
#include "train/resumed_run.hpp"

namespace triax {
namespace {

using test::Where;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t kVocab = 13;
constexpr std::int64_t kPositions = 6; // of the model

/// Token 0 is "a", and so on.
class LetterTokenizer final : public data::Tokenizer {
 public:
  std::string kind() const override { return "letters"; }
  std::int64_t vocab() const override { return kVocab; }
  bool takes_any_bytes() const override { return true; }
  std::optional<std::int32_t> id_of(std::string_view) const override { return std::nullopt; }
  std::vector<std::string> added_tokens() const override { return {}; }
  std::unique_ptr<data::Encoder> encoder() const override { return nullptr; }
  std::string_view bytes_of(std::int32_t id) const override {
    return std::string_view("abcdefghijklm").substr(static_cast<std::size_t>(id), 1);
  }
  std::string digest() const override { return "letters"; }
  const std::string& json() const override { return json_; }

 private:
  const std::string json_;
};

/// One sequence, of which one target matters: the others do not change from call to call.
struct NextToken final : executor::BatchSource {
  Tokens sequence;
  std::int32_t target = 0; // of its last token
  void microbatch(std::span<const std::int64_t>, const TensorView& tokens, const TensorView& targets) override {
    std::fill_n(tokens.as<std::int32_t>(), tokens.elements(), 0);
    std::fill_n(targets.as<std::int32_t>(), targets.elements(), 0);
    std::ranges::copy(sequence, tokens.as<std::int32_t>());
    targets.as<std::int32_t>()[sequence.size() - 1] = target;
  }
};

class GeneratedText : public test::ResumedRun {
 protected:
  GeneratedText() {
    run_.keys["model.dropout"] = "0";
    run_.keys["optimizer.lr"] = "3e-2";
  }
  void SetUp() override { ASSERT_THAT(train({1, 1, 1}, 6), IsEmpty()); }

  /// The tokens with the smallest loss, one after the other: those with the largest logits of the training forward.
  Tokens by_training_forward(const Tokens& prompt) {
    config::RunConfig config = this->config({1, 1, 1, {{"batch.global", "1"}}}, 0);
    config.evaluates = true;
    Tokens out;
    EXPECT_THAT(start(config, NextToken(),
                      [&](train::Rank& rank, train::Checkpoints&, int, NextToken& source) {
                        source.sequence = prompt;
                        while (static_cast<std::int64_t>(source.sequence.size()) <= kPositions) {
                          out.push_back(best_next(rank, source));
                          source.sequence.push_back(out.back());
                        }
                        return train::LoopResult();
                      }),
                IsEmpty());
    return out;
  }
  static std::int32_t best_next(train::Rank& rank, NextToken& source) {
    double least = std::numeric_limits<double>::infinity();
    std::int32_t best = 0;
    for (source.target = 0; source.target < kVocab; ++source.target)
      if (const double loss = rank.evaluate_batch(0, 1, {}).sum; loss < least) {
        least = loss;
        best = source.target;
      }
    return best;
  }

  struct Generated {
    std::vector<train::Answer> answers;
    std::string parts; // of the first sample
    int signal = 0;
    std::string failure; // of the rank that failed first
  };
  /// `signals`: SIGTERM after so many parts of text; 0: none.
  Generated generate(const Where& where, const train::GenerateOptions& options, const std::vector<Tokens>& prompts,
                     int samples = 1, int signal_after = 0) {
    config::RunConfig config = this->config(where, 0);
    config.evaluates = true;
    config.generate = config::GenerateSizes{.samples = samples, .max_rows = 2};
    config.checkpoint.from = checkpoint("run", 6);
    const LetterTokenizer letters;
    const int ranks = train::layout_of(config).world_size();
    const train::Placement placement{ranks, ranks, true};
    std::vector<std::unique_ptr<Log>> logs;
    for (int rank = 0; rank < ranks; ++rank) logs.push_back(report::make_run_log(LogLevel::error, {}, rank));
    os::StopSignals signals;
    Generated out;
    std::size_t next = 0;
    int parts = 0;
    train::TextJob job{options, {}};
    job.options.tokenizer = &letters;
    job.conversation = {[&]() -> std::optional<Tokens> {
                          if (next == prompts.size()) return std::nullopt;
                          return prompts[next++];
                        },
                        [&](std::size_t sample, std::string_view part) {
                          if (sample == 0) out.parts += part;
                          if (++parts == signal_after) signals.ask(SIGTERM);
                        },
                        [](std::size_t, const train::GeneratedText&) {},
                        [&](const train::Answer& answer) { out.answers.push_back(answer); }};
    launch::LocalTraining training{config, placement, logs, signals, {}};
    training.text = &job;
    training.failed = [&](int, const std::string& why, int) { out.failure = why; };
    const std::optional<train::LoopResult> result = launch::run_threads(training);
    EXPECT_EQ(result.has_value(), out.failure.empty());
    if (result) out.signal = result->signal;
    return out;
  }
  Tokens greedy(const Where& where, const Tokens& prompt) {
    const Generated out = generate(where, {}, {prompt});
    return out.answers.empty() ? Tokens{} : out.answers.front().samples.front().tokens;
  }
  /// The context has six positions, so the seventh token is the last.
  void expect_tokens_of_training(const Tokens& prompt) {
    const std::map<std::string, std::string> reference,
        one_thread = {{"kernels.plugin", "\"kernels-cpu\""}, {"kernels.threads", "1"}},
        two_threads = {{"kernels.plugin", "\"kernels-cpu\""}, {"kernels.threads", "2"}};
    const Tokens expected = by_training_forward(prompt);
    ASSERT_EQ(expected.size(), 7 - prompt.size());
    for (const Where& where : std::vector<Where>{{1, 1, 1, reference},
                                                 {2, 1, 1, reference},
                                                 {1, 2, 1, reference},
                                                 {2, 2, 1, reference},
                                                 {1, 1, 1, one_thread},
                                                 {2, 2, 1, one_thread},
                                                 {1, 2, 1, two_threads},
                                                 {2, 1, 1, two_threads}})
      EXPECT_EQ(greedy(where, prompt), expected)
          << "pipeline " << where.pipeline << ", tensor " << where.tensor << ", " << where.keys.size() << " keys";
  }
};

TEST_F(GeneratedText, TokensAreThoseOfTheTrainingForwardOnEveryLayout) {
  for (const Tokens& prompt : {Tokens{4, 7, 10}, Tokens{1}, Tokens{2, 2, 9, 0, 5, 3}})
    expect_tokens_of_training(prompt);
}

/// Rotary positions, and two key heads for four query heads.
class GeneratedTextOfLlama : public GeneratedText {
 protected:
  GeneratedTextOfLlama() { run_.use_llama(2); }
};

TEST_F(GeneratedTextOfLlama, TokensAreThoseOfTheTrainingForwardOnEveryLayout) {
  expect_tokens_of_training({4, 7, 10});
}

TEST_F(GeneratedText, DrawsDoNotDependOnTheLayoutOrOnOtherSamples) {
  const train::GenerateOptions options{.sampling = {.temperature = 1.5, .top_k = 9, .seed = 5}};
  const auto texts = [&](const Where& where, int samples) {
    std::vector<std::string> out;
    const Generated generated = generate(where, options, {{3, 6}}, samples);
    for (const train::GeneratedText& of : generated.answers.front().samples) out.push_back(of.text);
    return out;
  };
  const std::vector<std::string> three = texts({1, 1, 1}, 3);
  EXPECT_NE(three[0], three[1]);
  EXPECT_EQ(texts({2, 2, 1}, 3), three);
  EXPECT_EQ(texts({2, 1, 1}, 3), three);
  EXPECT_THAT(texts({1, 2, 1}, 1), ElementsAre(three[0]));
}

TEST_F(GeneratedText, EachPromptBeginsAnew) {
  const Generated both = generate({2, 1, 1}, {}, {{4, 7, 10}, {1}, {4, 7, 10}});
  ASSERT_EQ(both.answers.size(), 3U);
  EXPECT_EQ(both.answers[0].samples[0].tokens, both.answers[2].samples[0].tokens);
  EXPECT_EQ(both.answers[1].samples[0].tokens, greedy({1, 1, 1}, {1}));
}

TEST_F(GeneratedText, TextsEnd) {
  const Tokens all = greedy({1, 1, 1}, {1});
  ASSERT_EQ(all.size(), 6U);
  const LetterTokenizer letters;
  std::string text;
  for (const std::int32_t token : all) text += letters.bytes_of(token);
  const auto ended = [&](const train::GenerateOptions& options) {
    return generate({1, 2, 1}, options, {{1}}).answers.front().samples.front();
  };
  const train::GeneratedText context = ended({});
  EXPECT_EQ(context.text, text);
  EXPECT_EQ(context.end, train::TextEnd::context);
  const train::GeneratedText length = ended({.max_tokens = 2});
  EXPECT_EQ(length.text, text.substr(0, 2));
  EXPECT_EQ(length.end, train::TextEnd::length);
  const train::GeneratedText stop = ended({.stops = {"zzz", text.substr(1, 2)}});
  EXPECT_EQ(stop.text, text.substr(0, text.find(text.substr(1, 2))));
  EXPECT_EQ(stop.end, train::TextEnd::stop);
  const train::GeneratedText end = ended({.ends = {all[0]}});
  EXPECT_EQ(end.text, "");
  EXPECT_THAT(end.tokens, IsEmpty());
  EXPECT_EQ(end.end, train::TextEnd::end_of_document);
}

/// The ranks of the first stage do not see the logits.
TEST_F(GeneratedText, EndOnAllRanksIfALogitIsNotFinite) {
  const std::map<std::string, std::string> keys = {{"plugins.path", text("[\"{}\"]", TEST_PLUGINS)},
                                                   {"kernels.plugin", "\"kernels-text-event\""},
                                                   {"kernels.at", "1"}};
  EXPECT_THAT(generate({2, 2, 1, keys}, {}, {{1}}).failure,
              HasSubstr("after 2 tokens: the logit of token 0 is not a number"));
  const Generated two = generate({2, 1, 1, keys}, {}, {{1}}, 2);
  EXPECT_THAT(two.failure, HasSubstr("sample 1, after 1 tokens: the logit of token 0 is not a number"));
  EXPECT_THAT(two.answers, IsEmpty());
}

TEST_F(GeneratedText, ASignalEndsThemAfterTheToken) {
  const Generated out = generate({2, 1, 1}, {}, {{1}, {4, 7}}, 1, 2);
  EXPECT_EQ(out.signal, SIGTERM);
  ASSERT_EQ(out.answers.size(), 1U);
  EXPECT_EQ(out.answers[0].samples[0].end, train::TextEnd::signal);
  EXPECT_EQ(out.parts, out.answers[0].samples[0].text);
  EXPECT_GE(out.parts.size(), 2U);
  EXPECT_LT(out.parts.size(), 6U);
}

} // namespace
} // namespace triax
