// SPDX-License-Identifier: Apache-2.0
#include "hf/exported_tokenizer.hpp"

#include <memory>
#include <optional>

#include "data/text_tokenizer.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer_choice.hpp"
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

/// Whether the folder's tokenizer gives these ids. One that Triax cannot read gives others: `ids` was read.
bool gives_ids_of(const data::Tokenizer& ids, const fs::path& folder) {
  try {
    const hf::ImportedTokenizer found = hf::read_imported_tokenizer(folder);
    return found.tokenizer && found.tokenizer->digest() == ids.digest();
  } catch (const Error&) {
    return false;
  }
}

} // namespace

ExportedTokenizer find_tokenizer(const checkpoint::TensorReader& from) {
  if (has_tokenizer_files(from.folder() / hf::kCarriedFolder)) return {};
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
  if (has_tokenizer_files(origin) && (!of_data || gives_ids_of(*of_data->tokenizer, origin)))
    return {.files = origin, .note = text("Tokenizer files: those of the imported model, from {}", origin)};
  if (!of_data)
    return {.files = {}, .note = text("No tokenizer files: {}; --files copies them from another folder", why)};
  ExportedTokenizer out{.files = {}, .note = text("Tokenizer files: that of the training data, {}", of_data->from)};
  out.made.json = data::exported_json(*of_data->tokenizer);
  if (of_data->ends.empty()) return out;
  out.made.end = of_data->ends.front();
  out.made.end_text = of_data->tokenizer->kind() == data::ByteTokenizer::kName
                          ? data::kEndOfText
                          : of_data->tokenizer->decode({&*out.made.end, 1});
  return out;
}

} // namespace triax::app
