// SPDX-License-Identifier: Apache-2.0
// A folder with a valid run of sample plugins and empty data files, which each test modifies.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "support/temp_folder.hpp"

namespace triax::config {

class Workspace {
 public:
  Workspace() {
    for (const char* file : {"text.bin", "text.idx", "held.bin", "held.idx"}) write(file, "");
    write("text.json", R"({"tokenizer": "byte", "vocab": 257})");
  }

  /// The tables of a valid run; a test replaces those it checks.
  std::map<std::string, std::string> tables = {
      {"batch", "global = 8\n"},
      {"comm", "plugin = \"comm-alpha\"\n"},
      {"data", "path = \"text\"\n"},
      {"kernels", "plugin = \"kernels-toy\"\n"},
      {"model", "plugin = \"model-toy\"\nlayers = 2\n"},
      {"optimizer", "plugin = \"optim-toy\"\nlr = 1e-3\n"},
      {"plugins", "path = [\"" SAMPLE_PLUGINS "\"]\n"},
      {"schedule", "plugin = \"sched-toy\"\n"},
      {"train", "steps = 100\n"},
  };

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::canonical(folder_.path()) / name;
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(path(name).parent_path());
    test::write_file(path(name), text);
  }

  /// Writes `head` and all tables, in alphabetical order, to run.toml and loads it.
  LoadResult load(const std::string& head = {}, const std::vector<Override>& flags = {}) {
    std::string text = head;
    for (const auto& [name, keys] : tables) text += "[" + name + "]\n" + keys;
    write("run.toml", text);
    return load_file("run.toml", flags);
  }
  /// Errors and origins name files relative to this folder.
  LoadResult load_file(const std::string& name, const std::vector<Override>& flags = {}) {
    LoadResult loaded = config::load(path(name), flags);
    for (Diagnostic& refusal : loaded.refusals) refusal.text = without_folder(refusal.text);
    for (ResolvedValue& value : loaded.values) value.origin = without_folder(value.origin);
    for (std::string& line : loaded.dropped) line = without_folder(line);
    return loaded;
  }

  std::string without_folder(std::string text) const {
    const std::string folder = path("").string();
    for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
      text.erase(at, folder.size());
    }
    return text;
  }

 private:
  test::TempFolder folder_;
};

inline std::vector<std::string> texts(const LoadResult& loaded) {
  std::vector<std::string> out;
  for (const Diagnostic& refusal : loaded.refusals) out.push_back(refusal.text);
  return out;
}

/// "value # origin", or empty.
inline std::string shown(const LoadResult& loaded, const std::string& key) {
  const auto found = std::find_if(loaded.values.begin(), loaded.values.end(),
                                  [&key](const ResolvedValue& value) { return value.key == key; });
  return found == loaded.values.end() ? std::string() : found->value + " # " + found->origin;
}

} // namespace triax::config
