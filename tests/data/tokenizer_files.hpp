// SPDX-License-Identifier: Apache-2.0
// The tokenizers in tests/data/reference, which scripts/make-tokenizer-reference.py created with Hugging Face's
// library.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizer/tokenizer_json.hpp"
#include "support/temp_folder.hpp"

namespace triax::data {

/// The file of this name; each is read once.
inline const nlohmann::json& reference(const std::string& name) {
  static std::map<std::string, nlohmann::json> files;
  const auto [file, first] = files.try_emplace(name);
  if (first) file->second = nlohmann::json::parse(test::read_file(TRIAX_SOURCE_DIR "/tests/data/reference/" + name));
  return file->second;
}

/// The trained tokenizer with some top-level and model keys replaced.
inline std::unique_ptr<Tokenizer> patched_tokenizer(const nlohmann::json& patch) {
  const test::TempFolder folder;
  nlohmann::json content = reference("trained.json");
  for (const auto& [key, value] : patch.items()) {
    if (key == "model") {
      content[key].update(value);
    } else {
      content[key] = value;
    }
  }
  test::write_file(folder / "tokenizer.json", content.dump());
  return read_tokenizer_json(folder / "tokenizer.json");
}

inline std::unique_ptr<Tokenizer> trained_tokenizer() {
  return patched_tokenizer(nlohmann::json::object());
}

} // namespace triax::data
