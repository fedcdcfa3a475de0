// SPDX-License-Identifier: Apache-2.0
#include "data/train_tokenizer.hpp"

#include <algorithm>
#include <system_error>

#include "data/document_jobs.hpp"
#include "data/output_file.hpp"
#include "data/tokenizer/bpe_trainer.hpp"
#include "data/tokenizer/utf8.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxVocab = std::int64_t{1} << 24;
constexpr std::int64_t kBytes = 256;

WordRules gpt2_rules() {
  std::vector<WordStep> steps(1);
  steps.front().pattern.emplace(kGpt2Pattern);
  return {{}, std::move(steps)};
}

/// An encoder that counts words instead of encoding them.
class WordCounter final : public Encoder, private WordSink {
 public:
  explicit WordCounter(const WordRules& rules) : splitter_(rules) {}
  SplitProgress encode(const TextPart& part, std::vector<std::int32_t>&) override {
    return splitter_.split(part, *this);
  }
  PartCut cut(const TextPart& part) override { return splitter_.cut(part); }
  WordCounts& counts() { return counts_; }

 private:
  void word(std::string_view text) override {
    if (text.size() > kMaxWord) throw word_too_long();
    key_.assign(text);
    ++counts_[key_];
  }
  void added(std::int32_t) override {}

  WordSplitter splitter_;
  std::string key_;
  WordCounts counts_;
};

WordCounts count_words(const TrainTokenizerRequest& request, const ReadProgress& progress, std::uint64_t& bytes) {
  const WordRules rules = gpt2_rules();
  std::vector<std::unique_ptr<WordCounter>> counters;
  counters.reserve(static_cast<std::size_t>(request.threads));
  for (int thread = 0; thread < request.threads; ++thread) counters.push_back(std::make_unique<WordCounter>(rules));
  OrderedWork<DocumentJob> work(
      request.threads,
      [&](DocumentJob& job, int thread) { job.encode(*counters[static_cast<std::size_t>(thread)], -1); },
      [](DocumentJob&) {});
  JobFiller filler(work, std::make_unique<WordCounter>(rules), false);
  bytes = read_documents(request.inputs, request.separator.value_or(""), false, filler, progress);
  filler.finish();
  WordCounts all = std::move(counters.front()->counts());
  for (std::size_t i = 1; i < counters.size(); ++i) {
    for (const auto& [word, count] : counters[i]->counts()) all[word] += count;
    counters[i].reset();
  }
  return all;
}

void write(const fs::path& file, const std::string& bytes) {
  const fs::path folder = file.parent_path();
  std::error_code failure;
  if (!folder.empty()) fs::create_directories(folder, failure);
  if (failure) throw Error(text("cannot create the folder: {}", failure.message()), folder.string());
  replace_file(file, bytes);
}

void check_special_tokens(const TrainTokenizerRequest& request, Refusals& out) {
  const std::vector<std::string>& tokens = request.special_tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty() || ill_formed_at(tokens[i])) {
      out.add(make_refusal(ErrorCode::kMissing, {"--special-token"},
                           "--special-token \"{}\": is empty or invalid UTF-8", tokens[i]));
    } else if (std::find(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens[i]) !=
               tokens.begin() + static_cast<std::ptrdiff_t>(i)) {
      out.add(make_refusal(ErrorCode::kDuplicate, {"--special-token"}, "--special-token \"{}\": is given twice",
                           tokens[i]));
    }
  }
}

void check_output(const TrainTokenizerRequest& request, Refusals& out) {
  std::error_code ignored;
  if (request.output.has_filename() && !fs::is_directory(request.output, ignored)) {
    check_output_folder(request.output, out);
    return check_output_file(request.output, request.inputs, request.force, out);
  }
  out.add(make_refusal(ErrorCode::kNotWritable, {"--output"}, "--output {}: is a folder; the tokenizer is a file",
                       request.output)
              .with_hint("for example --output {}", request.output / "tokenizer.json"));
}

} // namespace

Refusals refusals(const TrainTokenizerRequest& request) {
  Refusals out;
  const std::int64_t least = kBytes + static_cast<std::int64_t>(request.special_tokens.size());
  if (request.vocab < least || request.vocab > kMaxVocab) {
    out.add(make_refusal(ErrorCode::kOutOfRange, {"--vocab"}, "--vocab must be in [{}, {}], got {}", least, kMaxVocab,
                         request.vocab)
                .with_hint("{} bytes and {} special tokens are in every vocabulary", kBytes, least - kBytes));
  }
  if (request.min_count < 1)
    out.add(make_refusal(ErrorCode::kOutOfRange, {"--min-count"}, "--min-count must be at least 1, got {}",
                         request.min_count));
  check_special_tokens(request, out);
  if (request.separator) check_separator(*request.separator, out);
  check_threads(request.threads, out);
  check_inputs(request.inputs, out);
  check_output(request, out);
  return out;
}

TrainedTokenizer train_tokenizer(const TrainTokenizerRequest& request, const TrainProgress& progress) {
  TrainedTokenizer out;
  const WordCounts words = count_words(request, progress.reading, out.bytes);
  if (words.empty()) throw Error("the inputs contain no text", {}, "give --input files with text in them");
  const BpeParts parts =
      train_bpe(words, {request.vocab, request.min_count, request.special_tokens}, [&](std::int64_t tokens) {
        if (progress.merging) progress.merging(tokens, request.vocab);
      });
  write(request.output, write_tokenizer_json(parts));
  out.tokens = static_cast<std::int64_t>(parts.tokens.size());
  out.merges = static_cast<std::int64_t>(parts.merges.size());
  out.words = static_cast<std::int64_t>(words.size());
  return out;
}

} // namespace triax::data
