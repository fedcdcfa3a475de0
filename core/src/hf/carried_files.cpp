// SPDX-License-Identifier: Apache-2.0
#include "hf/carried_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/weights.hpp"
#include "hf/lfs_pointer.hpp"
#include "os/input_file.hpp"
#include "os/path_names.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

constexpr std::array kNames = {kTokenizerFile,
                               "vocab.json",
                               "merges.txt",
                               "tokenizer_config.json",
                               "tokenizer.model",
                               "added_tokens.json",
                               "special_tokens_map.json",
                               "chat_template.jinja",
                               "chat_template.json",
                               "generation_config.json"};
constexpr std::size_t kBuffer = std::size_t{1} << 20;

} // namespace

std::vector<std::string> carried_files(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const char* name : kNames) {
    const std::filesystem::path file = folder / name;
    if (!os::is_there(file)) continue;
    const std::string problem = os::why_not_a_file(file);
    if (!problem.empty()) throw Error(problem, file.string(), "remove it, or restore it");
    refuse_lfs_pointer(os::InputFile(file), file);
    out.emplace_back(name);
  }
  return out;
}

bool has_tokenizer(const std::vector<std::string>& names) {
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  return has("tokenizer.json") || (has("vocab.json") && has("merges.txt")) || has("tokenizer.model");
}

void copy_files(const std::filesystem::path& from, const std::vector<std::string>& names,
                const checkpoint::StagedFolder& into, const std::string& prefix, const checkpoint::StopRequest& stop) {
  std::vector<std::byte> buffer(kBuffer);
  for (const std::string& name : names) {
    const os::InputFile file(from / name);
    os::DurableFile copy = into.file(prefix + name);
    for (std::uint64_t at = 0; at < file.bytes(); at += kBuffer) {
      checkpoint::check_stop(stop);
      const std::span<std::byte> part = std::span(buffer).first(std::min<std::uint64_t>(kBuffer, file.bytes() - at));
      file.read_at(at, part);
      copy.write(part);
    }
    copy.finish();
  }
}

} // namespace triax::hf
