// SPDX-License-Identifier: Apache-2.0
#include "hf/exported_tokenizer.hpp"

#include <memory>
#include <optional>

#include "data/text_tokenizer.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer_choice.hpp"
#include "data/tokenizer_difference.hpp"
#include "hf/carried_files.hpp"
#include "hf/imported_tokenizer.hpp"
#include "hf/model_origin.hpp"
#include "train/data_tokenizer.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

/// False for a damaged folder, too.
bool has_tokenizer_files(const fs::path& folder) {
  try {
    return !folder.empty() && hf::has_tokenizer(hf::carried_files(folder));
  } catch (const Error&) {
    return false;
  }
}

/// Empty for one that Triax cannot read.
hf::ImportedTokenizer readable_tokenizer(const fs::path& folder) {
  try {
    return hf::read_imported_tokenizer(folder);
  } catch (const Error&) {
    return {};
  }
}

std::string imported_note(const fs::path& folder) {
  return text("Tokenizer files: those of the imported model, from {}", folder);
}

} // namespace

ExportedTokenizer find_tokenizer(const checkpoint::TensorReader& from) {
  const fs::path own = from.folder() / hf::kCarriedFolder;
  if (has_tokenizer_files(own)) return {.files = {}, .note = imported_note(own)};
  std::string why = "the checkpoint has none";
  std::optional<data::TextTokenizer> of_data;
  try {
    const train::DataTokenizer found = train::find_data_tokenizer(from.manifest(), from.folder());
    if (!found.corpus.empty()) of_data = data::open_text_tokenizer_of(found.corpus);
    if (!found.missing.empty()) why += text(", and {} does not exist", found.missing);
  } catch (const Error& error) {
    why += text(", and that of the data cannot be read: {}: {}", error.where(), error.message());
  }
  const fs::path origin = hf::find_origin(from).folder;
  const bool has_origin = has_tokenizer_files(origin);
  if (has_origin && !of_data) return {.files = origin, .note = imported_note(origin)};
  if (!of_data)
    return {.files = {}, .note = text("No tokenizer files: {}; --files copies them from another folder", why)};
  ExportedTokenizer out{.files = {}, .note = text("Tokenizer files: that of the training data, {}", of_data->from)};
  const hf::ImportedTokenizer imported = has_origin ? readable_tokenizer(origin) : hf::ImportedTokenizer();
  if (imported.tokenizer) {
    const data::TokenizerInfo before = data::info_of(*imported.tokenizer), now = data::info_of(*of_data->tokenizer);
    if (data::gives_same_ids(before, now)) return {.files = origin, .note = imported_note(origin)};
    out.warning = Error(data::different_tokenizers(of_data->from, now, imported.from, before), {},
                        text("for the files of the imported model: --files {}", origin));
  }
  out.made.json = data::exported_json(*of_data->tokenizer);
  if (of_data->ends.empty()) return out;
  out.made.end = of_data->ends.front();
  out.made.end_text = of_data->tokenizer->kind() == data::ByteTokenizer::kName
                          ? data::kEndOfText
                          : of_data->tokenizer->decode({&*out.made.end, 1});
  return out;
}

} // namespace triax::app
