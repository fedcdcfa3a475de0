// SPDX-License-Identifier: Apache-2.0
#include "train/tokenizer_change.hpp"

#include <system_error>
#include <utility>
#include <vector>

#include "data/tokenizer_choice.hpp"
#include "data/tokenizer_difference.hpp"
#include "hf/carried_files.hpp"
#include "hf/imported_tokenizer.hpp"
#include "train/data_tokenizer.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

using checkpoint::CorpusContent, checkpoint::Manifest, checkpoint::SavedTokenizer;

/// A tokenizer, its name in messages, and its flags of triax data prepare.
struct NamedTokenizer {
  data::TokenizerInfo info;
  std::string name, flags;
};

data::TokenizerInfo info_of(const SavedTokenizer& saved) {
  return {saved.kind, saved.vocab, saved.digest};
}

std::optional<NamedTokenizer> imported_tokenizer(const fs::path& folder) {
  try {
    const hf::ImportedTokenizer found = hf::read_imported_tokenizer(folder / hf::kCarriedFolder);
    if (!found.tokenizer) return std::nullopt;
    return NamedTokenizer{data::info_of(*found.tokenizer), found.from, hf::prepare_flags(found)};
  } catch (const Error&) { // Triax does not support all tokenizers
    return std::nullopt;
  }
}

/// The corpus that the checkpoint's run names, if its files are still there. Empty for a damaged key, too.
fs::path corpus_of(const Manifest& manifest, const fs::path& folder) {
  try {
    return find_data_tokenizer(manifest, folder).corpus;
  } catch (const Error&) {
    return {};
  }
}

/// The flags for a tokenizer of data; those of its copy beside the corpus, if this is still the same tokenizer.
std::string flags_of(const data::TokenizerInfo& info, const fs::path& corpus) {
  if (info.kind == data::ByteTokenizer::kName) return "--tokenizer byte";
  const std::optional<data::TokenizerInfo> now = data::find_tokenizer_info(corpus);
  std::error_code unreadable;
  const fs::path copy = data::tokenizer_file(corpus);
  const bool is_there = now && now->digest == info.digest && fs::exists(copy, unreadable);
  return "--tokenizer " + (is_there ? copy.string() : "FILE");
}

std::optional<NamedTokenizer> data_tokenizer(const Manifest& manifest, const fs::path& folder) {
  const fs::path corpus = corpus_of(manifest, folder);
  for (const auto* corpora : {&manifest.data.training, &manifest.data.validation})
    for (const CorpusContent& each : *corpora)
      if (each.tokenizer) {
        const data::TokenizerInfo info = info_of(*each.tokenizer);
        return NamedTokenizer{info, text("the data of {}", folder), flags_of(info, corpus)};
      }
  const std::optional<data::TokenizerInfo> info = data::find_tokenizer_info(corpus);
  if (corpus.empty() || !info) return std::nullopt;
  return NamedTokenizer{*info, text("{}, the data of {},", corpus, folder), flags_of(*info, corpus)};
}

/// The first corpus whose tokenizer is known. All corpora of a run have the same.
std::optional<std::pair<fs::path, data::TokenizerInfo>> known_tokenizer(const data::Corpora& corpora,
                                                                        const std::vector<CorpusContent>& content) {
  for (std::size_t i = 0; i < content.size() && i < corpora.paths.size(); ++i)
    if (content[i].tokenizer) return std::pair(corpora.paths[i], info_of(*content[i].tokenizer));
  return std::nullopt;
}

} // namespace

std::optional<TokenizerChange> find_tokenizer_change(const config::RunConfig& run, const fs::path& folder,
                                                     const Manifest& manifest, const checkpoint::DataContent& data) {
  auto now = known_tokenizer(run.data.training, data.training);
  if (!now) now = known_tokenizer(run.data.validation, data.validation);
  if (!now) return std::nullopt;
  std::optional<NamedTokenizer> before = imported_tokenizer(folder);
  if (!before) before = data_tokenizer(manifest, folder);
  const auto& [path, info] = *now;
  if (!before || data::gives_same_ids(info, before->info)) return std::nullopt;
  return TokenizerChange{data::different_tokenizers(path, info, before->name, before->info), before->flags};
}

Refusals check_tokenizer(const config::RunConfig& run, const ResumePoint& point, const TokenizerChange& change) {
  if (run.checkpoint.changed_data == "accept") return {};
  std::vector<std::string> keys;
  for (const data::Corpora* corpora : {&run.data.training, &run.data.validation})
    if (!corpora->paths.empty()) keys.push_back(corpora->key);
  const std::string first = keys.front();
  if (!point.is_of_run && !run.evaluates) keys.emplace_back("checkpoint.from");
  const std::string other =
      run.evaluates ? "; or name another checkpoint with --checkpoint"
                    : "\n  or, to train the weights with another tokenizer: --set checkpoint.changed_data=accept";
  return make_refusal(ErrorCode::kConflict, keys, "{}: {}", first, change.text)
      .with_hint(
          "prepare the text with that of the checkpoint: triax data prepare --input FILE... --output PREFIX {}{}",
          change.flags, other);
}

} // namespace triax::train
