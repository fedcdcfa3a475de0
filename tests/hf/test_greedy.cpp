// SPDX-License-Identifier: Apache-2.0
// Imported models generate the tokens that transformers generates (scripts/make-generate-reference.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "launch/run_threads.hpp"
#include "reference_model.hpp"
#include "report/run_log.hpp"
#include "train/generate_text.hpp"

namespace triax::hf {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Any number of tokens, all of which stand for "x".
class AnyTokenizer final : public data::Tokenizer {
 public:
  explicit AnyTokenizer(std::int64_t vocab) : vocab_(vocab) {}
  std::string kind() const override { return "any"; }
  std::int64_t vocab() const override { return vocab_; }
  bool takes_any_bytes() const override { return true; }
  std::optional<std::int32_t> id_of(std::string_view) const override { return std::nullopt; }
  std::vector<std::string> added_tokens() const override { return {}; }
  std::unique_ptr<data::Encoder> encoder() const override { return nullptr; }
  std::string_view bytes_of(std::int32_t) const override { return "x"; }
  std::string digest() const override { return "any"; }
  const std::string& json() const override { return json_; }

 private:
  const std::int64_t vocab_;
  const std::string json_;
};

class GreedyTokens : public ::testing::TestWithParam<const char*> {};

TEST_P(GreedyTokens, AreThoseOfTransformers) {
  const nlohmann::json expected = nlohmann::json::parse(std::ifstream(reference("greedy.json")))["models"][GetParam()];
  const test::TempFolder folder;
  for (const char* file : {"text.bin", "text.idx"}) test::write_file(folder / file, "");
  const std::filesystem::path checkpoint = folder / "imported";
  import_model(reference(GetParam()), checkpoint, (folder / "text").string());
  config::LoadResult loaded = config::load(checkpoint.string() + ".toml", {});
  ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
  config::RunConfig& run = *loaded.run;
  run.evaluates = true;
  run.generate.emplace();
  run.checkpoint.from = checkpoint;

  const AnyTokenizer tokenizer(run.vocab);
  const auto want = expected["tokens"].get<Tokens>();
  std::optional<Tokens> prompt = expected["prompt"].get<Tokens>();
  Tokens found;
  train::TextJob job{{.max_tokens = static_cast<std::int64_t>(want.size()), .tokenizer = &tokenizer}, {}};
  job.conversation = {[&] { return std::exchange(prompt, std::nullopt); }, [](std::size_t, std::string_view) {},
                      [&](std::size_t, const train::GeneratedText& text) { found = text.tokens; },
                      [](const train::Answer&) {}};
  const train::Placement placement;
  std::vector<std::unique_ptr<Log>> logs;
  logs.push_back(report::make_run_log(LogLevel::error, {}, 0));
  const os::StopSignals signals;
  launch::LocalTraining training{run, placement, logs, signals, {}};
  training.text = &job;
  ASSERT_TRUE(launch::run_threads(training));
  EXPECT_EQ(found, want);
}

INSTANTIATE_TEST_SUITE_P(Of, GreedyTokens, ::testing::ValuesIn(kReferences), test_name);

} // namespace
} // namespace triax::hf
