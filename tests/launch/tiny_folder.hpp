// SPDX-License-Identifier: Apache-2.0
// The TOML and the data of a tiny run of the triax program, for tests.
//
// Threads: one. Blocking: runs `triax data prepare`. For programs of triax_add_test.
#pragma once

#include <string>

#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {

inline const char* const kTinyTables = R"([model]
plugin = "model-gpt"
layers = 2
hidden = 16
heads = 2
sequence = 8
dropout = 0.1

[batch]
global = 8

[kernels]
plugin = "kernels-reference"

[optimizer]
plugin = "optim-adamw"
lr = 1e-2

[train]
steps = 10

[run]
dir = "run"
)";

/// Writes run.toml with these further tables, and text.bin and text.idx.
inline void fill_tiny_folder(const TempFolder& folder, const std::string& tables) {
  write_file(folder / "run.toml", kTinyTables + tables);
  std::string text;
  for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i * i) + " of a text to learn from\n";
  write_file(folder / "text.txt", text);
  run(folder.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
}

} // namespace triax::test
